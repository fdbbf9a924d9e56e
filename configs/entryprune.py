"""EntryPrune (Zimmer et al. 2024) in the setting of its authors' code.

    python -m experiments.run --config=configs/entryprune.py:isolet --workdir=runs/entryprune

Variants: a data set and ``quick``. K columns are judged by a support vector machine, on an 80/20
split with columns scaled to [0, 1]. Candidates are exchanged every 100 steps, or every 5 if there
are more columns than rows. The authors stop by validation and then train on all rows for the same
number of steps; here there are 2400 steps of 1024 rows, or 1500 if an epoch is a single step.
Accuracy in percent:

| variant | K = 25 | K = 50 | K = 100 |
| --- | --- | --- | --- |
| coil20 (2 seeds) | 98.09 +- 0.17 | 99.48 +- 0.17 | 99.83 +- 0.17 |
| isolet (2 seeds) | 87.56 +- 0.58 | 94.58 +- 0.42 | 95.70 +- 0.06 |
"""

from __future__ import annotations

import ml_collections

from configs.common import base_config, method_fields, parse_variant
from configs.rewiring import SEEDS, num_features
from fsjax.tables.datasets.catalog import ENTRIES

#: Batch size, and approximate number of steps.
BATCH_SIZE, STEPS = 1024, 2400

#: Largest number of epochs, which matters if an epoch is a single step.
MAX_EPOCHS = 1500


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    read = parse_variant(variant)
    rows, columns = ENTRIES[read.name].shape if read.name in ENTRIES else (BATCH_SIZE, 0)
    wide = {"candidates": 0.5, "every": 5} if columns > rows else {}
    train = {"batch_size": BATCH_SIZE, "shuffle": True, "drop_last": True, "best_by": "last"}
    steps = max(int(0.8 * rows) // BATCH_SIZE, 1)
    epochs = min(-(-STEPS // steps), MAX_EPOCHS)
    config = base_config(read, method_fields("entryprune", **wide), SEEDS, epochs, **train)
    config.num_features = num_features(read.name)
    config.data.update(split="wast", scaling="minmax", valid_fraction=0.0)
    config.evaluation.protocols = ("svm", "embedded")
    return config
