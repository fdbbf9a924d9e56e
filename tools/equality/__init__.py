"""What is equal of two runs that should be, measured for every method."""
