"""Shared code of the configurations: variants, and the settings of data sets.

A variant is a list of words after the colon of ``--config=configs/ip_cae.py:WORDS``: a data set, a
task and ``quick`` in any order, for example ``coil20``, ``isolet,reconstruction`` or
``mnist,quick``. A task of your own is ``module:function`` with its arguments, for example
``my_tasks:quantile(0.9)``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import ml_collections
from ml_collections import config_dict

from fsjax.data import available
from fsjax.errors import ConfigError, nearest
from fsjax.evaluation.sampling import SAMPLE_ROWS
from fsjax.methods import get_method
from fsjax.tasks import COUPLED_BATCH, TASKS, get_task
from fsjax.tasks.registry import is_registered

#: The function that every configuration file defines; its argument is the variant.
GetConfig = Callable[..., ml_collections.ConfigDict]

#: The ten seeds of the IP-CAE paper (A.3).
PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 1010)

#: K and batch size for the IP-CAE paper's data sets (its Table 4 and configurations).
PAPER_SETTINGS = {
    "coil20": (50, 16),
    "isolet": (50, 128),
    "har": (50, 128),
    "mnist": (50, 128),
    "fashion_mnist": (50, 128),
    "mice_protein": (10, 16),
}

#: K and batch size for data sets that are not in that paper.
OTHER_SETTINGS = {
    "digits": (10, 32),
    "madelon": (20, 128),
    "madelon_like": (20, 128),
    "ehr_like": (50, 128),
    "ring_xor_sum": (6, 128),
    "arcene": (150, 16),
    "dexter": (150, 16),
    "smk_can_187": (50, 16),
    "gla_bra_180": (50, 16),
    "allaml": (50, 16),
}

#: The protocol by which a fresh network judges columns, for the two tasks of the IP-CAE paper.
FRESH_NETWORK = {"classification": "retrain", "reconstruction": "reconstruct"}

#: The optimizer of BinMask's authors in sections 4.1 and 4.2.
SGD = {
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "final_learning_rate": 1e-5,
    "momentum": 0.9,
    "weight_decay": 5e-4,
}


class Variant(NamedTuple):
    """The words after the colon of ``--config``: a data set, a task, and ``quick``."""

    name: str
    task: str
    quick: bool


def words_of(variant: str | None) -> list[str]:
    """Splits a variant at its commas, except those between the arguments of a task."""
    words, depth = [""], 0
    for character in variant or "":
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            words.append("")
        else:
            words[-1] += character
    return [word for word in words if word]


def names_own_task(word: str) -> bool:
    """Whether a word of a variant is a registered task, rather than a built-in one."""
    return "(" in word or is_registered(word)


def sort_words(variant: str | None, *kinds: Collection[str]) -> tuple[list[str], ...]:
    """The words of a variant that belong to each kind.

    Raises:
      ConfigError: for a word that does not belong to any kind, and for two of a kind.
    """
    words, known = words_of(variant), list(chain(*kinds))
    for word in words:
        if word not in known:
            raise ConfigError(f"unknown variant {word!r}: {nearest(word, known)}")
    sorted_words = tuple([word for word in words if word in kind] for kind in kinds)
    for chosen in sorted_words:
        if len(chosen) > 1:
            raise ConfigError(f"variant {variant!r} has {' and '.join(chosen)}; choose one")
    return sorted_words


def parse_variant(
    variant: str | None, task: str = "classification", name: str = "digits"
) -> Variant:
    """Parses a variant; ``task`` and ``name`` are used if it names no task or no data set.

    Raises:
      ConfigError: for a word that is not a data set, a task or ``quick``, for two of a kind, and
        for arguments that a task does not have.
    """
    own_tasks = [word for word in words_of(variant) if names_own_task(word)]
    for word in own_tasks:
        get_task(word)
    names, tasks, quick = sort_words(variant, available(), [*TASKS, *own_tasks], ("quick",))
    return Variant([name, *names][-1], [task, *tasks][-1], bool(quick))


def method_fields(name: str, **changes: Any) -> dict[str, Any]:
    """Fields of ``config.method``: the defaults of a method, with the ``changes`` of a paper."""
    registration = get_method(name).registration
    fields = registration.defaults()
    for field, default in fields.items():
        if default is None:
            base = registration.kinds[field].base
            fields[field] = config_dict.placeholder(tuple if base is Sequence else base or object)
    return {"name": name, **fields, **changes}


def data_fields(name: str, split: str, scaling: str) -> dict[str, Any]:
    """Fields of ``config.data`` that all configurations but one comparison have."""
    empty = {field: config_dict.placeholder(str) for field in ("dir", "target", "impute")}
    dense = {"dense": config_dict.placeholder(bool)}
    return {"name": name, **empty, **dense, "split": split, "scaling": scaling}


def base_config(
    variant: Variant,
    method: dict[str, Any],
    seeds: Sequence[int] = PAPER_SEEDS,
    num_epochs: int = 200,
    **train: Any,
) -> ml_collections.ConfigDict:
    """The configuration of a data set as the papers run it, with all fields of ``experiments.run``.

    Args:
      variant: data set, task and whether the run is quick.
      method: fields of ``config.method``.
      seeds, num_epochs: those of runs that are not quick.
      **train: fields of ``config.train`` whose values differ from those of IP-CAE.
    """
    name, task, quick = variant
    in_paper = name in PAPER_SETTINGS
    k, batch_size = PAPER_SETTINGS.get(name) or OTHER_SETTINGS.get(name, (50, 128))
    config = ml_collections.ConfigDict(
        {
            "method": method,
            "data": {
                **data_fields(name, "paper", "paper"),
                "split_per_seed": False,
                "valid_fraction": config_dict.placeholder(float),
                "noise_std": 0.0,
            },
            "task": task,
            "num_features": k,
            "seeds": seeds[:2] if quick else seeds,
            "train": {
                "num_epochs": min(5, num_epochs) if quick else num_epochs,
                "batch_size": batch_size,
                "min_steps_per_epoch": 1,
                # The authors' loader keeps the order of its split and drops the last batch.
                "shuffle": not in_paper,
                "drop_last": in_paper,
                # Empty to use the value of the method.
                "best_by": config_dict.placeholder(str),
                "record_test": False,
                "seed_axis": "auto",
                "batch_devices": 1,
                "checkpoint_every": 20,
            },
            "evaluation": {
                "protocols": ("embedded",),
                "num_features": (),
                # Rows of tables on disk that are loaded for protocols that need them in memory.
                "sample_rows": SAMPLE_ROWS,
                # The classifier of IP-CAE's Tables 1 and 2: one hidden layer of 200.
                "retrain": {
                    "network": "mlp",
                    "hidden": (200,),
                    "activation": "leaky_relu",
                    "batch_norm": False,
                    "layer_norm": True,
                    "dropout": 0.0,
                    "optimizer": "adam",
                    "learning_rate": 1e-3,
                    "final_learning_rate": config_dict.placeholder(float),
                    "momentum": 0.9,
                    "weight_decay": 0.0,
                    "num_epochs": 5 if quick else 200,
                    "batch_size": batch_size,
                    "min_steps_per_epoch": 1,
                    "best_by": "loss",
                },
            },
        }
    )
    config.train.update(train)
    return take_whole_tables(config)


def take_whole_tables(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """Enlarges batches for tasks whose loss compares rows (survival), so that small tables fit."""
    if get_task(config.task).objective.coupled:
        batch_size = max(config.train.batch_size, COUPLED_BATCH)
        config.train.update(batch_size=batch_size, drop_last=False)
        config.evaluation.retrain.batch_size = COUPLED_BATCH
    return config


def concrete_config(method: str, **changes: Any) -> GetConfig:
    """The setting of the IP-CAE paper for a method, with ``changes`` of its fields."""

    def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
        return base_config(parse_variant(variant), method_fields(method, **changes))

    return get_config


def gates_config(method: str, changes: Mapping[str, Any] = {}) -> GetConfig:
    """The setting of BinMask, section 4.1: columns judged by a retrained network.

    On the data sets of the IP-CAE paper it is that paper's setting instead: its splits, scaling and
    K, and the classifier of its Tables 1 and 2. Keys of ``changes`` are ``section.field``.
    """

    def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
        read = parse_variant(variant)
        train = {"shuffle": True, "drop_last": False, "batch_size": 256, "min_steps_per_epoch": 30}
        config = base_config(read, method_fields(method), tuple(range(8)), 100, **train)
        config.evaluation.protocols = (FRESH_NETWORK.get(read.task, "retrain"), "embedded")
        if read.name not in PAPER_SETTINGS:
            config.data.scaling = "minmax"
        config.update_from_flattened_dict(changes)
        return take_whole_tables(config)

    return get_config
