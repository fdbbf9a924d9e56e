"""What the configs of BinMask, STG and the plain network share: a network and its training."""

from __future__ import annotations

from typing import Any

import ml_collections
from ml_collections import config_dict

from configs.common import PAPER_SETTINGS, base_config

#: Trials of BinMask, section 4.
SEEDS = tuple(range(8))


def network_fields(**changes: Any) -> dict[str, Any]:
    """The options of ``fsjax.methods.network.NetworkOptions`` as in BinMask's section 4.1."""
    fields = {
        "network": "mlp",
        "hidden": (64, 20),
        "activation": "tanh",
        "batch_norm": False,
        "layer_norm": False,
        "dropout": 0.0,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "final_learning_rate": config_dict.placeholder(float),
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "l1": 0.0,
        "finetune_epochs": 0,
        "finetune_learning_rate": 0.01,
    }
    return {**fields, **changes}


def gates_config(
    variant: str | None, method: dict[str, Any], num_epochs: int = 100
) -> ml_collections.ConfigDict:
    """A selector with gates on the data set of the variant, judged by a retrained network.

    On the data sets of IP-CAE it is that paper's comparison: its splits and scaling, K and the
    classifier of its Tables 1 and 2.

    Args:
      variant: see ``configs.common.parse_variant``.
      method: the fields of ``config.method``.
      num_epochs: of the selector.
    """
    config = base_config(variant, method)
    quick = len(config.seeds) == 2
    config.seeds = SEEDS[:2] if quick else SEEDS
    config.train.num_epochs = min(5, num_epochs) if quick else num_epochs
    config.train.shuffle, config.train.drop_last = True, False
    config.train.best_by = "last"
    config.train.batch_size = 256
    config.train.min_steps_per_epoch = 30
    config.evaluation.protocols = ("retrain", "embedded")
    if config.data.name not in PAPER_SETTINGS:
        config.data.scaling = "minmax"
    return config
