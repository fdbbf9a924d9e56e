"""WAST (Sokar et al., NeurIPS 2022), with the paper's setting for each of its data sets.

    python -m experiments.run --config=configs/wast.py:madelon --workdir=runs/wast

TABLE"""

from __future__ import annotations

import ml_collections

from configs.rewiring import autoencoder_config, is_image

#: Lambda and learning rate of the gene expression sets (appendix A.1).
FEW_ROWS = {"smk_can_187": (0.01, 0.01), "gla_bra_180": (0.001, 0.001)}


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {
        "name": "wast",
        "hidden": (200,),
        "density": 0.2,
        "drop_fraction": 0.3,
        "sensitivity_weight": 0.9,
        "sensitivity": "residual",
        "accumulate": True,
        "drop": "importance",
        "update": "step",
        "input_noise": 0.2,
        "learning_rate": 0.1,
        "momentum": 0.9,
    }
    config = autoencoder_config(variant, fields, num_epochs=10)
    name = config.data.name
    if is_image(name):
        config.method.sensitivity_weight = 0.4
    if name in FEW_ROWS:
        config.method.sensitivity_weight, config.method.learning_rate = FEW_ROWS[name]
    return config
