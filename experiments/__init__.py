"""Launchers, run as ``python -m experiments.NAME``; they need the extra ``experiments``."""

import os
from importlib.util import find_spec

# Their pictures are files, whatever a notebook's shell asks for.
os.environ["MPLBACKEND"] = "agg"

if find_spec("ml_collections") is None:
    raise ImportError("ml_collections is not installed; run pip install -e '.[experiments]'")
