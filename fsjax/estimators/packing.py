"""Checks a fitted estimator, and converts it to a header of JSON values and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsjax.arguments.user_functions import is_function, text_of
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError
from fsjax.estimators.inputs import LABELS
from fsjax.storage import results
from fsjax.tasks import name_of

KIND = "estimator"


def pack(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a fitted estimator; ``estimators.load`` is the inverse.

    Raises:
      ConfigError: for parameters and labels that JSON and plain arrays cannot hold.
    """
    result, arrays = results.pack(estimator.result_)
    parameters = {
        name: name_of(value) if name == "task" else to_json(name, value)
        for name, value in estimator.get_params(deep=False).items()
        if name != "validation_data"
    }
    header = {
        "kind": KIND,
        "class": type(estimator).__name__,
        "origin": estimator.registration.origin,
        "parameters": parameters,
        "target": [part.tolist() for part in getattr(estimator, "_target", ())],
        "own_number": estimator.own_number_,
        "result": result,
    }
    for name in LABELS:
        if hasattr(estimator, name):
            arrays[f"estimator/{name}"] = plain_labels(getattr(estimator, name), name)
    return header, arrays


def to_json(name: str, value: Any) -> Any:
    """A parameter as a JSON value; dictionaries become pairs, as their keys may be numbers."""
    if hasattr(value, "__array__"):  # also a series of pandas or polars
        value = np.asarray(value).tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list) and not is_function(value):
        return [to_json(name, item) for item in value]
    if isinstance(value, dict):
        return {"pairs": to_json(name, list(value.items()))}
    if is_function(value):
        raise ConfigError(
            f"{name}={text_of(value)} cannot be saved, as files hold no functions; "
            "fsjax.save(estimator.result_, path) saves the result"
        )
    raise ConfigError(
        f"{name}={value!r} cannot be saved; use numbers, text, tuples, dictionaries or None"
    )


def from_json(value: Any) -> Any:
    """The inverse of :func:`to_json`."""
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if isinstance(value, dict):
        return {from_json(key): from_json(item) for key, item in value["pairs"]}
    return value


def plain_labels(values: np.ndarray, name: str) -> np.ndarray:
    """Labels without Python objects in them."""
    values = np.asarray(values)
    if values.dtype != object:
        return values
    if all(isinstance(value, str) for value in values):
        return values.astype(str)
    raise ConfigError(f"{name} holds {type(values[0]).__name__} objects; only text is saved")


def check_parameters(estimator: Any, result: FitResult) -> None:
    """ConfigError unless an estimator's arguments of the method are those of the training."""
    trained = dict(result.method.about.settings)
    number = trained.get("num_features")
    settings = dict(estimator._method(number).about.settings)
    for name, value in settings.items():
        if value != trained.get(name):
            raise ConfigError(
                f"{name}={value!r}, but the network was trained with {trained.get(name)!r}; fit "
                "again, or set it back"
            )
