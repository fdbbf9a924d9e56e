"""What the configs of the concrete family share: data sets, their settings, variants.

A variant is a list of words after the colon of ``--config=configs/ip_cae.py:WORDS``: a data set,
a task and ``quick`` in any order, such as ``coil20``, ``isolet,reconstruction`` or ``mnist,quick``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_collections
from ml_collections import config_dict

from fsjax.data import available
from fsjax.errors import ConfigError, nearest
from fsjax.methods import get_method
from fsjax.tasks import TASKS

#: The ten seeds of the IP-CAE paper (A.3).
PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 1010)

#: K and rows per step of the IP-CAE paper's data sets (Table 4 and its configurations).
PAPER_SETTINGS = {
    "coil20": (50, 16),
    "isolet": (50, 128),
    "har": (50, 128),
    "mnist": (50, 128),
    "fashion_mnist": (50, 128),
    "mice_protein": (10, 16),
}

#: K and rows per step where that paper has no table.
OTHER_SETTINGS = {
    "digits": (10, 32),
    "madelon": (20, 128),
    "madelon_like": (20, 128),
    "ehr_like": (50, 128),
    "arcene": (150, 16),
    "dexter": (150, 16),
    "smk_can_187": (50, 16),
    "gla_bra_180": (50, 16),
    "allaml": (50, 16),
}


class Variant(NamedTuple):
    """What stands after the colon of ``--config``: a data set, a task, and ``quick``."""

    name: str
    task: str
    quick: bool


def parse_variant(
    variant: str | None, task: str = "classification", name: str = "digits"
) -> Variant:
    """Data set, task and whether a quick run is asked for.

    Args:
      variant: words joined by commas.
      task, name: where no word says so.

    Raises:
      ConfigError: for a word that is none of these.
    """
    quick = False
    for word in filter(None, (variant or "").split(",")):
        if word == "quick":
            quick = True
        elif word in TASKS:
            task = word
        elif word in available():
            name = word
        else:
            known = (*available(), *TASKS, "quick")
            raise ConfigError(f"unknown variant {word!r}: {nearest(word, known)}")
    return Variant(name, task, quick)


def method_fields(name: str, **changes: Any) -> dict[str, Any]:
    """Fields of ``config.method``: the method's own defaults.

    Args:
      name: of a registered method, or ``module:function``.
      **changes: where a paper has other values.
    """
    one = get_method(name).registration
    empty = {
        field: config_dict.placeholder(
            tuple if one.kinds[field].base is Sequence else one.kinds[field].base or object
        )
        for field, default in one.defaults().items()
        if default is None
    }
    return {"name": name, **one.defaults(), **empty, **changes}


def base_config(variant: Variant, method: dict[str, Any]) -> ml_collections.ConfigDict:
    """The configuration of a data set as the papers run it.

    Args:
      variant: see :func:`parse_variant`.
      method: see :func:`method_fields`.

    Returns:
      The configuration, with every field that ``experiments/run.py`` reads.
    """
    name, task, quick = variant
    in_paper = name in PAPER_SETTINGS
    k, batch_size = PAPER_SETTINGS.get(name) or OTHER_SETTINGS.get(name, (50, 128))
    return ml_collections.ConfigDict(
        {
            "method": method,
            "data": {
                "name": name,
                "dir": config_dict.placeholder(str),
                "target": config_dict.placeholder(str),
                "impute": config_dict.placeholder(str),
                "split": "paper",
                "split_per_seed": False,
                "scaling": "paper",
                "valid_fraction": config_dict.placeholder(float),
                "noise_std": 0.0,
            },
            "task": task,
            "num_features": k,
            "seeds": PAPER_SEEDS[:2] if quick else PAPER_SEEDS,
            "train": {
                "num_epochs": 5 if quick else 200,
                "batch_size": batch_size,
                "min_steps_per_epoch": 1,
                # The authors' loader keeps the order of its split and drops the last batch.
                "shuffle": not in_paper,
                "drop_last": in_paper,
                # Empty for what the method says.
                "best_by": config_dict.placeholder(str),
                "record_test": False,
                "seed_axis": "auto",
                "checkpoint_every": 20,
            },
            "evaluation": {
                "protocols": ("embedded",),
                "num_features": (),
                "retrain": ip_cae_classifier(quick) | {"batch_size": batch_size},
            },
        }
    )


def ip_cae_classifier(quick: bool = False) -> dict[str, Any]:
    """The network of the retrain protocol in IP-CAE's Tables 1 and 2: one hidden layer of 200."""
    return {
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
        "min_steps_per_epoch": 1,
        "best_by": "loss",
    }
