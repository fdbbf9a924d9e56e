"""From the user's table and target to numbers, and notes on how they were read."""
