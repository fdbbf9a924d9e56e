"""Deep Lasso (Cherepanova et al., NeurIPS 2023) in the setting of the WAST paper, with labels.

    python -m experiments.run --config=configs/deep_lasso.py:madelon --workdir=runs/deep_lasso

Variants: a data set, a task and ``quick``. Accuracy in percent of a support vector machine on 50
columns of isolet and 20 of madelon after 50 epochs, three seeds, by the penalty:

| variant | 0 | 0.1 | 1 | random columns |
| --- | --- | --- | --- | --- |
| madelon | 70.89 +- 1.91 | 73.78 +- 0.61 | 71.11 +- 1.58 | 53.17 +- 4.82 |
| isolet | 81.94 +- 1.87 | 84.08 +- 1.25 | - | 85.79 +- 0.83 |
"""

from __future__ import annotations

import ml_collections

from configs.common import base_config, method_fields, parse_variant
from configs.rewiring import SEEDS, num_features


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The method's defaults, judged by a support vector machine on the columns.

    The paper of Deep Lasso tunes all settings for each of its data sets, which have added noise
    columns.
    """
    read = parse_variant(variant)
    train = {"batch_size": 128, "shuffle": True, "drop_last": False, "min_steps_per_epoch": 10}
    config = base_config(read, method_fields("deep_lasso"), SEEDS, 100, **train)
    config.num_features = num_features(read.name)
    config.data.update(split="wast", scaling="standard")
    if read.task == "classification":
        config.evaluation.protocols = ("svm", "embedded")
    return config
