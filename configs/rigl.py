"""RigL (Evci et al. 2020) as the CTRE paper compares with it.

    python -m experiments.run --config=configs/rigl.py:madelon --workdir=runs/rigl

TABLE"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config, classifier_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {"drop_fraction": 0.2, "grow_init": "zeros"}
    return classifier_config(variant, {"name": "rigl", **classifier_fields(), **fields})
