"""Benchmarks of LassoNet and STG beside the packages of their authors, on COIL-20.

The packages are the extra ``bench`` (``pip install -e .[bench]``); what is not installed is left
out. All take the same rows: WAST's split, of whose training rows a tenth validates.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fsjax
from experiments.timing import cpu_seconds
from fsjax.data import Dataset, Split, load, make_split
from fsjax.evaluation import svm_accuracy

#: Columns at the end of LassoNet's path, and of STG.
LASSONET_K, STG_K = 45, 50

#: Of both versions of STG.
STG_EPOCHS, STG_BATCH, STG_HIDDEN, STG_STRENGTH = 100, 128, (400, 200), 2.0


def coil20() -> tuple[Dataset, Split]:
    """The data set and the rows that everything here uses."""
    data = load("coil20")
    return data, make_split(data, "wast", valid_fraction=0.1)


def measured(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``run`` returns, after its CPU and wall seconds."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    found = run()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    return {"cpu_seconds": cpu, "wall_seconds": wall, **found}


def lassonet() -> dict[str, Any]:
    """The path down to 45 features with hidden layer 200, compilation included."""
    data, split = coil20()
    method = fsjax.methods.lassonet(LASSONET_K, hidden=(200,))

    def run() -> dict[str, Any]:
        result = fsjax.fit(
            method,
            data,
            split=split,
            scaling="none",
            num_epochs=50_000,
            batch_size=data.num_samples,
            shuffle=False,
            best_by="last",
        )
        lambdas = result.history["train/lambda"][0]
        return {
            "epochs": lambdas.size,
            "lambdas": len(np.unique(lambdas[lambdas > 0])),
            "columns": result.selected[0],
        }

    return _judged(measured(run), data, split)


def lassonet_package() -> dict[str, Any]:
    """The same with the authors' package, on one thread."""
    import torch
    from lassonet import LassoNetClassifier

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data, split = coil20()
    x, y = data.X.astype(np.float32), data.y.astype(np.int64)
    model = LassoNetClassifier(hidden_dims=(200,), M=10, verbose=0)

    class Reached(Exception):
        """Ends the path."""

    def run() -> dict[str, Any]:
        seen: list[Any] = []

        def look(_: Any, history: list[Any]) -> None:
            seen[:] = history
            if int(history[-1].selected.sum()) <= LASSONET_K:
                raise Reached

        try:
            model.path(
                x[split.train],
                y[split.train],
                X_val=x[split.valid],
                y_val=y[split.valid],
                callback=look,
            )
        except Reached:
            pass
        return {
            "epochs": sum(step.n_iters for step in seen),
            "lambdas": len(seen) - 1,
            "columns": np.flatnonzero(seen[-1].selected.numpy()),
        }

    return _judged(measured(run), data, split)


def _judged(found: dict[str, Any], data: Dataset, split: Split) -> dict[str, Any]:
    columns = found.pop("columns")
    accuracy = svm_accuracy(data, split, np.asarray(columns))
    return {**found, "columns": len(columns), "svm_accuracy": accuracy}


def stg(num_seeds: int) -> dict[str, Any]:
    """100 epochs of STG after compilation, in CPU seconds a seed."""
    data, split = coil20()
    method = fsjax.methods.stg(
        STG_K, hidden=STG_HIDDEN, strength=STG_STRENGTH, learning_rate=1e-2, search=False
    )

    def run() -> dict[str, Any]:
        result = fsjax.fit(
            method,
            data,
            seeds=range(num_seeds),
            split=split,
            scaling="none",
            num_epochs=STG_EPOCHS,
            batch_size=STG_BATCH,
            best_by="last",
        )
        return {"columns": result.selected[0]}

    run()
    found = _judged(measured(run), data, split)
    for name in ("cpu_seconds", "wall_seconds"):
        found[f"{name}_per_seed"] = found.pop(name) / num_seeds
    return found


def stg_package() -> dict[str, Any]:
    """The same with the authors' package, on one thread."""
    import torch

    # The package is older than Python 3.10, which took these names away.
    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    from stg import STG

    torch.set_num_threads(1)
    data, split = coil20()
    x, y = data.X.astype(np.float32), data.y.astype(np.int64)

    def run() -> dict[str, Any]:
        model = STG(
            task_type="classification",
            input_dim=data.num_features,
            output_dim=data.num_classes,
            hidden_dims=list(STG_HIDDEN),
            activation="relu",
            optimizer="Adam",
            learning_rate=1e-2,
            batch_size=STG_BATCH,
            feature_selection=True,
            sigma=0.5,
            lam=STG_STRENGTH,
            device="cpu",
        )
        model.fit(x[split.train], y[split.train], nr_epochs=STG_EPOCHS, verbose=False)
        return {"columns": np.argsort(model.get_gates("raw"))[::-1][:STG_K].copy()}

    found = _judged(measured(run), data, split)
    for name in ("cpu_seconds", "wall_seconds"):
        found[f"{name}_per_seed"] = found.pop(name)
    return found


def cases() -> dict[str, tuple[Callable[[], dict[str, Any]], int]]:
    """Measurements by name, with the number of CPU devices (0 keeps one)."""
    found = {
        "lassonet/fsjax": (lassonet, 0),
        "lassonet/package": (lassonet_package, 0),
        "stg/fsjax, 1 seed": (lambda: stg(1), 0),
        "stg/fsjax, 4 seeds": (lambda: stg(4), 2),
        "stg/package": (stg_package, 0),
    }
    for package in ("lassonet", "stg"):
        if importlib.util.find_spec(package) is None:
            del found[f"{package}/package"]
    return found
