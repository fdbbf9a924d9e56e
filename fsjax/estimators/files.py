"""A fitted estimator as one file without pickle: its parameters, its result, its labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fsjax import container, persist
from fsjax.errors import ConfigError, DataError
from fsjax.estimators.settings import group_numbers

if TYPE_CHECKING:
    from fsjax.estimators.base import Selector

KIND = "estimator"

#: What is learnt beside the result.
_ARRAYS = ("classes_", "feature_names_in_")


def save(estimator: Selector, path: str | Path) -> None:
    """See :meth:`fsjax.estimators.Selector.save`."""
    check_is_fitted(estimator, "support_")
    result, arrays = persist.pack(estimator.result_)
    parameters = {
        name: _to_json(name, value)
        for name, value in estimator.get_params(deep=False).items()
        if name != "validation_data"
    }
    header = {
        "kind": KIND,
        "class": type(estimator).__name__,
        "parameters": parameters,
        "n_features_in": estimator.n_features_in_,
        "one_target": getattr(estimator, "_one_target", None),
        "target": [part.tolist() for part in getattr(estimator, "_target", ())],
        "own_number": estimator.own_number_,
        "result": result,
    }
    for name in _ARRAYS:
        if hasattr(estimator, name):
            arrays[f"estimator/{name}"] = _plain(getattr(estimator, name), name)
    container.write(path, header, arrays)


def load(path: str | Path) -> Selector:
    """Reads what :meth:`fsjax.estimators.Selector.save` wrote; nothing in the file is executed.

    Returns:
      The fitted estimator. It predicts and transforms as before; ``fit`` starts anew.

    Raises:
      DataError: with the reason, for a file that cannot be read.
    """
    from fsjax import estimators

    header, arrays = container.read(path)
    if header.get("kind") != KIND:
        raise DataError(f"{path} holds a {header.get('kind')!r}, no estimator; use fsjax.load")
    classes = {one.__name__: one for one in estimators.ESTIMATORS.values()}
    if header.get("class") not in classes:
        raise DataError(f"{path} holds an estimator {header.get('class')!r} that is not known here")
    try:
        parameters = {name: _from_json(value) for name, value in header["parameters"].items()}
        estimator = classes[header["class"]](**parameters)
        estimator.n_features_in_ = int(header["n_features_in"])
        own_number, result = bool(header["own_number"]), header["result"]
        if header["one_target"] is not None:
            estimator._one_target = bool(header["one_target"])
        if header["target"]:
            mean, deviation = header["target"]
            estimator._target = np.asarray(mean, float), np.asarray(deviation, float)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is no estimator of this version of fsjax: {error}") from None
    for name in _ARRAYS:
        if f"estimator/{name}" in arrays:
            values = arrays.pop(f"estimator/{name}")
            as_text = name == "feature_names_in_"
            setattr(estimator, name, values.astype(object) if as_text else values)
    result = persist.unpack(result, arrays)
    wanted = None if own_number else result.num_features
    groups = group_numbers(getattr(estimator, "groups", None), estimator.n_features_in_)
    estimator._learn(result, wanted, groups)
    return estimator


def _to_json(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_to_json(name, one) for one in value]
    if isinstance(value, dict):
        # As pairs: keys of JSON objects are always text.
        pairs = [[_to_json(name, key), _to_json(name, one)] for key, one in value.items()]
        return {"pairs": pairs}
    raise ConfigError(
        f"{name}={value!r} cannot be saved; use numbers, text, tuples, dictionaries or None"
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(one) for one in value)
    if isinstance(value, dict):
        return {_from_json(key): _from_json(one) for key, one in value["pairs"]}
    return value


def _plain(values: np.ndarray, name: str) -> np.ndarray:
    """Labels without Python objects in them."""
    values = np.asarray(values)
    if values.dtype != object:
        return values
    if all(isinstance(value, str) for value in values):
        return values.astype(str)
    raise ConfigError(f"{name} holds {type(values[0]).__name__} objects; only text is saved")
