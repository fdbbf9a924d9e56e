"""Reads a fitted estimator from one file without pickle."""

from pathlib import Path

import numpy as np

from fsjax import container, persist
from fsjax.errors import DataError
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import ESTIMATORS
from fsjax.estimators.inputs import group_numbers
from fsjax.estimators.packing import ARRAYS, KIND, from_json


def load(path: str | Path) -> Selector:
    """Reads what :meth:`fsjax.estimators.Selector.save` wrote; nothing in the file is executed.

    Returns:
      The fitted estimator. It predicts and transforms as before; ``fit`` starts anew.

    Raises:
      DataError: with the reason, for a file that cannot be read.
    """
    header, arrays = container.read(path)
    if header.get("kind") != KIND:
        raise DataError(f"{path} holds a {header.get('kind')!r}, no estimator; use fsjax.load")
    classes = {one.__name__: one for one in ESTIMATORS.values()}
    if header.get("class") not in classes:
        origin = str(header.get("origin", "")).partition(":")[0]
        raise DataError(
            f"{path} holds an estimator {header.get('class')!r} that is not known here; import "
            f"{origin!r} first, if you know and trust it"
        )
    try:
        parameters = {name: from_json(value) for name, value in header["parameters"].items()}
        estimator = classes[header["class"]](**parameters)
        estimator.n_features_in_ = int(header["n_features_in"])
        own_number, result = bool(header["own_number"]), header["result"]
        if header["target"]:
            mean, deviation = header["target"]
            estimator._target = np.asarray(mean, float), np.asarray(deviation, float)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is no estimator of this version of fsjax: {error}") from None
    for name in ARRAYS:
        if f"estimator/{name}" in arrays:
            values = arrays[f"estimator/{name}"]
            as_text = name == "feature_names_in_"
            setattr(estimator, name, values.astype(object) if as_text else values)
    result = persist.unpack(result, arrays)
    wanted = None if own_number else result.num_features
    groups = group_numbers(getattr(estimator, "groups", None), estimator.n_features_in_)
    estimator._learn(result, wanted, groups)
    return estimator
