"""False discoveries of ``fsjax.select`` where the truth is known, beside other rules.

    python -m experiments.discoveries --out=docs/tables/discoveries.md --draws=20

Generated tables have 10 columns that matter among many, independent or with neighbours correlated
at 0.6, a number or two classes to predict, and 500 rows. ``fsjax.select(fdr=0.1)`` is compared with
the knockoff filter (Barber and Candes 2015, "knockoff+", one set of knockoffs, the same importance)
and with Stabl's rule (Hedou et al. 2024: Lasso on halves of the rows beside decoys, the threshold
of selection frequency with the least ratio of one plus the decoys above to the columns above it).
Noise tables have no column that matters. Rows that ``--out`` holds already are not made again.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from sklearn.linear_model import lasso_path

import fsjax
from experiments import cli
from experiments.markdown import as_rows, read_table
from fsjax.atomic import write_text
from fsjax.auto.columns import design_of_array
from fsjax.auto.compete import ranking
from fsjax.auto.decoys import knockoffs
from fsjax.auto.discoveries import decoy_model, false_discovery_rates
from fsjax.auto.preparation import Part, all_rows, standardise
from fsjax.auto.rankers import l1
from fsjax.auto.stability import SETS
from fsjax.errors import check_choice

ROWS, TRUE, RATE = 500, 10, 0.1

#: Contenders that need seconds.
QUICK = ("univariate", "l1")

#: What the tasks are called.
TARGETS = {"regression": "number", "classification": "two classes"}

#: Effect of a column on the number, and on the log odds of the class.
_EFFECT = {"regression": 0.3, "classification": 0.6}

#: Halves of the rows, and weakest penalty, of Stabl's rule.
_HALVES, _END = 30, 0.05


class Table(NamedTuple):
    """A drawn table ``(N, D)``, its target, and the columns that matter."""

    X: np.ndarray
    y: np.ndarray
    true: np.ndarray


def draw(seed: int, columns: int, correlation: float, task: str) -> Table:
    """A table whose neighbours are correlated, and whose target is linear in ten columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, columns))
    for column in range(1, columns):
        X[:, column] = correlation * X[:, column - 1] + np.sqrt(1 - correlation**2) * X[:, column]
    true = rng.choice(columns, TRUE, replace=False)
    signal = X[:, true] @ (_EFFECT[task] * rng.choice([-1.0, 1.0], TRUE))
    if task == "regression":
        return Table(X, signal + rng.standard_normal(ROWS), true)
    return Table(X, (signal + rng.logistic(size=ROWS) > 0).astype(int), true)


def ours(table: Table, task: str, seed: int) -> np.ndarray:
    """The columns of ``fsjax.select``; quick methods compete, so that it takes seconds."""
    found = fsjax.select(
        table.X, table.y, task=task, fdr=RATE, methods=QUICK, budget=None, seed=seed
    )
    return np.array([int(name[1:]) for name in found.columns], int)


def decoys_alone(table: Table, task: str, seed: int) -> np.ndarray:
    """The columns that ``fsjax.select`` chooses by decoys, without the competition before."""
    columns = design_of_array(table.X, None, None)
    part = all_rows(columns, table.y)
    draw, units = decoy_model(part.X, columns), table.X.shape[1]
    scores = []
    for number in range(SETS[0]):
        both, groups = draw(np.random.default_rng((seed, 11, number)))
        found = ranking("l1", Part(*standardise(both), part.y), task, groups, (units,), seed)
        scores.append(found.scores)
    rates = false_discovery_rates(np.array(scores)[:, :units], np.array(scores)[:, units:])
    return np.flatnonzero(rates <= RATE)


def knockoff_filter(table: Table, task: str, seed: int) -> np.ndarray:
    """Knockoff+ with the importance that ``fsjax.select`` uses."""
    columns = table.X.shape[1]
    copy = knockoffs(table.X, np.random.default_rng((seed, 3)))
    scores = l1(Part(*standardise(np.hstack([table.X, copy])), table.y), task, seed)
    gain = scores[:columns] - scores[columns:]
    for threshold in np.unique(np.abs(gain[gain != 0])):
        above = max(int((gain >= threshold).sum()), 1)
        if (1 + (gain <= -threshold).sum()) / above <= RATE:
            return np.flatnonzero(gain >= threshold)
    return np.zeros(0, int)


def stabl(table: Table, task: str, seed: int) -> np.ndarray:
    """Stabl's rule, with knockoffs as decoys."""
    columns, rng = table.X.shape[1], np.random.default_rng((seed, 4))
    (both,) = standardise(np.hstack([table.X, knockoffs(table.X, rng)]))
    y = (table.y - table.y.mean()) / table.y.std()
    frequency: np.ndarray | float = 0.0
    for _ in range(_HALVES):
        rows = rng.permutation(ROWS)[: ROWS // 2]
        _, path, _ = lasso_path(np.asfortranarray(both[rows]), y[rows], eps=_END, alphas=20)
        frequency = frequency + (path != 0) / _HALVES
    best = np.max(frequency, axis=1)
    thresholds = np.linspace(0.1, 0.99, 90)
    ratio = [
        (1 + (best[columns:] > t).sum()) / max((best[:columns] > t).sum(), 1) for t in thresholds
    ]
    return np.flatnonzero(best[:columns] > thresholds[int(np.argmin(ratio))])


RULES: dict[str, Callable[[Table, str, int], np.ndarray]] = {
    "fsjax.select": ours,
    "its decoys alone": decoys_alone,
    "knockoff filter": knockoff_filter,
    "Stabl": stabl,
}


def row(rule: str, columns: int, correlation: float, task: str, draws: int) -> dict[str, str]:
    """Mean share of false columns and of true ones found, over the draws."""
    false, found, started = [], [], time.process_time()
    for seed in range(draws):
        table = draw(seed, columns, correlation, task)
        chosen = RULES[rule](table, task, seed)
        hits = np.isin(chosen, table.true).sum()
        false.append((len(chosen) - hits) / max(len(chosen), 1))
        found.append(hits / TRUE)
    return {
        "columns": str(columns),
        "correlation": str(correlation),
        "target": TARGETS[task],
        "rule": rule,
        "false": f"{np.mean(false):.3f}",
        "standard error": f"{np.std(false, ddof=1) / np.sqrt(draws):.3f}",
        "power": f"{np.mean(found):.2f}",
        "draws": str(draws),
        "CPU seconds": f"{(time.process_time() - started) / draws:.1f}",
    }


def noise(seed: int) -> fsjax.auto.Selection:
    """What is said of a table in which no column matters."""
    rng = np.random.default_rng((seed, 5))
    X, y = rng.standard_normal((300, 40)), rng.integers(0, 2, 300)
    return fsjax.select(X, y, methods=("univariate", "l1", "forest"), budget=None, seed=seed)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows by table, and the rules in their order."""
    places = table["rule"].map(list(RULES).index)
    keys = [table["columns"].astype(int), table["correlation"], table["target"], places]
    return table.iloc[np.lexsort(keys[::-1])]


def main() -> None:
    """Entry point."""
    given = flags.FLAGS
    cli.require(given.out, "out", "--out=docs/tables/discoveries.md")
    for name in given.rules:
        check_choice("rules", name, RULES)
    out, draws = Path(given.out), given.draws
    table = read_table(out)
    key = ["columns", "correlation", "target", "rule"]
    done = set(map(tuple, table[key].to_numpy())) if len(table) else set()
    for rule, columns, correlation, (task, target) in itertools.product(
        given.rules,
        map(int, given.columns),
        (0.0, 0.6),
        TARGETS.items(),
    ):
        if (str(columns), str(correlation), target, rule) in done:
            continue
        # The competition takes a minute a table there, and changes nothing about the decoys.
        if columns > 200 and rule == "fsjax.select":
            continue
        made = row(rule, columns, correlation, task, draws)
        print(", ".join(f"{name} {value}" for name, value in made.items()), flush=True)
        table = pd.concat([table, pd.DataFrame([made])], ignore_index=True)
        write_text(out, as_rows(_in_order(table)))
    if not given.noise:
        return
    said = [noise(seed).better_than_chance for seed in range(draws)]
    print(f"noise: nothing was found in {said.count(False)} of {len(said)} tables")


if __name__ == "__main__":
    flags.DEFINE_string("out", None, "Markdown file of the table, which is continued.")
    # The slow ones last.
    rules = ["its decoys alone", "knockoff filter", "fsjax.select", "Stabl"]
    flags.DEFINE_list("rules", rules, "Rules that are compared.")
    flags.DEFINE_list("columns", ["200", "2000"], "Columns of the tables.")
    flags.DEFINE_bool("noise", True, "Whether to look at tables of noise at the end.")
    flags.DEFINE_integer("draws", 20, "Tables of each kind.", lower_bound=2)
    cli.run(main)
