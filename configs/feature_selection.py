"""BinMask, section 4.1 and Figure 1: compares selectors by networks retrained on their columns.

    python -m experiments.feature_selection --config=configs/feature_selection.py:isolet \
        --workdir=runs/feature_selection/isolet

Variants: a data set, ``lenet5`` (for images; otherwise a multilayer perceptron) and ``quick``. If
``sizes`` is empty, they are the paper's five: the number of columns that BinMask selects at its
first strength, and four, three, two and one fifth of it.
"""

import ml_collections

from configs.common import SGD, data_fields, sort_words
from fsjax.data import available
from fsjax.tables.datasets.catalog import ENTRIES

#: In the order of the paper's legend.
METHODS = ("binmask", "stg", "fisher_score", "random_selection", "lassonet")


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The comparison on one data set.

    Raises:
      ConfigError: for a word that is not a data set, ``lenet5`` or ``quick``, and for two data
        sets.
    """
    names, lenet5, quick = sort_words(variant, available(), ("lenet5",), ("quick",))
    (name,) = names or ["digits"]
    large = name in ENTRIES and ENTRIES[name].shape[0] >= 50_000
    return ml_collections.ConfigDict(
        {
            # MNIST has given test rows; of other data sets a fifth is drawn.
            "data": data_fields(name, "official" if large else "random", "minmax"),
            "seeds": (0, 1) if quick else tuple(range(8)),
            "methods": METHODS,
            "sizes": (),
            "network": {
                "network": "lenet5" if lenet5 else "mlp",
                "hidden": (512, 512) if large else (64, 20),
                "activation": "relu" if large else "tanh",
                "batch_norm": large,
                **SGD,
            },
            "train": {
                "num_epochs": 5 if quick else 10 if large else 100,
                "batch_size": 256,
                "min_steps_per_epoch": 30,
            },
            "binmask": {"strength": 1e-3},
            "stg": {"strength": 0.1},
            "lassonet": {
                "hidden": (100,),
                "path_multiplier": 1.02,
                "dense_epochs": 1000,
                "path_epochs": 100,
                # Largest number of training rows of the path; 0 for all, as in the paper.
                "max_rows": 0,
            },
        }
    )
