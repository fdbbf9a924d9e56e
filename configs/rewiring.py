"""What the configs of networks that rewire themselves share: the settings of two papers."""

from __future__ import annotations

from typing import Any

import ml_collections

from configs.common import base_config, method_fields, parse_variant
from fsjax.data.catalog import ENTRIES
from fsjax.errors import ConfigError

#: The five seeds of the WAST paper's code.
SEEDS = (0, 1, 2, 3, 4)

#: Numbers of columns that the WAST paper evaluates (Table 5).
WAST_NUM_FEATURES = (25, 50, 75, 100, 150, 200)

#: Sets whose support vector machine takes minutes for each number of columns.
LARGE = ("mnist", "fashion_mnist", "cifar10", "cifar100")


def num_features(name: str) -> int:
    """K: 20 for Madelon (WAST, appendix A.1), 10 for the small digits, 50 for all others."""
    return {"madelon": 20, "madelon_like": 20, "digits": 10}.get(name, 50)


def autoencoder_config(
    variant: str | None, method: dict[str, Any], num_epochs: int
) -> ml_collections.ConfigDict:
    """The setting of WAST, appendix A: reconstruction, judged by a support vector machine.

    Args:
      variant: a data set and ``quick``, as for ``configs.common.parse_variant``.
      method: the fields of ``config.method``.
      num_epochs: of training.
    """
    read = parse_variant(variant, "reconstruction")
    name, quick = read.name, read.quick
    if read.task != "reconstruction":
        raise ConfigError(
            f"{method['name']} trains an autoencoder; leave {read.task!r} out of the variant"
        )
    config = base_config(read, method)
    config.num_features = num_features(name)
    config.seeds = SEEDS[:2] if quick else SEEDS
    config.data.split = "wast"
    # One mean and one standard deviation for the whole matrix, as the authors' code has it.
    config.data.scaling = "scalar"
    config.data.valid_fraction = 0.0
    config.train.num_epochs = min(5, num_epochs) if quick else num_epochs
    config.train.batch_size = 128
    config.train.shuffle, config.train.drop_last = True, False
    config.train.best_by = "last"
    config.evaluation.protocols = ("svm", "embedded")
    if name in ENTRIES and name not in LARGE and ENTRIES[name].shape[1] > max(WAST_NUM_FEATURES):
        further = tuple(k for k in WAST_NUM_FEATURES if k != config.num_features)
        config.evaluation.num_features = () if config.num_features == 20 or quick else further
    return config


def is_image(name: str) -> bool:
    """Whether the rows of a data set are images."""
    return name in ENTRIES and ENTRIES[name].image_shape is not None


def classifier_config(
    variant: str | None, method: str, **changes: Any
) -> ml_collections.ConfigDict:
    """The setting of CTRE, section 4.1: classification, the best epoch by validation accuracy.

    Args:
      variant: a data set and ``quick``, as for ``configs.common.parse_variant``.
      method: its name; on ``digits`` its network becomes a smaller one.
      **changes: fields of ``config.method`` with other values than the method's defaults.
    """
    read = parse_variant(variant)
    name, quick = read.name, read.quick
    config = base_config(read, method_fields(method, **changes))
    config.num_features = num_features(name)
    config.seeds = SEEDS[:2] if quick else SEEDS
    config.data.split = "wast"
    config.data.scaling = "standard" if name.startswith("madelon") else "minmax"
    config.data.valid_fraction = 0.1
    config.train.num_epochs = 5 if quick else 500
    config.train.batch_size = 100
    config.train.shuffle, config.train.drop_last = True, True
    config.train.best_by = "accuracy" if config.task == "classification" else "loss"
    config.train.record_test = True
    if name == "digits":
        config.method.hidden = (200, 200, 200)
        if "epsilon" in config.method:
            config.method.epsilon = 5.0
        config.train.num_epochs = min(config.train.num_epochs, 100)
        config.train.batch_size = 32
    return config
