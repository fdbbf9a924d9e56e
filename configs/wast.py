"""WAST (Sokar et al., NeurIPS 2022), with the paper's setting for each of its data sets.

    python -m experiments.run --config=configs/wast.py:madelon --workdir=runs/wast

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on K columns (20
of Madelon, 50 otherwise), and seconds of training for all seeds on 2 cores:

| variant | paper | here | seconds |
| --- | --- | --- | --- |
| madelon | 83.27 +- 0.63 | 82.87 +- 1.09 (5 seeds) | 4 |
| coil20 | 99.58 +- 0.14 | 99.10 +- 0.52 (5 seeds) | 5 |
| isolet | 85.33 +- 1.39 | 86.24 +- 0.61 (5 seeds) | 7 |
| pcmac | 60.51 +- 2.53 | 78.51 +- 0.76 (5 seeds) | 16 |
| mnist | 95.27 +- 0.26 | 95.12 +- 0.20 (4 seeds) | 99 |
| madelon, ``sensitivity_weight=0.0`` | 55.50 +- 2.45 | 58.90 +- 4.49 (10 seeds) | 6 |
"""

import ml_collections

from configs.rewiring import autoencoder_config
from fsjax.datasets.catalog import ENTRIES

#: Lambda and learning rate of the gene expression sets (appendix A.1).
FEW_ROWS = {"smk_can_187": (0.01, 0.01), "gla_bra_180": (0.001, 0.001)}


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    config = autoencoder_config("wast", num_epochs=10)(variant)
    name = config.data.name
    if name in ENTRIES and ENTRIES[name].image_shape is not None:
        config.method.sensitivity_weight = 0.4
    if name in FEW_ROWS:
        config.method.sensitivity_weight, config.method.learning_rate = FEW_ROWS[name]
    return config
