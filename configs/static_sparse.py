"""Static sparse training, the control of the methods that rewire.

    python -m experiments.run --config=configs/static_sparse.py:madelon --workdir=runs/static

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    return classifier_config(variant, "static_sparse")
