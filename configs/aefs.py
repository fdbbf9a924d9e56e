"""AEFS (Han et al., ICASSP 2018), with the setting of the WAST paper.

    python -m experiments.run --config=configs/aefs.py:coil20 --workdir=runs/aefs

Variants: a data set and ``quick``.
"""

from __future__ import annotations

import ml_collections

from configs.rewiring import autoencoder_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    config = autoencoder_config(variant, "aefs", num_epochs=100)
    config.train.batch_size = 256
    return config
