"""Measures, for every method, how far runs that should be equal differ."""
