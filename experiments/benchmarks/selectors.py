"""Benchmarks of LassoNet and STG, compared with their authors' packages, and of an estimator.

``pip install -e .[bench]`` installs the packages; one that is missing is skipped. Both sides use
the same rows of COIL-20: WAST's split, with a tenth of the training rows for validation.
"""

import contextlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import fsjax
from experiments.arena.packages import stg_class
from experiments.benchmarks.timing import Case, case, measured, rounded
from experiments.studies.known_arrays import dense_arrays
from fsjax.data import Dataset, Split, load, make_split
from fsjax.evaluation import svm_accuracy

#: Columns that LassoNet's path ends with, and that STG selects.
LASSONET_K, STG_K = 45, 50

#: Settings of both implementations of STG.
STG_EPOCHS, STG_BATCH, STG_HIDDEN, STG_STRENGTH = 100, 128, (400, 200), 2.0

#: Trains on data that it holds; returns the selected ``columns`` and other values.
Run = Callable[[], dict[str, Any]]


def coil20(prepare: Callable[[Dataset, Split], Run], num_seeds: int = 0) -> dict[str, Any]:
    """Measures a selection on COIL-20: seconds, and the accuracy of an SVM on its ``columns``.

    The time of ``prepare`` does not count. With ``num_seeds``, seconds are those per seed.
    """
    data = load("coil20")
    split = make_split(data, "wast", valid_fraction=0.1)
    seconds, values = measured(prepare(data, split))
    columns = np.asarray(values["columns"])
    values |= {"columns": len(columns), "svm_accuracy": svm_accuracy(data, split, columns)}
    if not num_seeds:
        return seconds | values
    return values | {f"{name}_per_seed": value / num_seeds for name, value in seconds.items()}


def fit(method: fsjax.Method, data: Dataset, split: Split, **options: Any) -> fsjax.FitResult:
    """Trains on unscaled rows and keeps the last epoch."""
    return fsjax.fit(method, data, split=split, scaling="none", best_by="last", **options)


def lassonet(data: Dataset, split: Split) -> Run:
    """LassoNet's path down to 45 features with a hidden layer of 200, including compilation."""
    method = fsjax.methods.lassonet(LASSONET_K, hidden=(200,))

    def run() -> dict[str, Any]:
        epochs = {"num_epochs": 50_000, "batch_size": data.num_samples, "shuffle": False}
        result = fit(method, data, split, **epochs)
        lambdas = result.history["train/lambda"][0]
        return {
            "epochs": lambdas.size,
            "lambdas": len(np.unique(lambdas[lambdas > 0])),
            "columns": result.selected[0],
        }

    return run


def lassonet_package(data: Dataset, split: Split) -> Run:
    """LassoNet's path by the authors' package, on one thread."""
    import torch
    from lassonet import LassoNetClassifier

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = dense_arrays(data)
    x, y = x.astype(np.float32), y.astype(np.int64)
    model = LassoNetClassifier(hidden_dims=(200,), M=10, verbose=0)

    class Reached(Exception):
        """Ends the path."""

    def run() -> dict[str, Any]:
        seen: list[Any] = []

        def look(_: Any, history: list[Any]) -> None:
            seen[:] = history
            if int(history[-1].selected.sum()) <= LASSONET_K:
                raise Reached

        valid = {"X_val": x[split.valid], "y_val": y[split.valid]}
        with contextlib.suppress(Reached):
            model.path(x[split.train], y[split.train], callback=look, **valid)
        return {
            "epochs": sum(step.n_iters for step in seen),
            "lambdas": len(seen) - 1,
            "columns": np.flatnonzero(seen[-1].selected.numpy()),
        }

    return run


def stg(num_seeds: int, data: Dataset, split: Split) -> Run:
    """100 epochs of STG after compilation."""
    method = fsjax.methods.stg(
        STG_K, hidden=STG_HIDDEN, strength=STG_STRENGTH, learning_rate=1e-2, search=False
    )

    def run() -> dict[str, Any]:
        epochs = {"num_epochs": STG_EPOCHS, "batch_size": STG_BATCH}
        result = fit(method, data, split, seeds=range(num_seeds), **epochs)
        return {"columns": result.selected[0]}

    run()
    return run


def stg_package(data: Dataset, split: Split) -> Run:
    """100 epochs of STG by the authors' package, on one thread."""
    import torch

    package = stg_class()
    torch.set_num_threads(1)
    x, y = dense_arrays(data)
    x, y = x.astype(np.float32), y.astype(np.int64)

    def run() -> dict[str, Any]:
        model = package(
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

    return run


def first_and_second_fit() -> dict[str, float]:
    """Wall and CPU seconds of two fits of ``IPCAE`` on digits with default arguments.

    The first includes compilation and the import of the library; the second differs in its random
    state alone.
    """
    X, y = load_digits(return_X_y=True)

    def fit_estimator(random_state: int) -> None:
        from fsjax.estimators import IPCAE

        IPCAE(n_features_to_select=10, random_state=random_state).fit(X, y)

    first, second = (measured(partial(fit_estimator, number))[0] for number in range(2))
    return {
        f"{name}_{clock}_seconds": seconds[f"{clock}_seconds"]
        for name, seconds in (("first", first), ("second", second))
        for clock in ("wall", "cpu")
    }


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    by_name = {
        "lassonet/fsjax": case(coil20, lassonet),
        "lassonet/fsjax, bfloat16": case(rounded, coil20, lassonet),
        "lassonet/package": case(coil20, lassonet_package),
        "stg/fsjax, 1 seed": case(coil20, partial(stg, 1), 1),
        "stg/fsjax, 1 seed, bfloat16": case(rounded, coil20, partial(stg, 1), 1),
        "stg/fsjax, 4 seeds": case(coil20, partial(stg, 4), 4, devices=2),
        "stg/package": case(coil20, stg_package, 1),
        "estimators/ip_cae": case(first_and_second_fit),
    }
    for package in ("lassonet", "stg"):
        if importlib.util.find_spec(package) is None:
            del by_name[f"{package}/package"]
    return by_name
