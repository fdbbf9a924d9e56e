"""SET (Mocanu et al. 2018) as the CTRE paper compares with it.

    python -m experiments.run --config=configs/set.py:madelon --workdir=runs/set

TABLE"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config, classifier_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {"drop_fraction": 0.2, "drop": "magnitude", "grow_init": "uniform"}
    return classifier_config(variant, {"name": "set", **classifier_fields(), **fields})
