"""WAST (Sokar et al., NeurIPS 2022), with the paper's setting for each of its data sets.

    python -m experiments.run --config=configs/wast.py:madelon --workdir=runs/wast

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on K columns (20
of Madelon, 50 otherwise), and seconds of training for all seeds on 2 cores:

| variant | paper | here | seconds |
| --- | --- | --- | --- |
| madelon | 83.27 +- 0.63 | 82.70 +- 1.30 (5 seeds) | 4 |
| coil20 | 99.58 +- 0.14 | 99.17 +- 0.56 (5 seeds) | 5 |
| isolet | 85.33 +- 1.39 | 83.72 +- 2.14 (5 seeds) | 7 |
| pcmac | 60.51 +- 2.53 | 78.10 +- 0.41 (5 seeds) | 16 |
| mnist | 95.27 +- 0.26 | 94.66 +- 0.30 (2 seeds) | 99 |
| madelon, ``sensitivity_weight=0.0`` | 55.50 +- 2.45 | 59.39 +- 3.40 (3 seeds) | 6 |
"""

import ml_collections

from configs.rewiring import autoencoder_config
from fsjax.tables.datasets.catalog import ENTRIES

#: Lambda and learning rate of the gene expression sets (appendix A.1).
FEW_ROWS = {"smk_can_187": (0.01, 0.01), "gla_bra_180": (0.001, 0.001)}

#: Data sets whose kept runs drop the smallest of all connections, as eq. 4 is printed. On others,
#: positive and negative weights are dropped separately, as in the authors' code, which moves ISOLET
#: at K = 25 from 74.5 +- 1.0 to 70.3 +- 1.4, where that code has 70.2 +- 1.4 (five seeds each).
AS_PRINTED = ("mnist", "fashion_mnist")


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    config = autoencoder_config("wast", num_epochs=10)(variant)
    name = config.data.name
    if name in ENTRIES and ENTRIES[name].image_shape is not None:
        config.method.sensitivity_weight = 0.4
    if name not in AS_PRINTED:
        config.method.drop = "per_sign"
    if name in FEW_ROWS:
        config.method.sensitivity_weight, config.method.learning_rate = FEW_ROWS[name]
    return config
