"""Measures how many informative columns each estimator finds with its default arguments.

    python -m experiments.studies.recovery --out=docs/tables/recovery.md

The data are ``madelon_like``: 500 columns, of which 5 span a hypercube whose corners determine the
class, so that no single column predicts it. In the first table 15 more columns are linear mixtures
of these, so that a few of the 20 suffice; in the second table all others are noise. Every estimator
selects as many columns as there are good ones. The numbers are written to the Markdown file
``--out``; estimators that it already has are not run again.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags

import fsjax
from experiments.artifacts.markdown import as_rows, continue_table
from experiments.launch import cli
from experiments.studies.known_arrays import dense_arrays, informative_columns
from fsjax.data import Dataset
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import check_names
from fsjax.estimators import ESTIMATORS, Selector

#: The size of the smaller selection.
FEW = 10


def fit(name: str, data: Dataset, seeds: int) -> Selector:
    """Fits the estimator of a method on three quarters of the rows, for all good columns."""
    X, y = dense_arrays(data)
    rows, informative = len(X) * 3 // 4, informative_columns(data)
    estimator = ESTIMATORS[name](n_features_to_select=len(informative), n_seeds=seeds)
    return estimator.fit(X[:rows], y[:rows])


def num_good(estimator: Selector, data: Dataset, k: int) -> float:
    """The number of good columns among an estimator's best k, averaged over the seeds."""
    selected = estimator.result_.select(k)
    good = informative_columns(data)
    return float(np.mean([len(np.intersect1d(columns, good)) for columns in selected]))


def measure(name: str, mixed: Dataset, plain: Dataset, seeds: int) -> dict[str, str]:
    """Measures the row of an estimator, averaged over seeds.

    ``mixed`` has mixtures of the informative columns, which count as good; ``plain`` has none. The
    accuracy is that of the estimator's network on the held-out rows of ``mixed`` (empty if there is
    no network); seconds are per seed and include compilation.
    """
    started = time.process_time()
    estimator = fit(name, mixed, seeds)
    seconds = (time.process_time() - started) / seeds
    X, y = dense_arrays(mixed)
    rows = len(X) * 3 // 4
    good, few = len(informative_columns(mixed)), len(informative_columns(plain))
    accuracy = ""
    if hasattr(estimator, "score"):
        accuracy = f"{100 * estimator.score(X[rows:], y[rows:]):.1f}"
    return {
        "estimator": type(estimator).__name__,
        f"good among the best {FEW}": f"{num_good(estimator, mixed, FEW):.1f}",
        "found": f"{num_good(estimator, mixed, good):.1f} of {good}",
        "accuracy, %": accuracy,
        "found without mixtures": f"{num_good(fit(name, plain, seeds), plain, few):.1f} of {few}",
        "CPU seconds": f"{seconds:.0f}",
    }


def as_markdown(table: pd.DataFrame) -> str:
    """Formats the table, best estimator first."""
    order = table["found"].str.split().str[0].astype(float).argsort(kind="stable")[::-1]
    return as_rows(table.iloc[order])


def run(names: list[str], out: Path, seeds: int, num_samples: int) -> pd.DataFrame:
    """Measures the estimators that the table lacks, and writes it after each.

    Raises:
      ConfigError: for an unknown name.
    """
    check_names("unknown method", names, ESTIMATORS)
    mixed = fsjax.data.load("madelon_like", num_samples=num_samples)
    plain = fsjax.data.load("madelon_like", num_samples=num_samples, num_redundant=0)
    rows = {
        ESTIMATORS[name].__name__: partial(measure, name, mixed, plain, seeds) for name in names
    }
    return continue_table(out, rows, as_markdown)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("methods", list(ESTIMATORS), "Names of methods.")
    flags.DEFINE_string("out", None, "Markdown file; estimators in it are not run again.")
    flags.DEFINE_integer("seeds", 3, "Seeds of every estimator.", lower_bound=1)
    flags.DEFINE_integer("num_samples", 2600, "Rows of the data.", lower_bound=200)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    cache_by_default()
    table = run(options.methods, Path(options.out), options.seeds, options.num_samples)
    print(as_markdown(table))


if __name__ == "__main__":
    cli.run(main, define_flags, out="docs/tables/recovery.md")
