"""AEFS (Han et al., ICASSP 2018) in the setting of the WAST paper.

    python -m experiments.run --config=configs/aefs.py:coil20 --workdir=runs/aefs

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on K columns:

| variant | K | paper | here |
| --- | --- | --- | --- |
| coil20 | 25 | 96.66 +- 1.36 | 96.76 +- 0.71 (3 seeds) |
| coil20 | 50 | 99.48 +- 0.41 | 98.38 +- 0.71 (3 seeds) |
| coil20 | 100 | 99.94 +- 0.12 | 100.00 +- 0.00 (3 seeds) |
| usps | 25 | 94.04 +- 0.41 | 91.86 +- 1.33 (3 seeds) |
| usps | 50 | 95.86 +- 0.48 | 95.54 +- 0.33 (3 seeds) |
| usps | 100 | 96.86 +- 0.05 | 96.88 +- 0.13 (3 seeds) |
| pcmac | 50 | 60.40 +- 2.37 | 80.89 +- 1.04 (3 seeds) |
| isolet | 50 | 80.94 +- 2.02 | 89.27 +- 0.76 (3 seeds) |
| isolet, ``penalty=0.1`` | 50 | 80.94 +- 2.02 | 86.79 +- 2.37 (2 seeds) |
| madelon, ``penalty=0.1`` | 20 | 60.16 +- 4.61 | 68.28 +- 3.89 (3 seeds) |
| madelon, ``penalty=0.01`` | 20 | 60.16 +- 4.61 | 78.94 +- 1.32 (3 seeds) |

The paper does not state alpha. Random columns reach 54.4 +- 3.2 on pcmac (whose counts the paper
divided by 255), 85.8 +- 0.8 on isolet and 53.2 +- 4.8 on madelon.
"""

from __future__ import annotations

import ml_collections

from configs.rewiring import autoencoder_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    config = autoencoder_config("aefs", num_epochs=100)(variant)
    config.train.batch_size = 256
    return config
