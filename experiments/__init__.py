"""Launchers, run as ``python -m experiments.NAME``; they need the extra ``experiments``."""

from importlib.util import find_spec

if find_spec("ml_collections") is None:
    raise ImportError("ml_collections is not installed; run pip install -e '.[experiments]'")
