"""QuickSelection (Atashgahi et al. 2022), with the setting of the WAST paper.

    python -m experiments.run --config=configs/quick_selection.py:madelon --workdir=runs/qs

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on 20 columns,
and seconds of training for all seeds on 2 cores:

| variant | paper | here | seconds |
| --- | --- | --- | --- |
| madelon | 82.07 +- 1.10 | 82.57 +- 0.49 (5 seeds) | 12 |
"""

from __future__ import annotations

import ml_collections
from ml_collections import config_dict

from configs.rewiring import autoencoder_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    fields = {
        "name": "quick_selection",
        "hidden": (200,),
        "density": 0.2,
        "epsilon": config_dict.placeholder(float),
        "drop_fraction": 0.3,
        "drop": "per_sign",
        "grow_init": "zeros",
        "input_noise": 0.2,
        "initialisation": "fan_in",
        "learning_rate": 0.1,
        "momentum": 0.9,
        "l2": 0.0,
    }
    return autoencoder_config(variant, fields, num_epochs=100)
