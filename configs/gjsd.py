"""GJSD: CAE with the diversity term of the IP-CAE paper, section 2.5."""

from __future__ import annotations

import ml_collections

from configs.common import base_config, concrete_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set, with lambda from Table 5."""
    config = base_config(variant, {"name": "gjsd", "logits_init": "near_zero", **concrete_fields()})
    weak = config.task == "reconstruction" and config.data.name in ("har", "isolet", "mice_protein")
    config.method.gjsd_weight = 0.005 if weak else 0.05
    return config
