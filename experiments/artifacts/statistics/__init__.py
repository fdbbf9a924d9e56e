"""The statistics with which the papers compare methods."""
