"""Shared settings of the configurations of sparse networks: those of the WAST and CTRE papers."""

from typing import Any

import ml_collections

from configs.common import GetConfig, base_config, method_fields, parse_variant
from fsjax.errors import ConfigError
from fsjax.tables.datasets.catalog import ENTRIES

#: The five seeds of the WAST paper's code.
SEEDS = (0, 1, 2, 3, 4)

#: Numbers of columns that the WAST paper evaluates (Table 5).
WAST_NUM_FEATURES = (25, 50, 75, 100, 150, 200)

#: The methods of CTRE, Table 2.
CTRE_METHODS = ("ctre_sim", "ctre_seq", "set", "rigl", "snip", "static_sparse", "dense")

#: Data sets on which a support vector machine takes minutes for each number of columns.
LARGE = ("mnist", "fashion_mnist", "cifar10", "cifar100")


def num_features(name: str) -> int:
    """K: 20 for Madelon (WAST, appendix A.1), 10 for ``digits``, 50 for all others."""
    return {"madelon": 20, "madelon_like": 20, "digits": 10}.get(name, 50)


def autoencoder_config(method: str, num_epochs: int, task: str = "reconstruction") -> GetConfig:
    """The setting of WAST, appendix A: columns judged by a support vector machine."""

    def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
        read = parse_variant(variant, task)
        if read.task != task:
            raise ConfigError(f"{method} is trained for {task} here; leave {read.task!r} out")
        train = {"batch_size": 128, "shuffle": True, "drop_last": False, "best_by": "last"}
        config = base_config(read, method_fields(method), SEEDS, num_epochs, **train)
        name, k = read.name, num_features(read.name)
        # One mean and one standard deviation for the whole matrix, as the authors' code has it.
        config.data.update(split="wast", scaling="scalar", valid_fraction=0.0)
        config.num_features = k
        config.evaluation.protocols = ("svm", "embedded") if task == "reconstruction" else ("svm",)
        small = name in ENTRIES and name not in LARGE
        if small and ENTRIES[name].shape[1] > max(WAST_NUM_FEATURES) and k != 20 and not read.quick:
            config.evaluation.num_features = tuple(n for n in WAST_NUM_FEATURES if n != k)
        return config

    return get_config


def classifier_config(method: str) -> GetConfig:
    """The setting of CTRE, section 4.1: classification, the best epoch by validation accuracy.

    Three hidden layers of 1000, epsilon 1 and 500 epochs; a smaller network on ``digits``. Results
    in the configurations are test accuracies at that epoch; times were measured on 2 cores that
    also ran other programs.
    """

    def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
        read = parse_variant(variant)
        small = read.name == "digits"
        train: dict[str, Any] = {
            "batch_size": 32 if small else 100,
            "shuffle": True,
            "drop_last": True,
            "best_by": "accuracy" if read.task == "classification" else "loss",
            "record_test": True,
        }
        config = base_config(read, method_fields(method), SEEDS, 100 if small else 500, **train)
        config.num_features = num_features(read.name)
        scaling = "standard" if read.name.startswith("madelon") else "minmax"
        config.data.update(split="wast", scaling=scaling, valid_fraction=0.1)
        if method in CTRE_METHODS:
            config.method.rank_by = "strength"
            if not small:
                config.method.hidden = (1000, 1000, 1000)
            if not small and method != "dense":
                config.method.epsilon = 1.0
        return config

    return get_config
