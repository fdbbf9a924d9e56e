"""Saved results and estimators with damaged bytes."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fsjax
from fsjax import estimators
from fsjax.estimators import packing
from fsjax.storage import results

from .damage import damaged
from .outcomes import RIGHT, WRONG, Outcome, outcome_of

MAX_BYTES = 2**28


class Saved(NamedTuple):
    """The content of a file, and the functions that load and unpack it."""

    data: bytes
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    load: Callable[..., Any]
    pack: Callable[[Any], tuple[dict[str, Any], dict[str, np.ndarray]]]


@functools.cache
def _saved() -> list[Saved]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 6)).astype(np.float32)
    X[:, 4] = 1.0
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    stg = fsjax.fit(fsjax.methods.stg(2, hidden=(3,)), (X, y), seeds=(1, 5), num_epochs=2)
    wast = fsjax.fit(fsjax.methods.wast(hidden=(4,)), (X, y), num_features=2, num_epochs=2)
    options = {"n_features_to_select": 2, "hidden": (3,), "num_epochs": 2}
    classes = estimators.STG(**options).fit(X, np.array(["a", "b", "c"])[y])
    numbers = estimators.STG(task="regression", **options).fit(X, X[:, 0])
    saved = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        for item in (stg, wast, classes, numbers):
            result = isinstance(item, fsjax.FitResult)
            (functools.partial(fsjax.save, item) if result else item.save)(path)
            load, pack = (fsjax.load, results.pack) if result else (estimators.load, packing.pack)
            header, arrays = pack(item)
            saved.append(Saved(path.read_bytes(), header, arrays, load, pack))
    return saved


def _judge(saved: Saved, loaded: Any) -> Outcome:
    header, arrays = saved.pack(loaded)
    same = json.dumps(header, sort_keys=True) == json.dumps(saved.header, sort_keys=True)
    same &= arrays.keys() == saved.arrays.keys() and all(
        value.dtype == saved.arrays[name].dtype
        and np.array_equal(value, saved.arrays[name], equal_nan=value.dtype.kind == "f")
        for name, value in arrays.items()
    )
    return (RIGHT, "") if same else (WRONG, "what was loaded is not what was saved")


def _load(saved: Saved, write: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.npz")
        write(path)
        return saved.load(path, max_bytes=MAX_BYTES)


def damaged_attempt(number: int, seed: int) -> Outcome:
    """The outcome of one file with damaged bytes."""
    rng = np.random.default_rng([seed, 2, number])
    saved = _saved()[number % 4]
    data = damaged(saved.data, rng)
    return outcome_of(
        lambda: _load(saved, lambda path: path.write_bytes(data)),
        lambda loaded: _judge(saved, loaded),
    )
