"""How long and with which settings each network of the library trains inside ``fsjax select``.

One training has to rank all columns within seconds, so the settings differ from the published
defaults: no search for a penalty that keeps exactly K columns, one ranking for all numbers of
columns, the whole table as the batch where it is small.

All rows of small tables train, and the last epoch is kept, as a tenth of a hundred rows does not
tell a good epoch from others: Deep Lasso found an exclusive or in 128 rows in 9 of 10 draws by its
last epoch, in 1 by the best on validation rows. On Madelon, with 1,050 rows, its last epoch is the
worse one. A method that is not listed here trains with its registered defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from fsjax.engine.result import FitResult
from fsjax.methods.shared.network import FIRST_LAYER
from fsjax.registry import Registration
from fsjax.tasks import TABLE

#: Tables of at most so many rows are one batch; larger ones are visited in batches of this size.
BATCH_ROWS = 256

#: Numbers of columns that a method selects which is built for one number; others follow by score.
MOST_SELECTED = 50

#: Share of the rows that validates, where any do.
VALIDATION = 0.1

#: The most rows that a method trains on; more are drawn from.
MOST_ROWS = 4000


class Training(NamedTuple):
    """Settings of one training.

    Attributes:
      settings: arguments of the method's builder.
      steps: optimiser steps at full effort.
      most_rows: the most rows that take part.
      validates_from: rows from which a tenth of them tells the epoch that is kept; below, all rows
        train and the last epoch is kept. None is never.
      whole: whether the batch is the whole table, whatever its size.
      importance: ``(S, D)`` of the columns from a result, in place of the method's scores, where
        these do not order the columns that it picks.
    """

    settings: Mapping[str, Any]
    steps: int
    most_rows: int = MOST_ROWS
    validates_from: int | None = None
    whole: bool = False
    importance: Callable[[FitResult], np.ndarray] | None = None


def selected_weights(result: FitResult) -> np.ndarray:
    """``(S, D)`` what the decoder of IP-CAE makes of each column.

    The probability that a selector gives a column times the norm of the decoder's weights of that
    selector, summed over the selectors. Selectors end sure of their column, so that probabilities
    alone do not tell which of the picked columns matter more.
    """
    selector, decoder = result.states.params["selector"], result.states.params["decoder"]
    logits = np.asarray(selector["psi"]) @ np.asarray(selector["kernel"])
    logits = logits + np.asarray(selector["bias"])[:, None]
    probability = softmax(logits, axis=2)
    norms = np.linalg.norm(np.asarray(decoder[FIRST_LAYER]["Dense_0"]["kernel"]), axis=2)
    # The first columns of all groups come first, then the second ones; without groups there is one.
    of_selectors = norms.reshape(len(norms), -1, logits.shape[1]).sum(axis=1)
    weights = np.einsum("sk,skd->sd", of_selectors, probability)
    return np.where(np.asarray(result.states.feature_mask), weights, -np.inf)


#: Trainings of wide tables, with more columns than rows; others change what ``_NARROW`` names.
TRAININGS: Mapping[str, Training] = MappingProxyType(
    {
        "binmask": Training({"search": False}, steps=500),
        "ip_cae": Training(
            {"embedding_dim": 64, "hidden": (), "layer_norm": False, "learning_rate": 0.003},
            steps=200,
            importance=selected_weights,
        ),
        "entryprune": Training({"every": 5, "candidates": 0.5}, steps=500),
        "lassonet": Training(
            {
                "hidden": (32,),
                "path_multiplier": 1.2,
                "dense_epochs": 200,
                "dense_patience": 20,
                "path_epochs": 20,
                "path_patience": 3,
            },
            steps=3000,
            most_rows=1000,
            whole=True,
        ),
        "stg": Training({"search": False}, steps=500),
        "deep_lasso": Training({}, steps=500, validates_from=500),
    }
)

#: With as many rows as columns, columns that matter only together can be learnt (Madelon, an
#: exclusive or); that needs a network behind the selectors, and longer.
_NARROW: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "binmask": {"steps": 1500},
        "ip_cae": {
            "settings": {**TRAININGS["ip_cae"].settings, "hidden": (64,)},
            "steps": 600,
        },
    }
)


def training_of(facts: Registration, rows: int, columns: int) -> Training | None:
    """The training of a method on a table of this shape, or None for one that is not listed."""
    training = TRAININGS.get(facts.name)
    if training is None or columns > rows:
        return training
    return training._replace(**_NARROW.get(facts.name, {}))


def validation_share(training: Training | None, rows: int) -> float:
    """Share of so many rows that validates."""
    if training is None:
        return VALIDATION
    starts = training.validates_from
    return VALIDATION if starts is not None and rows >= starts else 0.0


def fit_options(
    facts: Registration, training: Training | None, rows: int, task: str, effort: float
) -> dict[str, Any]:
    """Options of :func:`fsjax.fit` for a training on so many rows.

    Args:
      facts: of the method.
      training: as :func:`training_of` has it.
      rows: that train or validate.
      task: the task.
      effort: share of the optimiser steps, in (0, 1].
    """
    coupled = TABLE[task].coupled
    if training is None:
        epochs = max(1, round(facts.num_epochs * effort))
        size = "auto" if coupled else facts.batch_size
        return {"num_epochs": epochs, "batch_size": size, **facts.training}
    steps = max(1, round(training.steps * effort))
    whole = training.whole or coupled or rows <= BATCH_ROWS
    steps_per_epoch = 1 if whole else math.ceil(rows / BATCH_ROWS)
    return {
        "num_epochs": math.ceil(steps / steps_per_epoch),
        "batch_size": "auto" if coupled else None if whole else BATCH_ROWS,
        "shuffle": not whole,
        "best_by": "loss" if validation_share(training, rows) else "last",
    }
