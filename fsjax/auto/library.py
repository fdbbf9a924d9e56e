"""Selectors of the library as contenders: what one training says for every size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsjax.auto.preparation import Part
from fsjax.auto.rankers import Ranking, rank_units
from fsjax.data.dataset import Dataset
from fsjax.data.splits import Split, validation_split
from fsjax.engine import fit, fit_sizes
from fsjax.engine.result import FitResult
from fsjax.registry import about_of, get_method
from fsjax.tasks import TABLE

#: Those that hold their own on ordinary tables with default settings, cheapest first.
CONTENDERS = ("icap", "l1_l21", "deep_lasso", "lassonet", "binmask", "stg")

#: Share of the training rows that tells the best epoch.
_VALID = 0.1


def fits_task(name: str, task: str) -> bool:
    """Whether a method of the library can select columns for a task."""
    return bool(
        {task, "reconstruction"}.intersection(about_of(get_method(name).registration).tasks)
    )


def takes_sparse(name: str) -> bool:
    """Whether a method of the library trains on a sparse table without making it dense."""
    return about_of(get_method(name).registration).sparse


def rank(
    name: str, part: Part, task: str, groups: np.ndarray, sizes: Sequence[int], seed: int
) -> Ranking:
    """Trains a method of the library on some rows, with its default settings.

    Args:
      name: of a registered method.
      part: training rows, a share of which validates.
      task: the task.
      groups: ``(D,)`` the unit of each column.
      sizes: numbers of units that are wanted.
      seed: of the training, and of the rows that validate.
    """
    build = get_method(name)
    facts = build.registration
    about = about_of(facts)
    task = task if task in about.tasks else "reconstruction"
    # Roots of counts are numbers like others, whatever their size.
    task, y = ("regression", np.sqrt(part.y)) if task == "counts" else (task, part.y)
    if task == "regression":
        mean, deviation = TABLE[task].scale(y)
        y = (y - mean) / deviation
    dataset = Dataset("table", part.X.astype(np.float32), y)
    strata = TABLE[task].strata(y)
    train, valid = validation_split(len(y), _VALID, seed, strata)
    own_groups = about.takes_groups and int(groups.max()) + 1 < len(groups)
    options = {
        "seeds": (seed,),
        "task": task,
        "batch_size": "auto" if TABLE[task].coupled else facts.batch_size,
        "num_epochs": facts.num_epochs,
        "split": Split(train, valid, valid[:0]),
        "scaling": facts.scaling,
        **facts.training,
        **({"groups": groups} if own_groups else {}),
    }
    if "num_features" in facts.parameters:
        found = {size: fit(build(num_features=size), dataset, **options) for size in sizes}
    elif own_groups or len(groups) == int(groups.max()) + 1:
        found = fit_sizes(build(), dataset, sizes, **options)
    else:
        # Columns of a unit are ranked one by one; a unit counts by its best.
        (result,) = fit_sizes(build(), dataset, [max(sizes)], **options).values()
        return rank_units(_finite(result), groups, sizes)
    scores = _finite(found[max(sizes)])
    units = rank_units(scores, np.arange(len(scores)), sizes)
    if len(scores) == len(groups):
        units = rank_units(scores, groups, sizes)
    return Ranking({size: _order(found[size], units, groups) for size in sizes}, units.scores)


def _order(result: FitResult, units: Ranking, groups: np.ndarray) -> np.ndarray:
    """The selection of a result as units."""
    selected = np.asarray(result.selected[0])
    if result.scores.shape[1] == len(groups):
        selected = groups[selected]
    return np.fromiter(dict.fromkeys(selected.tolist()), int)


def _finite(result: FitResult) -> np.ndarray:
    scores = np.asarray(result.scores[0], np.float64)
    return np.where(np.isnan(scores), -np.inf, scores)
