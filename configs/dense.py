"""The dense network, the baseline of the CTRE paper's Table 2.

    python -m experiments.run --config=configs/dense.py:madelon --workdir=runs/dense

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    return classifier_config(variant, "dense")
