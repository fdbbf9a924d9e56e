"""Saved results and estimators: damaged bytes, and inconsistent content with valid checksums."""

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
from fsjax.storage import npz, results

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


def lying_attempt(number: int, seed: int) -> Outcome:
    """The outcome of one undamaged file in which one field has an invalid value."""
    rng = np.random.default_rng([seed, 3, number])
    saved = _saved()[number % 4]
    header = json.loads(json.dumps(saved.header))
    arrays = {name: np.array(value) for name, value in saved.arrays.items()}
    what = (_lie_in_array if rng.random() < 0.6 else _lie_in_header)(header, arrays, rng)
    kind, message = outcome_of(
        lambda: _load(saved, lambda path: npz.write(path, header, arrays)),
        lambda _: (WRONG, "accepted"),
    )
    return kind, f"{what}: {message}"


#: Fields of a result's header of which any other value is impossible or contradicts the rest.
_COUNTS = ("num_columns", "num_outputs", "num_rows", "batch_size", "num_epochs", "steps_per_epoch")
_OPTIONAL = "unit_names runs groups image_shape image_order best_by shuffle unknown".split()
_IMPOSSIBLE = (-1, 0, 2**40, "x", None, 1.5, True, [1], {})


def _lie_in_header(header: dict, arrays: dict, rng: np.random.Generator) -> str:
    result = header.get("result", header)
    value = _IMPOSSIBLE[rng.integers(len(_IMPOSSIBLE))]
    choices: list[tuple[dict, str, Any]] = [(result["spec"], name, value) for name in _COUNTS]
    choices += [
        (result, "seeds", value if value != [1] else []),
        (result, "seeds", [-1] * len(result["seeds"])),
        (result, "seeds", [1] * len(result["seeds"]) if len(result["seeds"]) > 1 else []),
        (result, "num_features", value if value != 0 else 99),
        (result, "runs", "other"),
        (result, "scalers", [99] * len(result["seeds"])),
        (result, "splits", value),
        (result, "metrics", value if value not in ([],) else 1),
        (result, "cost", {"params": float("nan")}),
        (result, "cost", {"params": -1}),
        (result, "kind", "other"),
        (result["spec"], "task", "other"),
        (result["spec"], "best_by", "other"),
        (result["spec"], "image_order", "X"),
        (result["spec"], "image_shape", [3, 3]),
        (result["spec"], "groups", [0, 0]),
        (result["spec"], "shuffle", "yes"),
        (result["spec"], "unknown", 1),
        (result["method"], "name", "other"),
        (result["method"], "settings", {"unknown": 1}),
        (result, "unit_names", ["a"]),
    ]  # fmt: skip
    if result is not header:
        choices += [
            (header, "own_number", "x"),
            (header, "class", "Other"),
            (header, "class", "IPCAE"),
            (header, "target", [[1, 2, 3], [1]] if header["target"] else [0.0, 1.0]),
            (header, "target", [0.0, -1.0]),
            (header, "parameters", {"unknown": 1}),
            (header, "result", value),
        ]
    where, name, lie = choices[rng.integers(len(choices))]
    if lie == where.get(name, ...) or rng.random() < 0.1:
        where.pop(name, None)
        # A file without these fields is valid, so damage it in another way.
        if name in _OPTIONAL:
            header["kind"] = "other"
        return f"no {name}"
    where[name] = lie
    return f"{name}={lie!r}"


def _lie_in_array(header: dict, arrays: dict, rng: np.random.Generator) -> str:
    names = sorted(name for name, value in arrays.items() if value.size)
    name = names[rng.integers(len(names))]
    values = arrays[name]
    last = name.rpartition("/")[2]
    lies: dict[str, Callable[[], Any]] = {
        "none": lambda: arrays.pop(name),
        "another dimension": lambda: arrays.update({name: values[None]}),
        "text": lambda: arrays.update({name: np.full(values.shape, "x")}),
        "complex": lambda: arrays.update({name: values.astype(complex)
                                          if values.dtype.kind != "U" else values[None]}),
    }  # fmt: skip
    if values.ndim and values.shape[0] > 1:
        # Any rows are valid in a split, but their number has to fit: cut most of them.
        cut = values[: max(1, len(values) // 4)]
        if not name.startswith("splits/") or last == "train":
            lies["cut"] = lambda: arrays.update({name: cut})
    wrong: dict[str, tuple[Any, ...]] = {
        "ranking": (-1, 99),
        "scores": (np.nan,),
        "gates": (np.nan, -0.5, 1.5),
        "constant_columns": (-1, 99),
        "trace": (-1, np.nan),
        "shift": (np.nan, np.inf),
        "scale": (np.nan, np.inf, -1.0),
        "train": (-1,),
        "embedded_accuracy": (-1.0, 101.0, np.inf),
        "unique_percentage": (-1.0, 101.0),
    }
    if name == "states/best/epoch":
        wrong[last] = (-5, 99)
    if name.startswith("states/params"):
        wrong[last] = (np.nan,)
    for value in wrong.get(last, ()):
        if not (name.startswith("history") or values.dtype.kind in "iub" and value != value):
            lies[f"{value}"] = functools.partial(_put, arrays, name, value)
    kind = sorted(lies)[rng.integers(len(lies))]
    lies[kind]()
    # A file without this array is valid, so damage it in another way.
    if kind == "none" and name == "estimator/feature_names_in_":
        header["kind"] = "other"
    return f"{name}: {kind}"


def _put(arrays: dict, name: str, value: float) -> None:
    changed = arrays[name].copy()
    changed.flat[0] = value
    arrays[name] = changed
