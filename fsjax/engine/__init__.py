"""The engine, which trains any method with many seeds; start at ``fit.py``."""
