"""Damaged files, files that lie, bad calls and mistakes in configs, many of each: ``make fuzz``."""
