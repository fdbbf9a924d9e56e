"""NeuroFS (Atashgahi et al., TMLR 2023) in the setting of its authors' code.

    python -m experiments.run --config=configs/neurofs.py:coil20 --workdir=runs/neurofs

Variants: a data set and ``quick``. K columns are judged by a support vector machine, on an 80/20
split with columns scaled to [0, 1]. The activation is ReLU on ISOLET and tanh on all other data
sets; tables with few rows have batches of 20. Accuracy in percent, two seeds, 50 CPU seconds each:

| variant | K = 25 | K = 50 | K = 100 |
| --- | --- | --- | --- |
| coil20 | 95.31 +- 1.56 | 99.48 +- 0.17 | 99.31 +- 0.00 |
| coil20, ``hidden=300,300,300`` | 95.66 +- 1.56 | 98.96 +- 0.00 | 99.13 +- 0.17 |
"""

from __future__ import annotations

import ml_collections

from configs.common import base_config, method_fields, parse_variant
from configs.rewiring import SEEDS, num_features
from fsjax.tables.datasets.catalog import ENTRIES

#: Tables with fewer rows have small batches.
FEW_ROWS = 250


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    read = parse_variant(variant)
    few = read.name in ENTRIES and ENTRIES[read.name].shape[0] < FEW_ROWS
    train = {"batch_size": 20 if few else 100, "shuffle": True, "drop_last": True}
    fields = method_fields("neurofs", activation="relu" if read.name == "isolet" else "tanh")
    config = base_config(read, fields, SEEDS, 100, best_by="last", **train)
    if read.name == "digits":
        config.method.hidden = (200, 200, 200)
    config.num_features = num_features(read.name)
    config.data.update(split="wast", scaling="minmax", valid_fraction=0.0)
    config.evaluation.protocols = ("svm", "embedded")
    return config
