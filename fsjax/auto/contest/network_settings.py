"""Networks of the library inside ``fsjax select``: which compete, their settings and their costs.

One training has to rank all columns within seconds, so the settings differ from the published
defaults: no search for a penalty that keeps exactly K columns, one ranking for all numbers of
columns, and the whole table as the batch if it is small.

All rows of small tables train, and the last epoch is kept, because a tenth of a hundred rows cannot
identify a good epoch: on an exclusive or in 128 rows, Deep Lasso found both columns in 9 of 10
draws with its last epoch, and in 1 with the best epoch on validation rows. On Madelon, with 1,050
rows, its last epoch is worse. A method that is not listed here trains with its registered defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from fsjax import FitResult
from fsjax.auto.contest import contender_order
from fsjax.methods import METHODS, get_method
from fsjax.registry import Registration
from fsjax.tasks import get_task

#: Tables of at most so many rows are one batch; larger ones are split into batches of this size.
BATCH_ROWS = 256

#: Most columns that a method with a fixed number selects; the other columns follow by score.
MAX_SELECTED = 50

#: Share of the rows that validates, if any do.
VALIDATION = 0.1

#: The most columns that a network trains on. On arcene and ALLAML networks selected better from the
#: best 1,000 columns than from all, at a fifth of the cost (docs/selecting.md).
MAX_COLUMNS = 1000

#: The most rows that a method trains on; a sample is drawn from more.
MAX_ROWS = 4000


class ContenderTraining(NamedTuple):
    """Settings of one training.

    Attributes:
      settings: arguments of the method's builder.
      steps: optimiser steps.
      most_rows: the most rows that take part.
      validates_from: number of rows from which a tenth of them validates and decides which epoch is
        kept; with fewer, or if None, all rows train and the last epoch is kept.
      whole: whether the batch is the whole table, whatever its size.
      importance: from a result to the importance ``(S, D)`` of the columns, if the scores of the
        method do not order the columns that it selects.
    """

    settings: Mapping[str, Any]
    steps: int
    most_rows: int = MAX_ROWS
    validates_from: int | None = None
    whole: bool = False
    importance: Callable[[FitResult], np.ndarray] | None = None


def selected_weights(result: FitResult) -> np.ndarray:
    """Importance ``(S, D)`` of each column to the decoder of IP-CAE.

    The probability of a column in a selector times the norm of the decoder's weights of that
    selector, summed over the selectors. Trained selectors are nearly deterministic, so that
    probabilities alone do not order the selected columns.
    """
    selector, decoder = result.states.params["selector"], result.states.params["decoder"]
    logits = np.asarray(selector["psi"]) @ np.asarray(selector["kernel"])
    logits = logits + np.asarray(selector["bias"])[:, None]
    probability = softmax(logits, axis=2)
    norms = np.linalg.norm(np.asarray(decoder["FanInDense_0"]["Dense_0"]["kernel"]), axis=2)
    weights = np.einsum("sk,skd->sd", norms, probability)
    return np.where(np.asarray(result.states.feature_mask), weights, -np.inf)


#: Trainings on wide tables, with more columns than rows; ``_NARROW`` overrides them on others.
TRAININGS: Mapping[str, ContenderTraining] = MappingProxyType(
    {
        "binmask": ContenderTraining({"search": False}, steps=500),
        "ip_cae": ContenderTraining(
            {"embedding_dim": 64, "hidden": (), "layer_norm": False, "learning_rate": 0.003},
            steps=200,
            importance=selected_weights,
        ),
        "sand": ContenderTraining({"learning_rate": 0.003}, steps=500),
        "lassonet": ContenderTraining(
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
        "stg": ContenderTraining({"search": False}, steps=500),
        "deep_lasso": ContenderTraining({}, steps=500, validates_from=500),
    }
)

#: With as many rows as columns, columns that matter only together can be learned (Madelon, an
#: exclusive or); this takes a network behind the selectors, and more steps.
_NARROW: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "binmask": {"steps": 1500},
        "ip_cae": {
            "settings": {**TRAININGS["ip_cae"].settings, "hidden": (64,)},
            "steps": 600,
        },
    }
)


def training_of(facts: Registration, rows: int, columns: int) -> ContenderTraining | None:
    """The training of a method on a table of this shape, or None if the method is not listed."""
    training = TRAININGS.get(facts.name)
    if training is None or columns > rows:
        return training
    return training._replace(**_NARROW.get(facts.name, {}))


def validation_share(training: ContenderTraining | None, rows: int) -> float:
    """The share of the rows that validates."""
    if training is None:
        return VALIDATION
    starts = training.validates_from
    return VALIDATION if starts is not None and rows >= starts else 0.0


def fit_options(
    facts: Registration, training: ContenderTraining | None, rows: int, task: str
) -> dict[str, Any]:
    """Options of :func:`fsjax.fit` for a training.

    Args:
      rows: number of rows that train or validate.
    """
    coupled = get_task(task).objective.coupled
    if training is None:
        size = "auto" if coupled else facts.batch_size
        return {"num_epochs": facts.num_epochs, "batch_size": size, **facts.training}
    one_batch = training.whole or coupled or rows <= BATCH_ROWS
    steps_per_epoch = 1 if one_batch else math.ceil(rows / BATCH_ROWS)
    return {
        "num_epochs": math.ceil(training.steps / steps_per_epoch),
        "batch_size": "auto" if coupled else None if one_batch else BATCH_ROWS,
        "shuffle": not one_batch,
        "best_by": "loss" if validation_share(training, rows) else "last",
    }


def fits_task(name: str, task: str) -> bool:
    """Whether a method of the library can select columns for a task."""
    return bool({task, "reconstruction"}.intersection(get_method(name)().about.tasks))


def contenders(rows: int, columns: int, task: str) -> tuple[str, ...]:
    """Names of the methods that compete on a table, the most promising first.

    Dense and sparse tables have the same ones: networks train on the columns that screening keeps,
    made dense.

    Args:
      task: the task; methods that do not support it are left out.
    """
    names = contender_order.WIDE if columns > rows else contender_order.NARROW
    return tuple(name for name in names if fits_task(name, task))


class Cost(NamedTuple):
    """CPU seconds of a method, measured on one core of a server CPU of 2023 (AVX-512).

    Attributes:
      program: to compile and load the programs of the first training.
      kept_program: to load them from the compilation cache.
      step: per optimiser step, without matrix products.
      cell: per step and cell (row of the batch times column).
      column: per step and column.
      steps: usual number of steps, if the training ends by itself.
    """

    program: float
    kept_program: float
    step: float
    cell: float
    column: float = 0.0
    steps: int | None = None


#: Filters take one step, over all cells.
COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        "icap": Cost(0.2, 0.2, 1e-3, 8e-7, column=2.5e-4, steps=1),
        "l1_l21": Cost(0.2, 0.15, 4e-3, 1.5e-6, steps=1),
        "binmask": Cost(1.4, 0.5, 1.8e-4, 3e-9),
        "ip_cae": Cost(1.7, 0.6, 1.1e-4, 1.5e-9, column=1.6e-6),
        "sand": Cost(1.6, 0.5, 1.6e-4, 1.3e-8),
        "lassonet": Cost(2.5, 0.6, 3e-5, 3e-9, steps=1000),
        "deep_lasso": Cost(1.8, 0.6, 3.4e-4, 2e-8),
        "stg": Cost(1.3, 0.5, 1.6e-4, 4e-9),
    }
)

#: For methods that were not measured: the highest costs and the most steps of those that were.
_MANY_STEPS = 3000
_UNKNOWN = Cost(4.0, 1.5, 1e-3, 2.1e-8, steps=_MANY_STEPS)


def network_seconds(
    name: str,
    rows: int,
    columns: int,
    folds: int = 5,
    kept: bool = False,
) -> float:
    """Expected CPU seconds of :func:`fsjax.auto.contest.network_rankings.rank_folds`.

    Args:
      name: of a method; one that was not measured counts as slow.
      kept: whether the programs are in the compilation cache, or already in this process.

    Returns:
      Seconds on the machine of :data:`COSTS`; multiply by the pace of another one.
    """
    cost = COSTS.get(name, _UNKNOWN)
    facts = METHODS[name].registration if name in METHODS else None
    training = None if facts is None else training_of(facts, rows, columns)
    seen_columns, seen_rows = min(columns, MAX_COLUMNS), min(rows, MAX_ROWS)
    steps = cost.steps or (_MANY_STEPS if training is None else training.steps)
    if training is not None:
        seen_rows = min(rows, training.most_rows)
        if not training.whole and seen_rows > BATCH_ROWS:
            seen_rows = BATCH_ROWS
    step = cost.step + cost.cell * seen_rows * seen_columns + cost.column * seen_columns
    return (cost.kept_program if kept else cost.program) + folds * steps * step
