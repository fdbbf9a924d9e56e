"""How many of the columns that matter each estimator finds with its default arguments.

    python -m experiments.recovery --out=docs/recovery.md

The data are ``madelon_like``: 500 columns, of which 5 span a hypercube whose corners make up the
classes, 15 are linear mixtures of them, and 480 are noise; no single column tells the class. Every
estimator selects as many columns as there are good ones, and ranks the rest. ``--out`` holds the
table in Markdown; estimators that are in it already are not run again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

import fsjax
from experiments import cli
from fsjax.data.dataset import Dataset
from fsjax.errors import ConfigError, nearest
from fsjax.estimators import ESTIMATORS
from fsjax.report.atomic import write_text

#: Of the smaller selection.
FEW = 10

COLUMNS = ("estimator", f"precision at {FEW}", "found", "accuracy", "CPU seconds a seed")


def measure(name: str, data: Dataset, seeds: int) -> dict[str, object]:
    """The row of an estimator: what its seeds find on average.

    Args:
      name: of the method.
      data: with ``informative`` columns, T of them.
      seeds: how many.

    Returns:
      By :data:`COLUMNS`: precision in percent of the best ten columns; the mean number of the T
      columns among the best T, as text; accuracy in percent of the trained network on a quarter of
      the rows that were held out (empty for autoencoders); seconds, with compilation.
    """
    truth = np.array(data.informative)
    rows = len(data.X) * 3 // 4
    started = time.process_time()
    estimator = ESTIMATORS[name](n_features_to_select=len(truth), n_seeds=seeds)
    estimator.fit(data.X[:rows], data.y[:rows])
    seconds = (time.process_time() - started) / seeds
    found = [len(np.intersect1d(one, truth)) for one in estimator.result_.select(len(truth))]
    best = [len(np.intersect1d(one, truth)) for one in estimator.result_.select(FEW)]
    accuracy = ""
    if estimator.task != "reconstruction":
        accuracy = f"{100 * estimator.score(data.X[rows:], data.y[rows:]):.1f}"
    values = (
        type(estimator).__name__,
        f"{100 * np.mean(best) / FEW:.0f}",
        f"{np.mean(found):.1f} of {len(truth)}",
        accuracy,
        f"{seconds:.0f}",
    )
    return dict(zip(COLUMNS, values, strict=True))


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a table that an earlier call wrote; none if there is no file."""
    if not path.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(cells, columns=list(COLUMNS))


def as_markdown(table: pd.DataFrame) -> str:
    """The table with the best first."""
    order = table["found"].str.split().str[0].astype(float).argsort(kind="stable")[::-1]
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- " + "| ---: " * (len(COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in table.iloc[order].to_numpy()]
    return "\n".join(lines) + "\n"


def run(names: list[str], out: Path, seeds: int, num_samples: int) -> pd.DataFrame:
    """Measures what is missing in the table and writes it after each estimator.

    Raises:
      ConfigError: for an unknown name.
    """
    for name in names:
        if name not in ESTIMATORS:
            raise ConfigError(f"methods has {name!r}: {nearest(name, ESTIMATORS)}")
    data = fsjax.data.load("madelon_like", num_samples=num_samples)
    table = read_table(out)
    for name in names:
        if ESTIMATORS[name].__name__ in set(table["estimator"]):
            continue
        row = measure(name, data, seeds)
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, as_markdown(table))
    return table


def define_flags() -> None:
    """Only for the command itself: other launchers have flags of the same names."""
    flags.DEFINE_list("methods", list(ESTIMATORS), "Names of methods.")
    flags.DEFINE_string("out", None, "Markdown file for the table.")
    flags.DEFINE_integer("seeds", 3, "Runs of every estimator.", lower_bound=1)
    flags.DEFINE_integer("num_samples", 2600, "Rows of the data.", lower_bound=200)


def main() -> None:
    """Entry point."""
    given = flags.FLAGS
    cli.require(given.out, "out", "--out=docs/recovery.md")
    fsjax.use_compilation_cache()
    table = run(given.methods, Path(given.out), given.seeds, given.num_samples)
    print(as_markdown(table))


if __name__ == "__main__":
    define_flags()
    cli.run(main)
