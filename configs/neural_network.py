"""A plain network on all columns: the classifier of BinMask's section 4.1.

    python -m experiments.run --config=configs/neural_network.py:isolet --workdir=runs/network

Variants: a data set, a task and ``quick``.
"""

import ml_collections

from configs.common import gates_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of section 4.1."""
    config = gates_config(variant, method="neural_network")
    config.evaluation.protocols = ("embedded",)
    return config
