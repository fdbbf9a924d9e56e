"""CTRE_seq (Atashgahi et al. 2022): similarity first, random search once validation stalls.

    python -m experiments.run --config=configs/ctre_seq.py:madelon --workdir=runs/ctre_seq

TABLE"""

from __future__ import annotations

import ml_collections

from configs.rewiring import classifier_config, classifier_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {
        "drop_fraction": 0.2,
        "order": "similar_first",
        "patience": 40,
        "similarity": "cosine",
        "similarity_fraction": 1.0,
        "grow_init": "uniform",
    }
    return classifier_config(variant, {"name": "ctre_seq", **classifier_fields(), **fields})
