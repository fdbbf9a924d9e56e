"""Five of 500 columns matter, but only jointly: which selector finds them?

    python examples/informative_columns.py

The table is generated, so the truth is known: the classes are corners of a hypercube in five
columns, and the other 495 columns are noise. A univariate filter scores one column at a time and
finds little; a network with a penalty on its inputs (STG) uses all columns together. The example
prints which columns each selector found, missed and selected wrongly, and writes
``informative_columns.png``. On two CPU cores this takes about half a minute.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fsjax
from fsjax import report
from fsjax.estimators import STG, FisherScore, Selector
from fsjax.report.style import BLUE, GREY, ORANGE, new_figure


def compare(estimator: Selector, truth: np.ndarray) -> dict[str, list[int]]:
    """Columns that a fitted estimator ``found``, those it ``missed`` and the ``wrong`` ones."""
    chosen = np.flatnonzero(estimator.get_support())
    return {
        "found": np.intersect1d(chosen, truth).tolist(),
        "missed": np.setdiff1d(truth, chosen).tolist(),
        "wrong": np.setdiff1d(chosen, truth).tolist(),
    }


def main(
    num_columns: int = 500, num_epochs: int | None = None, out: Path | None = None
) -> dict[str, dict[str, list[int]]]:
    """Generates the table, selects with both and draws their scores.

    Returns:
      The result of :func:`compare` by the name of the estimator.
    """
    data = fsjax.data.load(
        "madelon_like",
        num_samples=2000,
        num_features=num_columns,
        num_informative=5,
        num_redundant=0,
    )
    truth = np.array(data.informative)
    changes = {} if num_epochs is None else {"num_epochs": num_epochs}
    estimators = {
        "Fisher score": FisherScore(len(truth)),
        "STG": STG(len(truth), hidden=(64, 20), **changes),
    }
    results = {}
    figure = new_figure(5.0)
    panels = figure.subplots(len(estimators), 1, sharex=True)
    for panel, (name, estimator) in zip(panels, estimators.items(), strict=True):
        estimator.fit(data.X, data.y)
        results[name] = compare(estimator, truth)
        print(name)
        for what, columns in results[name].items():
            print(f"  {what:6s} {columns}")

        panel.plot(estimator.scores_, ".", color=GREY, markersize=3, label="noise")
        panel.plot(truth, estimator.scores_[truth], "o", color=BLUE, label="informative")
        wrong = results[name]["wrong"]
        panel.plot(wrong, estimator.scores_[wrong], "x", color=ORANGE, label="selected wrongly")
        panel.set_title(f"{name}: {len(results[name]['found'])} of {len(truth)} found")
        panel.set_ylabel("score")
    panels[-1].set_xlabel("column")
    panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    path = Path("informative_columns.png") if out is None else out
    report.save_figure(figure, path)
    print(f"picture: {path}")
    return results


if __name__ == "__main__":
    main()
