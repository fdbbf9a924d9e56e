"""Reads a fitted estimator from a file without pickle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.errors import DataError
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import ESTIMATORS
from fsjax.estimators.inputs import LABELS, numbers_of_groups
from fsjax.estimators.packing import KIND, from_json
from fsjax.storage import npz, results


def load(path: str | Path, max_bytes: int | None = None) -> Selector:
    """Reads what :meth:`fsjax.estimators.Selector.save` wrote; nothing in the file is executed.

    Args:
      path: the file.
      max_bytes: memory that its arrays may take together; half of the free memory by default.

    Returns:
      The fitted estimator. It predicts and transforms as before; ``fit`` starts from scratch.

    Raises:
      DataError: with the reason, for a file that cannot be read or is not a valid estimator.

    Examples:
      >>> print(sorted(fsjax.estimators.ESTIMATORS)[:3])
      >>> # an estimators.Selector
      >>> selector = fsjax.estimators.WAST(2, hidden=(8,), num_epochs=2).fit(data.X)
      >>> selector.save("selector.npz")
      >>> print(fsjax.estimators.load("selector.npz").get_support())
    """
    header, arrays = npz.read(path, max_bytes)
    if header.get("kind") != KIND:
        raise DataError(
            f"{path} holds a {header.get('kind')!r} and not an estimator; use fsjax.load"
        )
    classes = {estimator.__name__: estimator for estimator in ESTIMATORS.values()}
    if header["class"] not in classes:
        origin = header["origin"].partition(":")[0]
        raise DataError(
            f"{path} holds an estimator {header['class']!r} that is not known here; import "
            f"{origin!r} first, if you know and trust it"
        )
    try:
        return _unpacked(classes[header["class"]], header, arrays)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except TypeError as error:  # another version may have other parameters
        raise DataError(
            f"{path} is not an estimator of this version of fsjax: {error}; fit and save it again"
        ) from error


def _unpacked(
    kind: type[Selector], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Selector:
    result = results.unpack(header["result"], arrays)
    # Parameters that the saving version did not have are those of the method that was trained.
    trained, defaults = dict(result.method.about.settings), kind.registration.defaults()
    parameters = {name: trained[name] for name in defaults if name in trained}
    parameters |= {name: from_json(value) for name, value in header["parameters"].items()}
    estimator = kind(**parameters)
    num_columns = estimator.n_features_in_ = result.states.spec.num_columns
    for name in LABELS:
        if f"estimator/{name}" in arrays:
            values = arrays[f"estimator/{name}"]
            as_text = name == "feature_names_in_"
            setattr(estimator, name, values.astype(object) if as_text else values)
    if header["target"]:
        mean, deviation = (np.asarray(part, float) for part in header["target"])
        estimator._target = mean, deviation
    groups = numbers_of_groups(getattr(estimator, "groups", None), num_columns)
    estimator._learn(result, None if header["own_number"] else result.num_features, groups)
    return estimator
