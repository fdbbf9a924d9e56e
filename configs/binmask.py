"""BinMask (Jia and Rinard): L0 regularisation by binary masks, here on the inputs.

    python -m experiments.run --config=configs/binmask.py:isolet --workdir=runs/binmask

Variants: a data set, a task and ``quick``. The comparison of the paper's Figure 1 is
``experiments.feature_selection``, masks on the weights are ``experiments.sparsify`` and
``experiments.regularize``; ``--config.method.masked=weights`` does a single run of them.
"""

from __future__ import annotations

import ml_collections
from ml_collections import config_dict

from configs.gates import gates_config, network_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of section 4.1."""
    fields = {
        "name": "binmask",
        "masked": "inputs",
        "strength": 1e-3,
        "search": True,
        "initial": config_dict.placeholder(float),
        "clip": 1.0,
        "mask_learning_rate": 1e-3,
        "mask_final_learning_rate": 1e-5,
        "warmup": 0.1,
        "smoothing": 0.9,
        **network_fields(),
    }
    config = gates_config(variant, fields)
    config.method.final_learning_rate = 1e-5
    return config
