"""Measures false discovery rates on tables whose informative columns are known.

    python -m experiments.studies.discoveries --out=docs/tables/discoveries.md --draws=50
    python -m experiments.studies.discoveries --out=docs/tables/discoveries.md --draws=20 \\
        --tables=ring,xor,sum,sine --columns=50,200 --rules=l1,forest,network,l1+or+forest

``number`` and ``classes`` are tables of 500 rows whose target is linear in 10 of the columns; these
are independent, or neighbours are correlated at 0.6. ``ring``, ``xor`` and ``sum`` have 1000 rows
in two classes that depend on two uniform columns together (see ``fsjax.data``). ``sine`` is the sum
of the sines of five normal columns and noise.

``l1``, ``forest`` and ``network`` are the statistics by which ``fsjax.select`` compares columns
with decoys (knockoffs or permuted copies), here without its competition of methods, and ``l1 or
forest`` is the one of these two that it takes, whichever predicts better. They are compared with
the knockoff filter (Barber and Candes 2015, "knockoff+", one set of knockoffs, the importance of
``l1``) and with Stabl's rule (Hedou et al. 2024): Lasso with decoys on halves of the rows, and the
threshold of selection frequency at which one plus the number of decoys above it, divided by the
number of columns above it, is smallest. Stabl has no rate to choose. ``IPSS`` is the package of
that name (``pip install -e .[bench]``), whose q values are compared with the rate. ``CFI`` and
``LOCO`` are those of ``fsjax.evaluation`` for a linear model on a third of the rows, beside that of
the package hidimstat. Rows that ``--out`` already has are not measured again.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import false_discovery_control

import fsjax
from experiments.arena import packages
from experiments.arena.stabl import frequencies, number_above_decoys
from experiments.artifacts.markdown import as_rows, continue_table
from experiments.launch import cli
from experiments.studies.known_arrays import dense_arrays, informative_columns
from fsjax.auto.certainty.decoys import knockoff_model
from fsjax.auto.certainty.false_discovery import (
    NETWORK,
    decoy_model,
    drawn_decoys,
    false_discovery_rates,
    network_scores,
    simple_scores,
)
from fsjax.auto.certainty.quick_statistic import better_predictor
from fsjax.auto.contest.folds import all_rows, rounds_of
from fsjax.auto.contest.rankers import l1
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.schedule import SETS
from fsjax.auto.reading.columns import design_of_array
from fsjax.errors import check_names
from fsjax.evaluation import conditional_importance, loco_importance
from fsjax.tables.datasets.nonlinear import BOUNDS

ROWS, TRUE, RATES = 500, 10, (0.1, 0.2)

#: Rows of tables with a non-linear target; number of sines, and the deviation of their noise.
CURVED_ROWS, SINES, SINE_NOISE = 1000, 5, 0.5

#: Methods that need only seconds.
QUICK = ("univariate", "l1")

#: The statistic that predicts better.
QUICK_STATISTIC = "l1 or forest"

#: Tables: the task, and the correlation of neighbouring columns.
TABLES = {
    "number": ("regression", 0.0),
    "number, correlated": ("regression", 0.6),
    "classes": ("classification", 0.0),
    "classes, correlated": ("classification", 0.6),
    "ring": ("classification", 0.0),
    "xor": ("classification", 0.0),
    "sum": ("classification", 0.0),
    "sine": ("regression", 0.0),
}

#: Effect of a column on the number, and on the log odds of the class.
_EFFECT = {"regression": 0.3, "classification": 0.6}

#: Returns the columns that a rule selects at a false discovery rate.
Selected = Callable[[float], np.ndarray]


class Table(NamedTuple):
    """A generated table ``(N, D)``, its target and task, and its informative columns."""

    X: np.ndarray
    y: np.ndarray
    task: str
    true: np.ndarray


def draw(name: str, seed: int, columns: int) -> Table:
    """Generates a table of :data:`TABLES`."""
    task, correlation = TABLES[name]
    if name in BOUNDS:
        data = fsjax.data.ring_xor_sum(CURVED_ROWS, columns, name, seed)
        X, y = dense_arrays(data)
        return Table(X.astype(np.float64), y, task, informative_columns(data))
    rng = np.random.default_rng(seed)
    if name == "sine":
        X = rng.standard_normal((CURVED_ROWS, columns))
        true = rng.choice(columns, SINES, replace=False)
        noise = SINE_NOISE * rng.standard_normal(CURVED_ROWS)
        return Table(X, np.sin(2.0 * X[:, true]).sum(axis=1) + noise, task, true)
    X = rng.standard_normal((ROWS, columns))
    for column in range(1, columns):
        X[:, column] = correlation * X[:, column - 1] + np.sqrt(1 - correlation**2) * X[:, column]
    true = rng.choice(columns, TRUE, replace=False)
    signal = X[:, true] @ (_EFFECT[task] * rng.choice([-1.0, 1.0], TRUE))
    if task == "regression":
        return Table(X, signal + rng.standard_normal(ROWS), task, true)
    return Table(X, (signal + rng.logistic(size=ROWS) > 0).astype(int), task, true)


def ours(table: Table, seed: int) -> Selected:
    """``fsjax.select``, with a competition of quick methods only, so that it takes seconds."""

    def selected(rate: float) -> np.ndarray:
        selection = fsjax.select(
            table.X, table.y, task=table.task, fdr=rate, methods=QUICK, budget=None, seed=seed
        )
        return np.array([int(str(name)[1:]) for name in selection.columns], int)

    return selected


def beside_decoys(statistic: str, table: Table, seed: int) -> Selected:
    """Compares columns and decoys by a statistic of ``fsjax.select``, without its competition."""
    design = design_of_array(table.X, None, None)
    part, units = all_rows(design, table.y), table.X.shape[1]
    draw_both = decoy_model(part.X, design.groups)
    if statistic == QUICK_STATISTIC:
        both, _ = drawn_decoys(draw_both, seed, 0)
        folds = rounds_of(table.y, table.task, seed)[0]
        rows = Part(standardise(both)[0], table.y)
        statistic = better_predictor(rows, table.task, folds, seed)
    if statistic == NETWORK:
        columns, decoys = network_scores(part, draw_both, table.task, units, seed=seed)
    else:
        sets = [
            simple_scores(part, draw_both, table.task, units, statistic, number, seed)
            for number in range(SETS)
        ]
        columns, decoys = (np.concatenate(side) for side in zip(*sets, strict=True))
    rates = false_discovery_rates(columns, decoys)
    return lambda rate: np.flatnonzero(rates <= rate)


def knockoff_filter(table: Table, seed: int) -> Selected:
    """The knockoff filter, knockoff+, with the importance of ``l1``."""
    columns = table.X.shape[1]
    copy = knockoff_model(table.X)(np.random.default_rng((seed, 3)))
    both = standardise(np.hstack([table.X, copy]))[0]
    scores = l1(Part(both, table.y), table.task, seed)
    rates = false_discovery_rates(scores[None, :columns], scores[None, columns:])
    return lambda rate: np.flatnonzero(rates <= rate)


def stabl(table: Table, seed: int) -> Selected:
    """Stabl's rule, with knockoffs as decoys."""
    columns, rng = table.X.shape[1], np.random.default_rng((seed, 4))
    (both,) = standardise(np.hstack([table.X, knockoff_model(table.X)(rng)]))
    best = frequencies(both, table.y, rng)
    number = number_above_decoys(best[:columns], best[columns:])
    return lambda rate: np.argsort(-best[:columns], kind="stable")[:number]


def conditional(table: Table, seed: int) -> Selected:
    """Conditional importance in a linear model, whose q values are compared with the rate."""
    model, X, y, train = packages.fitted_model(table.X, table.y, seed)
    q_values = conditional_importance(model, X[train], X[~train], y[~train], seed=seed).q_values
    return lambda rate: np.flatnonzero(q_values <= rate)


def conditional_of_package(table: Table, seed: int) -> Selected:
    """The same by the package hidimstat, whose p values count draws, not rows."""
    q_values = false_discovery_control(packages.conditional_errors(table.X, table.y, seed)[1])
    return lambda rate: np.flatnonzero(q_values <= rate)


def left_out(table: Table, seed: int) -> Selected:
    """Importance of leaving a column out of the linear model (LOCO)."""
    model, X, y, train = packages.fitted_model(table.X, table.y, seed)
    q_values = loco_importance(model, X[train], y[train], X[~train], y[~train]).q_values
    return lambda rate: np.flatnonzero(q_values <= rate)


def ipss(table: Table, seed: int) -> Selected:
    """Integrated path stability selection, by its package, with boosted trees."""
    _, q_values = packages.ipss_errors(table.X, table.y, seed)
    return lambda rate: np.flatnonzero(q_values <= rate)


RULES: dict[str, Callable[[Table, int], Selected]] = {
    **{
        name: functools.partial(beside_decoys, name)
        for name in ("l1", "forest", NETWORK, QUICK_STATISTIC)
    },
    "fsjax.select": ours,
    "knockoff filter": knockoff_filter,
    "Stabl": stabl,
    "IPSS": ipss,
    "CFI": conditional,
    "CFI of hidimstat": conditional_of_package,
    "LOCO": left_out,
}


def row(name: str, columns: int, rule: str, draws: int) -> dict[str, str]:
    """Measures a rule: mean share of false columns with its standard error, and power, by rate."""
    false: dict[float, list[float]] = {rate: [] for rate in RATES}
    power: dict[float, list[float]] = {rate: [] for rate in RATES}
    started = time.process_time()
    for seed in range(draws):
        table = draw(name, seed, columns)
        selected = RULES[rule](table, seed)
        for rate in RATES:
            chosen = selected(rate)
            hits = np.isin(chosen, table.true).sum()
            false[rate].append((len(chosen) - hits) / max(len(chosen), 1))
            power[rate].append(hits / len(table.true))
    cells = {"table": name, "columns": str(columns), "rule": rule}
    for rate in RATES:
        error = np.std(false[rate], ddof=1) / np.sqrt(draws)
        cells[f"false at {rate}"] = f"{np.mean(false[rate]):.3f} ± {error:.3f}"
        cells[f"power at {rate}"] = f"{np.mean(power[rate]):.2f}"
    seconds = (time.process_time() - started) / draws
    return cells | {"draws": str(draws), "CPU seconds": f"{seconds:.1f}"}


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sorts rows by table, number of columns and rule."""
    keys = [
        table["table"].map(list(TABLES).index),
        table["columns"].astype(int),
        table["rule"].map(list(RULES).index),
    ]
    return table.iloc[np.lexsort(keys[::-1])]


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    names = [name.replace("+", ", ") for name in options.tables]
    rules = [rule.replace("+", " ") for rule in options.rules]
    check_names("unknown rule", rules, RULES)
    check_names("unknown table", names, TABLES)
    rows = {
        (name, str(columns), rule): functools.partial(row, name, columns, rule, options.draws)
        for rule, columns, name in itertools.product(rules, map(int, options.columns), names)
    }
    continue_table(Path(options.out), rows, lambda table: as_rows(_in_order(table)))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", None, "Markdown file; rows in it are not measured again.")
    linear = ["number", "number+correlated", "classes", "classes+correlated"]
    flags.DEFINE_list("tables", linear, "Kinds of tables; + stands for a comma and a space.")
    flags.DEFINE_list(
        "rules",
        ["l1", "knockoff filter", "Stabl", "forest"],
        "Rules, in order; + stands for a space.",
    )
    flags.DEFINE_list("columns", ["200"], "Numbers of columns.")
    flags.DEFINE_integer("draws", 50, "Random tables of each kind.", lower_bound=2)


if __name__ == "__main__":
    cli.run(main, define_flags, out="docs/tables/discoveries.md")
