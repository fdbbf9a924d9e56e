"""IP-CAE (Nilsson et al., ICML 2024), with the paper's setting for each of its data sets."""

from __future__ import annotations

import ml_collections
from ml_collections import config_dict

from configs.common import PAPER_SETTINGS, base_config, concrete_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set; on ``digits`` and other sets with one noise matrix per batch."""
    config = base_config(
        variant,
        {
            "name": "ip_cae",
            "weights": "full",
            "embedding_dim": config_dict.placeholder(int),
            "bias": True,
            **concrete_fields(),
        },
    )
    if config.data.name not in PAPER_SETTINGS:
        config.method.noise = "batch"
    return config
