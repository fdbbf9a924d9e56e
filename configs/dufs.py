"""DUFS (Lindenbaum et al., NeurIPS 2021) in the setting of the WAST paper.

    python -m experiments.run --config=configs/dufs.py:coil20 --workdir=runs/dufs

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on K columns:

| variant | K | paper | here | random columns |
| --- | --- | --- | --- | --- |
| madelon | 20 | 52.57 +- 1.35 | 55.50 +- 3.17 (2 seeds) | 53.17 +- 4.82 |
| coil20, 60 epochs | 25 | 92.01 +- 2.91 | 89.58 (1 seed) | 92.43 +- 2.92 |
| coil20, 60 epochs | 50 | 97.43 +- 1.22 | 95.14 (1 seed) | 95.90 +- 2.57 |
| isolet | 50 | 85.62 +- 2.53 | 70.13 +- 2.61 (3 seeds) | 85.79 +- 0.83 |
| isolet, ``learning_rate=0.1`` | 50 | 85.62 +- 2.53 | 87.28 +- 0.35 (2 seeds) | 85.79 +- 0.83 |

The published figures for isolet and madelon are those of random columns: at the lower learning rate
the gates stay near their random initial values. At the higher rate, the gates that open first are
those of redundant columns.
"""

from __future__ import annotations

import ml_collections

from configs.rewiring import autoencoder_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set; columns are standardised, as in the authors' example."""
    config = autoencoder_config("dufs", num_epochs=100)(variant)
    config.data.scaling = "standard"
    return config
