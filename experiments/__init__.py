"""Launchers, run as ``python -m experiments.NAME``."""
