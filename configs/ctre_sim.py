"""CTRE_sim (Atashgahi et al. 2022): similarity and random search at once.

    python -m experiments.run --config=configs/ctre_sim.py:madelon --workdir=runs/ctre_sim

TABLE"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config, classifier_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {
        "drop_fraction": 0.2,
        "drop": "magnitude",
        "grow": "similar_or_random",
        "similarity": "cosine",
        "similarity_fraction": 1.0,
        "grow_init": "uniform",
    }
    return classifier_config(variant, {"name": "ctre_sim", **classifier_fields(), **fields})
