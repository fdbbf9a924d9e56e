"""Settings with which each network of the library trains inside ``fsjax select``.

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

from fsjax.engine.result import FitResult
from fsjax.methods.shared.network import FIRST_LAYER
from fsjax.registry import Registration
from fsjax.tasks import TABLE

#: Tables of at most so many rows are one batch; larger ones are split into batches of this size.
BATCH_ROWS = 256

#: Most columns that a method with a fixed number selects; the other columns follow by score.
MOST_SELECTED = 50

#: Share of the rows that validates, if any do.
VALIDATION = 0.1

#: The most rows that a method trains on; a sample is drawn from more.
MOST_ROWS = 4000


class Training(NamedTuple):
    """Settings of one training.

    Attributes:
      settings: arguments of the method's builder.
      steps: optimiser steps at full effort.
      most_rows: the most rows that take part.
      validates_from: number of rows from which a tenth of them validates and decides which epoch is
        kept; with fewer, or if None, all rows train and the last epoch is kept.
      whole: whether the batch is the whole table, whatever its size.
      importance: from a result to the importance ``(S, D)`` of the columns, if the scores of the
        method do not order the columns that it selects.
    """

    settings: Mapping[str, Any]
    steps: int
    most_rows: int = MOST_ROWS
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
    norms = np.linalg.norm(np.asarray(decoder[FIRST_LAYER]["Dense_0"]["kernel"]), axis=2)
    # The first columns of all groups come first, then the second ones; without groups there is one.
    selector_norms = norms.reshape(len(norms), -1, logits.shape[1]).sum(axis=1)
    weights = np.einsum("sk,skd->sd", selector_norms, probability)
    return np.where(np.asarray(result.states.feature_mask), weights, -np.inf)


#: Trainings on wide tables, with more columns than rows; ``_NARROW`` overrides them on others.
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


def training_of(facts: Registration, rows: int, columns: int) -> Training | None:
    """The training of a method on a table of this shape, or None if the method is not listed."""
    training = TRAININGS.get(facts.name)
    if training is None or columns > rows:
        return training
    return training._replace(**_NARROW.get(facts.name, {}))


def validation_share(training: Training | None, rows: int) -> float:
    """The share of the rows that validates."""
    if training is None:
        return VALIDATION
    starts = training.validates_from
    return VALIDATION if starts is not None and rows >= starts else 0.0


def fit_options(
    facts: Registration, training: Training | None, rows: int, task: str, effort: float
) -> dict[str, Any]:
    """Options of :func:`fsjax.fit` for a training.

    Args:
      facts: registration of the method.
      training: from :func:`training_of`.
      rows: number of rows that train or validate.
      task: the task.
      effort: share of the optimiser steps, in (0, 1].
    """
    coupled = TABLE[task].coupled
    if training is None:
        epochs = max(1, round(facts.num_epochs * effort))
        size = "auto" if coupled else facts.batch_size
        return {"num_epochs": epochs, "batch_size": size, **facts.training}
    steps = max(1, round(training.steps * effort))
    one_batch = training.whole or coupled or rows <= BATCH_ROWS
    steps_per_epoch = 1 if one_batch else math.ceil(rows / BATCH_ROWS)
    return {
        "num_epochs": math.ceil(steps / steps_per_epoch),
        "batch_size": "auto" if coupled else None if one_batch else BATCH_ROWS,
        "shuffle": not one_batch,
        "best_by": "loss" if validation_share(training, rows) else "last",
    }
