"""The figures of WAST's paper that follow from the cells of its tables: costs and scores."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from configs.rewiring import WAST_NUM_FEATURES
from experiments.papers import results
from experiments.papers.figures.rows import Job, Point

#: Columns and training rows of the paper's data sets (Table 1), without Madelon.
SHAPES = {
    "usps": (256, 7438),
    "coil20": (1024, 1152),
    "mnist": (784, 60000),
    "fashion_mnist": (784, 60000),
    "isolet": (617, 6237),
    "har": (516, 7352),
    "pcmac": (3289, 1544),
    "smk_can_187": (19993, 149),
    "gla_bra_180": (49151, 144),
}

#: Epochs of the neural methods, and the unsupervised methods that have none.
EPOCHS = {"aefs": 100, "cae": 100, "quick_selection": 100, "wast": 10}
CLASSICAL = ("laplacian_score", "mcfs", "dufs")

#: The share of active weights of the sparse autoencoders, and the neurons of the hidden layer.
DENSITY, HIDDEN = 0.2, 200

#: Draws of all accuracies within their deviations, for the deviation of a score.
DRAWS = 2000


def params(method: str, width: int, k: int) -> float:
    """Weights of a method's network (section 4.3) on ``width`` columns."""
    if method == "cae":
        widths = (width, k, 3 * k // 2, width)
        return float(sum(a * b for a, b in itertools.pairwise(widths)))
    return 2.0 * width * HIDDEN * (1.0 if method == "aefs" else DENSITY)


def flops(method: str, dataset: str, k: int) -> float:
    """Floating-point operations of a whole training: 6 for each weight, row and epoch."""
    width, rows = SHAPES[dataset]
    return 6.0 * params(method, width, k) * rows * EPOCHS[method]


def flops_by_size() -> list[Point]:
    """Figure 2: the operations on all nine data sets for each K."""
    total = {(m, k): sum(flops(m, d, k) for d in SHAPES) for m in EPOCHS for k in WAST_NUM_FEATURES}
    return [Point("nine data sets", m, k, "flops", value) for (m, k), value in total.items()]


@functools.cache
def accuracies(side: str) -> pd.DataFrame:
    """Accuracies of unsupervised methods in cells that were run: here, or as the paper has them."""
    table = results.read_results(Path("reproduction/results.csv"))
    chosen = {"paper": ["wast"], "metric": ["svm_accuracy"], "table": ["2", "5", "6"]}
    chosen["method"] = [*EPOCHS, *CLASSICAL]
    for column, values in chosen.items():
        table = table[table[column].isin(values)]
    table = table.drop_duplicates(["dataset", "method", "setting"])
    sizes = table["setting"].str.removeprefix("K=").astype(int)
    table = table.assign(size=sizes).sort_values(["size", "dataset"], kind="stable")
    seeds = table["seeds"] if side == "here" else 5
    prefix = "" if side == "here" else "published_"
    columns = {"mean": table[f"{prefix}mean"], "std": table[f"{prefix}std"], "seeds": seeds}
    return table[["dataset", "method", "setting"]].assign(**columns)


def scores(side: str, by: str) -> Iterator[tuple[str, str, list[float]]]:
    """How often each method has the best accuracy: the group, the method and its draws.

    Args:
      side: ``here`` or ``paper``.
      by: ``dataset`` or ``setting``, which is K.

    Yields:
      The score of the means, and then one for each draw of all means within their deviations.
    """
    table, generator = accuracies(side), np.random.default_rng(0)
    for group, part in table.groupby(by, sort=False):
        draws: dict[str, np.ndarray] = {m: np.zeros(DRAWS) for m in (*EPOCHS, *CLASSICAL)}
        for _, cell in part.groupby(["dataset", "setting"]):
            error = (cell["std"] / np.sqrt(cell["seeds"] - 1)).fillna(0.0).to_numpy()
            noise = generator.normal(size=(DRAWS, len(cell))) * error
            noise[0] = 0.0
            values = cell["mean"].to_numpy() + noise
            best = values == values.max(axis=1, keepdims=True)
            for column, method in enumerate(cell["method"]):
                draws[method] += best[:, column] / best.sum(axis=1)
        for method, values in draws.items():
            yield str(group).removeprefix("K="), method, list(values)


def _score(panel: str, method: str, x: str, draws: list[float]) -> Point:
    """A score whose deviation counts as that of three seeds, so that its error is that of draws."""
    error = float(np.sqrt(np.mean((np.array(draws) - draws[0]) ** 2)))
    return Point(panel, method, x, "score", draws[0], error * np.sqrt(2.0), 3)


def score_by(by: str) -> list[Point]:
    """Figure 4, by data set, and the first part of Figure 9, by K."""
    return [
        _score(side, method, group, draws)
        for side in ("here", "paper")
        for group, method, draws in scores(side, by)
    ]


def overall() -> list[Point]:
    """Figure 3: score, memory and computation of the neural methods, from 0 (worst) to 1."""
    points = []
    for side in ("here", "paper"):
        total = {method: np.zeros(DRAWS) for method in EPOCHS}
        for _, method, draws in scores(side, "dataset"):
            if method in total:
                total[method] += draws
        points += [_score(f"score, {side}", m, "", list(d)) for m, d in total.items()]
    for name, metric in (("memory", "params"), ("computation", "flops")):
        cost = {m: sum(costs(m, d)[metric] for d in SHAPES) for m in EPOCHS}
        low, high = min(cost.values()), max(cost.values())
        points += [
            Point(name, method, "", "efficiency", (high - value) / (high - low))
            for method, value in cost.items()
        ]
    return points


def costs(method: str, dataset: str) -> dict[str, float]:
    """Weights and operations of a method, as means over K, on which CAE's depend."""
    sizes = WAST_NUM_FEATURES
    weights = [params(method, SHAPES[dataset][0], k) for k in sizes]
    operations = [flops(method, dataset, k) for k in sizes]
    return {"params": float(np.mean(weights)), "flops": float(np.mean(operations))}


def costs_by_dataset() -> list[Point]:
    """The rest of Figure 9."""
    return [
        Point("", method, dataset, name, costs(method, dataset)[name])
        for name in ("params", "flops")
        for method in EPOCHS
        for dataset in SHAPES
    ]


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "wast/2": lambda: [Job("flops", flops_by_size)],
    "wast/3": lambda: [Job("overall", overall)],
    "wast/4": lambda: [Job("score", lambda: score_by("dataset"))],
    "wast/9": lambda: [Job("score", lambda: score_by("setting")), Job("costs", costs_by_dataset)],
}
