"""CAE (Balin et al. 2019) as the baseline of the IP-CAE paper runs it."""

from __future__ import annotations

import ml_collections

from configs.common import base_config, concrete_fields


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    return base_config(variant, {"name": "cae", "logits_init": "near_zero", **concrete_fields()})
