"""A row of data for each table, selector and split."""

from __future__ import annotations

import contextlib
import functools
import operator
import platform
import warnings
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.arena import judges, submission, tables
from experiments.arena.processes import Limits, Outcome, call
from experiments.arena.selectors import RANDOM, SELECTORS, Answer, NotForTask, Select
from experiments.arena.tables import TABLES, Split
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError

#: The control that is judged on all columns.
ALL = "all columns"

#: Random states of the outer splits.
SPLITS = (0, 1, 2)

#: Draws of random columns, whose mean scores count: few that matter may be drawn by luck.
DRAWS = 5

#: The failure of a selector that cannot learn from a kind of target; it does not count.
NOT_FOR_TASK = "not for this task"

#: What a selector returns.
_ANSWER = (
    "return indices of columns, best first, in an array or a list, or a tuple (ranking, number)"
)

#: Limits of a judge: they are the same for all, and generous.
_JUDGING = Limits(3600.0, 32_000.0)


class Job(NamedTuple):
    """A table, a selector (a name, or ``FILE.py:NAME``) and the random state of a split."""

    table: str
    selector: str
    split: int


class Ranking(NamedTuple):
    """Distinct columns, best first, and how many of them a selector chooses by itself, if any."""

    columns: np.ndarray
    number: int | None


def ranking_of(answer: Answer, columns: int, k: int) -> Ranking:
    """Checks the answer of a selector.

    Args:
      answer: a ranking, or a ranking and a number of columns.
      columns: number of columns of the table.
      k: the number that was asked for.

    Raises:
      ConfigError: if the ranking is empty, holds a column twice, or one that does not exist, if
        the number is not one of columns, or for anything else.
    """
    number = None
    if isinstance(answer, tuple):
        if len(answer) != 2:
            raise ConfigError(f"the answer is a tuple of {len(answer)}; {_ANSWER}")
        answer, number = answer
    try:
        order = np.asarray(answer)
    except ValueError:
        raise ConfigError(f"the answer is a list of parts of several shapes; {_ANSWER}") from None
    if order.ndim != 1 or not order.size or order.dtype.kind not in "iu":
        raise ConfigError(f"the ranking has shape {order.shape} and type {order.dtype}; {_ANSWER}")
    if len(np.unique(order)) < len(order) or order.min() < 0 or order.max() >= columns:
        raise ConfigError(
            f"the ranking must have distinct columns from 0 to {columns - 1}; it has "
            f"{len(np.unique(order))} distinct ones of {len(order)}, from {order.min()} to "
            f"{order.max()}"
        )
    if number is None and len(order) < min(k, columns):
        number = len(order)
    return Ranking(order.astype(int), None if number is None else _number_of(number, columns))


def _number_of(number: Any, columns: int) -> int:
    with contextlib.suppress(TypeError):
        if 0 <= operator.index(number) <= columns:
            return operator.index(number)
    raise ConfigError(f"the number of columns is {number!r}; return an integer from 0 to {columns}")


def selector_of(name: str) -> Select:
    """A selector by name, or from a file ``FILE.py:NAME``; ConfigError for an unknown one."""
    if ":" in name:
        return submission.load(name)
    if name not in SELECTORS:
        known = ", ".join(SELECTORS)
        raise ConfigError(f"unknown selector {name!r}; choose from {known}, or write FILE.py:NAME")
    return SELECTORS[name]


def select(name: str, X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Ranking | None:
    """Selects by a selector; runs in its own process. ``None`` if the target is not for it."""
    cache_by_default()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ranking_of(selector_of(name)(X, y, k, seed), X.shape[1], k)
        except NotForTask:
            return None


def run(job: Job, limits: Limits) -> dict[str, Any]:
    """Runs a selector on the training rows of a split, and judges its columns on the test rows.

    The selector's process holds training rows only, its columns in an order drawn for this split.
    Random columns are drawn :data:`DRAWS` times, and have the mean scores.

    Returns:
      A row: ``table``, ``selector``, ``split``; ``failure`` and ``reason`` (empty if there is
      none); ``rows`` and ``columns`` that it saw; ``cpu_seconds`` and ``memory`` (MiB) of the
      selector; ``ranking``, its first columns; scores ``JUDGE@SIZE`` and ``JUDGE@own``; ``number``
      of columns that it chose itself; where the informative columns are known, ``found``, the share
      of them among as many first columns, and ``false``, the share of others among those that it
      chose itself; ``versions``; ``source``, the checksum of a selector's file; ``limit`` that a
      failure by time (CPU seconds) or memory (MiB) exceeded.
    """
    table, data = TABLES[job.table], tables.read(job.table)
    rows = tables.split(table, data, job.split)
    columns = rows.X.shape[1]
    sizes = tables.sizes(columns)
    shuffled = np.random.default_rng((job.split, columns)).permutation(columns)
    row = of_job(job) | {"rows": len(rows.y), "columns": columns}
    if job.selector == ALL:
        scores = _judged(rows, table.metric, np.arange(columns), (columns,))
        return row | {key.replace(f"@{columns}", "@all"): value for key, value in scores.items()}
    if job.selector == RANDOM:
        return row | _by_chance(rows, table.metric, sizes, data.informative, job.split)
    arguments = (job.selector, rows.X[:, shuffled], rows.y, max(sizes), job.split)
    outcome = call(select, arguments, limits)
    if outcome.failure or outcome.value is None:
        return row | _failed(outcome) | {"limit": limits.of(outcome.failure)}
    row |= {"cpu_seconds": round(outcome.cpu_seconds, 2), "memory": round(outcome.memory)}
    ranking = outcome.value
    order = shuffled[ranking.columns]
    row |= {"ranking": order[: max(sizes)].tolist(), "number": ranking.number}
    row |= _judged(rows, table.metric, order, sizes)
    if ranking.number:
        scores = _judged(rows, table.metric, order, (ranking.number,))
        row |= {key.partition("@")[0] + "@own": value for key, value in scores.items()}
    return row | truth(data.informative, order, ranking.number)


def of_job(job: Job) -> dict[str, Any]:
    """The beginning of a row."""
    source = submission.checksum(job.selector)
    about = {"failure": "", "reason": "", "versions": versions(), "source": source}
    return {**job._asdict(), **about}


def truth(informative: np.ndarray, order: np.ndarray, number: int | None) -> dict[str, float]:
    """The shares of true columns found, and of false ones among a selector's own choice.

    Both are missing without their numbers; of no columns none is false.
    """
    shares = {}
    if len(informative):
        first = order[: len(informative)]
        shares["found"] = float(np.isin(first, informative).sum() / len(informative))
        if number is not None:
            shares["false"] = float((~np.isin(order[:number], informative)).sum() / max(number, 1))
    return shares


def _by_chance(
    rows: Split, metric: str, sizes: tuple[int, ...], informative: np.ndarray, seed: int
) -> dict[str, Any]:
    """Mean scores of several draws of columns, the first of them, and the expected share found."""
    draw = functools.partial(SELECTORS[RANDOM], rows.X, rows.y, max(sizes))
    orders = [np.asarray(draw(seed * DRAWS + number)) for number in range(DRAWS)]
    scores = pd.DataFrame([_judged(rows, metric, order, sizes) for order in orders]).mean()
    known = {"found": len(informative) / rows.X.shape[1]} if len(informative) else {}
    return {"cpu_seconds": 0.0, "ranking": orders[0][: max(sizes)].tolist()} | dict(scores) | known


def _failed(outcome: Outcome) -> dict[str, Any]:
    if not outcome.failure:
        return {"failure": NOT_FOR_TASK, "reason": "its task is not that of the table"}
    return {
        "failure": outcome.failure,
        "reason": outcome.reason,
        "cpu_seconds": round(outcome.cpu_seconds, 2),
        "memory": round(outcome.memory, 0),
    }


def _judged(rows: Split, metric: str, order: np.ndarray, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Judges in a process of its own; its failure is a fault of the arena."""
    outcome = call(judges.judge_each, (rows, metric, order, sizes), _JUDGING)
    if outcome.failure:
        raise RuntimeError(f"a judge failed: {outcome.reason}")
    return outcome.value


def versions() -> str:
    """The versions that a result depends on, in a line."""
    names = ("fsjax", "jax", "numpy", "scikit-learn")
    return ", ".join(
        [f"python {platform.python_version()}", *(f"{n} {metadata.version(n)}" for n in names)]
    )


def check_submission(name: str) -> str:
    """Why a selector cannot be loaded from a file; empty if it can."""
    try:
        selector_of(name)
    except ConfigError as error:
        return str(error)
    return ""
