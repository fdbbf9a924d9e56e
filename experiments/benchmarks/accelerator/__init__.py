"""The pieces of ``python -m experiments.accelerator``."""
