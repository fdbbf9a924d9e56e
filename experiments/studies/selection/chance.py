"""Measures the power of the permutation test of ``fsjax select``, and whether it keeps its level.

    python -m experiments.studies.selection.chance --workdir=runs/study --publish=docs/tables

Two of 40 columns matter in 150 rows, whose columns and noise are Gaussian, have Student's t
distribution with 1.5 degrees of freedom, or are lognormal. The test stands beside the one before it
saw ranks and single columns: kernel regressions and sums of columns, of their values. In tables of
noise the target is drawn alone; in those by group both columns and target belong to groups of four
rows. There the smallest q-value of a single column stands beside the test, for rows taken as groups
and as independent. Tables whose rows are in ``chance.csv`` in the workdir are not repeated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from threadpoolctl import threadpool_limits

from experiments.artifacts.markdown import as_rows
from experiments.launch import cli
from experiments.studies.selection.noise import share_interval
from fsjax.auto.certainty.permutation_test import chance_test, largest_score
from fsjax.auto.certainty.unit_tests import smallest_q_value
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.scoring import METRICS
from fsjax.auto.reading.columns import design_of_array
from fsjax.storage.atomic_files import write_text

#: Rows and columns of a table, and rows of a group.
_ROWS, _COLUMNS, _VISITS = 150, 40, 4

#: Draws of a distribution.
Distribution = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

TAILS: dict[str, Distribution] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "t, 1.5 degrees": lambda rng, shape: rng.standard_t(1.5, shape),
    "lognormal": lambda rng, shape: np.exp(1.5 * rng.standard_normal(shape)),
}


class Draw(NamedTuple):
    """Columns ``(N, D)``, target ``(N,)``, and groups ``(N,)`` of dependent rows, if any."""

    X: np.ndarray
    y: np.ndarray
    row_groups: np.ndarray | None = None


def signal(tails: str, rng: np.random.Generator) -> Draw:
    """The target is a difference of two columns, clipped at 3, beside noise."""
    X = TAILS[tails](rng, (_ROWS, _COLUMNS))
    clipped = np.clip(X[:, :2], -3.0, 3.0)
    return Draw(X, clipped[:, 0] - clipped[:, 1] + 2.0 * TAILS[tails](rng, (_ROWS,)))


def noise(tails: str, rng: np.random.Generator) -> Draw:
    """The target does not depend on the columns."""
    return Draw(TAILS[tails](rng, (_ROWS, _COLUMNS)), TAILS[tails](rng, (_ROWS,)))


def noise_by_group(rng: np.random.Generator) -> Draw:
    """25 groups of four nearly equal rows; the target does not depend on the columns."""
    groups = np.repeat(np.arange(25), _VISITS)
    X, y = rng.standard_normal((25, _COLUMNS))[groups], rng.standard_normal(25)[groups]
    return Draw(X + 0.3 * rng.standard_normal(X.shape), y, groups)


BY_GROUP = "noise by group"
KINDS: dict[str, Callable[[np.random.Generator], Draw]] = {
    **{f"signal, {tails}": functools.partial(signal, tails) for tails in TAILS},
    **{f"noise, {tails}": functools.partial(noise, tails) for tails in TAILS},
    BY_GROUP: noise_by_group,
}


def tested(kind: str, seed: int) -> dict[str, Any]:
    """p-values of a table with all predictors and with those of values alone, and its q-value."""
    table = KINDS[kind](np.random.default_rng((seed, list(KINDS).index(kind))))
    design = design_of_array(table.X, None, None)
    problem = Problem(
        design, table.y, "regression", METRICS["r2"], [], (), seed, row_groups=table.row_groups
    )
    ledger = Ledger(None)
    chance = chance_test(problem, ledger, Clock(float("inf")))
    scores, start = [], 0
    while f"chance/{start}" in ledger:
        scores += ledger[f"chance/{start}"]["scores"]
        start = len(scores) - 1
    # Of each view, the scores of predictors come first, and that of the best single column last.
    values = np.array(scores)[:, : len(scores[0]) // 2 - 1]
    return {
        "kind": kind,
        "draw": seed,
        "p": chance.p_value,
        "p_values_alone": largest_score(values).p_value,
        "q": smallest_q_value(problem),
        "q_rows": smallest_q_value(problem.replace(row_groups=None)),
    }


def page(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes the table, in text: shares of the tables of each kind, with their intervals."""

    def share(hits: pd.Series) -> str:
        low, high = share_interval(int(hits.sum()), len(hits))
        return f"{hits.mean():.3f} ({low:.3f} to {high:.3f})"

    independent = rows[rows["kind"].str.startswith("noise,")]
    parts = [*rows.groupby("kind", sort=False), ("noise, the three together", independent)]
    return pd.DataFrame(
        [
            {
                "tables": str(kind),
                "draws": str(len(part)),
                "p at most .01": share(part["p"] <= 0.01),
                "p at most .05": share(part["p"] <= 0.05),
                "values alone, p at most .01": share(part["p_values_alone"] <= 0.01),
                "a q-value at most .05": share(part["q"] <= 0.05),
                "the same, rows as independent": share(part["q_rows"] <= 0.05),
            }
            for kind, part in parts
            if len(part)
        ]
    )


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    folder = Path(options.workdir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "chance.csv"
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["kind", "draw"])
    finished = set(zip(rows["kind"], rows["draw"], strict=True))
    with threadpool_limits(1):
        for seed in range(options.draws):
            lines = [tested(kind, seed) for kind in KINDS if (kind, seed) not in finished]
            rows = pd.concat([rows, pd.DataFrame(lines)], ignore_index=True)
            rows.to_csv(path, index=False)
    table = page(rows)
    write_text(Path(options.publish or folder) / "selection_study_chance.md", as_rows(table))
    print(table.to_string(index=False))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder for the results; tables in it are not repeated.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown table; the workdir by default.")
    flags.DEFINE_integer("draws", 67, "Random tables of each kind.", lower_bound=1)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
