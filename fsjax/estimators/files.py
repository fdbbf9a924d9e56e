"""Reads a fitted estimator from a file without pickle."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.engine import FitResult
from fsjax.errors import DataError, FsjaxError
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import ESTIMATORS
from fsjax.estimators.inputs import numbers_of_groups
from fsjax.estimators.packing import ARRAYS, KIND, check_parameters, from_json
from fsjax.storage import npz, results
from fsjax.tasks import TABLE


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
    if not isinstance(header.get("class"), str) or header["class"] not in classes:
        origin = str(header.get("origin", "")).partition(":")[0]
        raise DataError(
            f"{path} holds an estimator {header.get('class')!r} that is not known here; import "
            f"{origin!r} first, if you know and trust it"
        )
    try:
        return _unpacked(classes[header["class"]], header, arrays)
    except FsjaxError as error:
        raise DataError(f"{path}: {error}") from None
    # Arbitrary values in a file can lead to any error.
    except Exception as error:
        raise DataError(
            f"{path} is not an estimator of this version of fsjax: {error}; fit and save it again"
        ) from None


def _unpacked(
    kind: type[Selector], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Selector:
    result = results.unpack(header["result"], arrays)
    spec = result.states.spec
    # Parameters that the saving version did not have are those of the method that was trained.
    trained, defaults = dict(result.method.about.settings), kind.registration.defaults()
    parameters = {name: trained[name] for name in defaults if name in trained}
    parameters |= {name: from_json(value) for name, value in header["parameters"].items()}
    estimator = kind(**parameters)
    _check_kind(estimator, result)
    estimator.n_features_in_ = spec.num_columns
    for name in ARRAYS:
        if f"estimator/{name}" in arrays:
            values = arrays[f"estimator/{name}"]
            as_text = name == "feature_names_in_"
            setattr(estimator, name, values.astype(object) if as_text else values)
    if hasattr(estimator, "feature_names_in_"):
        _check_names(estimator.feature_names_in_, spec.num_columns)
    entry = TABLE[spec.task]
    if entry.classes != hasattr(estimator, "classes_"):
        raise DataError(f"the array 'classes_' does not belong to the task {spec.task}")
    if entry.classes:
        _check_classes(estimator.classes_, spec.num_outputs)
    check_parameters(estimator, result)
    if (entry.scale is not None) != bool(header["target"]):
        raise DataError(f"the header's 'target' does not belong to the task {spec.task}")
    if header["target"]:
        estimator._target = _target(header["target"], spec.num_outputs)
    labels = getattr(estimator, "groups", None)
    groups = numbers_of_groups(labels, spec.num_columns)
    if (None if labels is None else tuple(groups.tolist())) != spec.groups:
        raise DataError("the parameter 'groups' is not that of the network")
    if type(header["own_number"]) is not bool or header["own_number"] and result.gates is None:
        raise DataError(f"the header's 'own_number' is {header['own_number']!r}")
    estimator._learn(result, None if header["own_number"] else result.num_features, groups)
    return estimator


def _check_kind(estimator: Selector, result: FitResult) -> None:
    """DataError unless the result is of the method and task of the estimator."""
    for name in ("callback", "validation_data"):
        if getattr(estimator, name) is not None:
            raise DataError(f"it has the parameter {name!r}, which is never saved")
    name, task = estimator.registration.name, estimator.task
    if result.method.name != name or result.task != task:
        raise DataError(
            f"it holds a result of {result.method.name!r} for the task {result.task!r}, but the "
            f"estimator {type(estimator).__name__} is for {name!r} with task={task!r}"
        )


def _check_classes(classes: np.ndarray, num_outputs: int) -> None:
    """DataError unless there is one label for each output of a network, in ascending order."""
    if classes.ndim != 1 or len(classes) != num_outputs:
        raise DataError(
            f"the array 'classes_' has the shape {classes.shape}, but the network has "
            f"{num_outputs} classes"
        )
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise DataError("the array 'classes_' holds NaN or infinite labels")
    if not np.array_equal(np.unique(classes), classes):
        raise DataError("the array 'classes_' is not in ascending order, or has a label twice")


def _check_names(names: Sequence[Any], num_columns: int) -> None:
    """DataError unless each column has a unique name."""
    if np.ndim(names) != 1 or len(names) != num_columns or len(set(names)) < num_columns:
        raise DataError(
            f"the array 'feature_names_in_' does not hold {num_columns} different names"
        )


def _target(target: Any, num_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation by which the target was scaled."""
    mean, deviation = (np.asarray(part, float) for part in target)
    shapes = ((), (num_outputs,)) if num_outputs == 1 else ((num_outputs,),)
    if mean.shape != deviation.shape or mean.shape not in shapes:
        raise DataError(f"the header's 'target' has the shapes {mean.shape} and {deviation.shape}")
    if not np.isfinite(mean).all() or not np.isfinite(deviation).all() or (deviation <= 0).any():
        raise DataError(
            "the header's 'target' is not finite, or has a deviation that is not above 0"
        )
    return mean, deviation
