"""The figures of BinMask's paper: searches for K columns, sparse networks and regularizers."""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from experiments.artifacts.published import published_value
from experiments.launch.config import load_config
from experiments.papers import claims
from experiments.papers.figures.rows import Job, Point, point, recorded
from experiments.studies import feature_selection, regularize, sparsify

SEEDS = (0, 1, 2)

#: Data sets of Figure 1, with epochs and numbers of columns.
SELECTIONS = {"isolet": (50, (21,))}

#: Lambda of Figures 2 and 3 here.
STRENGTHS = (1e-4, 5e-4, 2e-3)

#: The best test AUC of each method in Table 1, with half its 95 % interval over eight trials.
TABLE_1 = {
    "BinMask": (0.834, 0.006),
    "L1": (0.836, 0.007),
    "L2": (0.820, 0.008),
    "Dropout": (0.827, 0.006),
    "LR": (0.819, 0.008),
}


def selected(name: str) -> list[Point]:
    """Figure 1: accuracy of networks retrained on the columns of each method, and its searches."""
    config = load_config(f"configs/feature_selection.py:{name}")
    config.train.num_epochs, config.sizes = SELECTIONS[name]
    config.seeds, config.methods = SEEDS, tuple(m for m in config.methods if m != "lassonet")
    with tempfile.TemporaryDirectory() as folder:
        table = feature_selection.run(config, Path(folder), progress=False)
    metrics = ("accuracy", claims.EXACT[0], *(ours for ours, _ in claims.SEARCHES.values()))
    return [
        point(name, str(method), size, metric, rows[metric])
        for (method, size), rows in table.groupby(["method", "num_features"], sort=False)
        for metric in metrics
        if rows[metric].notna().all()
    ]


def searches() -> list[Point]:
    """The numbers of section 4.1's text, beside the means over data sets and sizes here."""
    points = []
    for published, (metric, _) in claims.SEARCHES.items():
        for method in ("binmask", "stg"):
            rows = [p for p in recorded("binmask/1") if (p.series, p.metric) == (method, metric)]
            mean = float(np.mean([p.mean for p in rows]))
            std = math.sqrt(sum(p.std**2 for p in rows)) / len(rows)
            points.append(Point(metric, method, "here", metric, mean, std, len(SEEDS)))
            value = published_value("binmask", "all", method, published)
            points.append(Point(metric, method, "paper", metric, float(value or math.nan)))
    return points


def trained(strength: float | None) -> list[Point]:
    """Figure 3: sparsity and losses after each epoch at one lambda; ``None`` for a dense network.

    At the largest lambda ProbMask follows, with the same sparsity.
    """
    config = load_config("configs/sparsify.py:digits,lenet5")
    config.seeds = SEEDS
    name = sparsify.DENSE if strength is None else sparsify.BINMASK
    settings = [(name, {} if strength is None else {"strength": strength})]
    points: list[Point] = []
    with tempfile.TemporaryDirectory() as folder:
        plans = sparsify.set_up(config, Path(folder))
        for method, hyper in settings:
            hypers = {name: [value] * len(SEEDS) for name, value in hyper.items()}
            history = plans[method].train(hyper=hypers, folder=method).history
            series = method if strength is None else f"{method}, {strength:g}"
            closed = history.get("train/sparsity", np.zeros_like(history["train/loss"]))
            if method == sparsify.BINMASK and strength == max(STRENGTHS):
                settings.append((sparsify.PROBMASK, {"density": 1.0 - float(closed[:, -1].mean())}))
            curves = {"open_weights": 100.0 * (1.0 - closed), "test_loss": history["test/loss"]}
            curves |= {"training_loss": history["train/loss"], "accuracy": history["test/accuracy"]}
            points += [
                point("", series, epoch, metric, values)
                for metric, curve in curves.items()
                for epoch, values in enumerate(curve.T, start=1)
            ]
    return points


def accuracy_by_sparsity() -> list[Point]:
    """Figure 2: the last accuracy of each network of Figure 3 at its share of open weights."""
    points = recorded("binmask/3")
    last = max((p.x for p in points), key=lambda x: int(x or 0))
    final = {(p.series, p.metric): p for p in points if p.x == last}
    values = [p for p in final.values() if p.metric == "accuracy"]
    return [
        *(p._replace(x=round(final[p.series, "open_weights"].mean, 2)) for p in values),
        # The same at one place, for comparisons.
        *(p._replace(metric="last_accuracy", x="end") for p in values),
    ]


def regularized() -> list[Point]:
    """Table 1: the best test AUC of each regularizer, as printed and on ``ehr_like``."""
    config = load_config("configs/regularize.py:ehr_like")
    quick = load_config("configs/regularize.py:ehr_like,quick")
    quick.seeds = SEEDS
    quick.strengths = {name: values[2:4] for name, values in config.strengths.items()}
    with tempfile.TemporaryDirectory() as folder:
        table = regularize.run(quick, Path(folder), progress=False)
    points = []
    for method, (mean, half) in TABLE_1.items():
        std = half * math.sqrt(7) / float(stats.t.ppf(0.975, 7))
        points.append(Point("paper, health records", method, "", "test_auc", mean, std, 8))
        runs = table[table["method"] == method]
        tried = [rows["test_auc"] for _, rows in runs.groupby("strength", dropna=False)]
        best = max(tried, key=lambda values: float(values.mean()))
        points.append(point("here, ehr_like", method, "", "test_auc", best))
    return points


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "binmask/1": lambda: [Job(name, functools.partial(selected, name)) for name in SELECTIONS],
    "binmask/searches": lambda: [Job("searches", searches)],
    "binmask/exact": lambda: [
        Job("exact", lambda: [p for p in recorded("binmask/1") if p.metric == claims.EXACT[0]])
    ],
    "binmask/3": lambda: [
        Job(f"lambda-{strength}", functools.partial(trained, strength))
        for strength in (None, *STRENGTHS)
    ],
    "binmask/2": lambda: [Job("accuracy", accuracy_by_sparsity)],
    "binmask/finetuning": lambda: [
        # Fine-tuning with fixed masks takes the last 5 of 25 epochs.
        Job("end", lambda: [p for p in recorded("binmask/3") if p.x in ("20", "25")])
    ],
    "binmask/table-1": lambda: [Job("regularized", regularized)],
}
