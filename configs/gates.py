"""What the configs of BinMask, STG and the plain network share: how they are trained and judged."""

from __future__ import annotations

from typing import Any

import ml_collections

from configs.common import PAPER_SETTINGS, base_config, parse_variant

#: Trials of BinMask, section 4.
SEEDS = tuple(range(8))


def gates_config(variant: str | None, method: dict[str, Any]) -> ml_collections.ConfigDict:
    """A selector with gates on the data set of the variant, judged by a retrained network.

    On the data sets of IP-CAE it is that paper's comparison: its splits and scaling, K and the
    classifier of its Tables 1 and 2.

    Args:
      variant: see ``configs.common.parse_variant``.
      method: the fields of ``config.method``.
    """
    read = parse_variant(variant)
    config = base_config(read, method)
    config.seeds = SEEDS[:2] if read.quick else SEEDS
    config.train.num_epochs = 5 if read.quick else 100
    config.train.shuffle, config.train.drop_last = True, False
    config.train.batch_size = 256
    config.train.min_steps_per_epoch = 30
    config.evaluation.protocols = ("retrain", "embedded")
    if read.name not in PAPER_SETTINGS:
        config.data.scaling = "minmax"
    return config
