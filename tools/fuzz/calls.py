"""Calls of ``fsjax.plan``, ``fsjax.fit`` and the estimators with invalid values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import fsjax
from fsjax import estimators
from fsjax.data import Split
from fsjax.errors import FsjaxError

from .outcomes import WRONG, Outcome, outcome_of

X = np.random.default_rng(0).normal(size=(48, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


def _repeated(*labels: Any, dtype: Any = object) -> np.ndarray:
    return np.array(list(labels) * (48 // len(labels)), dtype)


BAD_X: tuple[Any, ...] = (
    None, 3, "abc", [], [[1, 2], [3]] * 24, X[0], X[None], X.astype(str), X + 0j, np.zeros((0, 5)),
    np.zeros((48, 0)), np.where(X > 1, np.nan, X), np.where(X > 1, np.inf, X), X[:7],
    np.ma.masked_array(X, X > 1), pd.DataFrame(X, columns=list("abcda")),
    pd.DataFrame(X).assign(text="x"), X.astype("M8[s]"), np.full(X.shape, None), {"a": X},
    scipy.sparse.csr_matrix(np.where(X > 1, np.nan, X)), np.zeros(48, [("a", float)]),
    [[{}] * 5] * 48, iter([1]),
)  # fmt: skip

BAD_Y: tuple[Any, ...] = (
    3, "abc", [], {"a": 1}, Y[:7], Y[None], [[1], [1, 2]] * 24, Y + 0j, _repeated(1, "a"),
    _repeated("a", None), _repeated("a", np.nan), _repeated("a", pd.NA), _repeated({}, []),
    _repeated("2020-01-01", "NaT", dtype="M8[D]"), _repeated(1.0, np.inf, dtype=float),
    _repeated(1.0, np.nan, dtype=float), np.ma.masked_array(Y, X[:, 1] > 1), np.zeros(48, int),
    np.zeros(48, [("a", float)]), scipy.sparse.csr_matrix(Y), np.stack([Y] * 4, 1)[None],
)  # fmt: skip

BAD_OPTIONS: dict[str, tuple[Any, ...]] = {
    "seeds": (3, "12", [], [1.5], [-1], [1, 1], [2**40], None, [None], np.zeros((2, 2))),
    "task": (3, "classify", ["a"], "survival2"),
    "num_features": ("3", 0, -1, 99, 3.0, [], [None], [[3]], 4),
    "num_epochs": (0, -1, "x", None, float("nan"), float("inf"), 1.5, 10**30, [3]),
    "batch_size": (0, -1, "x", float("nan"), 1.5, 10**30, [3]),
    "shuffle": ("x", 1, None),
    "drop_last": ("x", 1, None),
    "min_steps_per_epoch": (0, "x", None, 10**30),
    "split": (3, "papers", None, Split(["a"], [], []), Split([0.5], [], []), Split([], [1], [2]),
              Split([0], [0], [1]), Split([99], [], []), Split(None, [1], []),
              [Split([0], [], [])] * 3,
              Split(Y == 0, [], []), Split([[0]], [], []), Split([-1], [], [])),
    "split_per_seed": ("x", 1, None),
    "scaling": (3, "standart", None),
    "valid_fraction": (1, -0.1, "x", float("nan"), [0.1]),
    "noise_std": (-1, "x", float("nan"), float("inf"), None),
    "sample_weight": ("x", 3, Y[:5], -X[:, 0], np.full(48, np.nan), np.ones(48) + 1j, np.zeros(48)),
    "groups": ("abcde", [0], [0, 2, 2, 2, 2], [None] * 5, [[1], [2, 3]], [0.5] * 5, [-1] * 5),
    "columns": ("ab", [1, 2], [[0, 99]], [[-1, 2]], [[1, 1]], [[0.5]], [], 3),
    "zero_others": ("x", None),
    "best_by": (3, "f1"),
    "record_test": ("x", None),
    "seed_axis": (3, "pmap", None),
    "progress": ("x", None),
    "checkpoint_dir": (3, ["a"]),
    "checkpoint_every": (0, -1, "x", None),
    "early_stopping": (0, -1, "x", 1.5),
    "max_time": (0, -1, "x", float("nan")),
    "callback": (3, "x"),
    "keep_partial": ("x", None),
    "start": (3, "x"),
}  # fmt: skip

BAD_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "n_features_to_select": ("3", 0, -1, 99, 1.5, float("nan"), [2]),
    "n_seeds": (0, -1, "x", None, 1.5),
    "random_state": ("x", -1, 1.5, 2**40),
    "task": (3, "classify", None),
    "num_epochs": (0, -1, "x", None, float("nan"), 10**30),
    "batch_size": (0, -1, "x", 1.5, 10**30),
    "validation_fraction": (1, -0.1, "x", None, float("nan")),
    "validation_data": (3, (X,), (X[:, :2], Y), (X, Y[:3]), (X, Y + 7)),
    "standardize": ("standart", 3, None),
    "class_weight": ("x", 3, {"z": 1}, {0: -1}, {0: float("nan")}),
    "verbose": ("x", None),
    "warm_start": ("x", None),
    "groups": ([0], [None] * 5, [[1], [2, 3]]),
    "hidden": (3, "x", (0,), (-1,), (1.5,), None),
    "learning_rate": (-1, "x", float("nan"), None),
    "early_stopping": (0, "x"),
    "max_time": (0, -1, "x"),
    "callback": (3,),
}

#: Values in place of the pair ``(X, y)``.
BAD_DATA: tuple[Any, ...] = (None, 3, "digits", X, (X,), (X, Y, Y), {"X": X}, [])


def attempt(number: int, seed: int) -> Outcome:
    """The outcome of one call with one to three invalid values."""
    rng = np.random.default_rng([seed, 4, number])
    of_estimator = number % 3 == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (_of_estimator if of_estimator else _of_plan)(rng, number % 3 == 1)


def _choice(values: tuple[Any, ...], rng: np.random.Generator) -> Any:
    return values[rng.integers(len(values))]


def _data(rng: np.random.Generator, which: int) -> tuple[Any, Any]:
    return (_choice(BAD_X, rng) if which in (0, 2) else X), (
        _choice(BAD_Y, rng) if which in (1, 2) else Y
    )


def _of_plan(rng: np.random.Generator, fit: bool) -> Outcome:
    data: Any = (X, Y)
    options: dict[str, Any] = {"num_epochs": 1}
    which = int(rng.integers(6))
    if which == 3:
        data = _choice(BAD_DATA, rng)
    elif which < 3:
        data = _data(rng, which)
    for _ in range(int(rng.integers(1, 3)) if which > 3 else int(rng.integers(2))):
        name = list(BAD_OPTIONS)[rng.integers(len(BAD_OPTIONS))]
        options[name] = _choice(BAD_OPTIONS[name], rng)
    method = fsjax.methods.stg(2, hidden=(3,))
    call = fsjax.fit if fit else fsjax.plan
    kind, message = outcome_of(lambda: call(method, data, **options), lambda _: (WRONG, "accepted"))
    return kind, f"{_shown(data)}, {_shown(options)}: {message}"


def _of_estimator(rng: np.random.Generator, fit: bool) -> Outcome:
    del fit
    which, parameters, x, y = int(rng.integers(4)), {}, X, Y
    if which < 3:
        x, y = _data(rng, which)
    else:
        name = list(BAD_PARAMETERS)[rng.integers(len(BAD_PARAMETERS))]
        parameters[name] = _choice(BAD_PARAMETERS[name], rng)
    arguments = {"n_features_to_select": 2, "num_epochs": 1, "hidden": (3,), **parameters}
    # scikit-learn's own errors are what its users expect.
    allowed = (FsjaxError, ValueError, TypeError)
    kind, message = outcome_of(
        lambda: estimators.STG(**arguments).fit(x, y), lambda _: (WRONG, "accepted"), allowed
    )
    return kind, f"estimator, {_shown((x, y))}, {_shown(parameters)}: {message}"


def _shown(value: Any) -> str:
    """A short form of a value; arrays are shown by their shape."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_shown(item)}' for name, item in value.items())}}}"
    if hasattr(value, "shape"):
        return f"{type(value).__name__}{value.shape}"
    return " ".join(repr(value).split())[:80]
