"""scikit-learn estimators, one class per method: thin wrappers of :func:`fsjax.fit`.

They select columns (``fit``, ``transform``, ``get_support``), and if the method trains a classifier
or a regressor they predict as well. The defaults are those of the methods and their papers,
including epochs, batch size and scaling.

The classes are generated from the registrations of the methods (:func:`fsjax.register`).
"""

import importlib
from typing import Any

from fsjax.errors import unknown_attribute as _unknown_attribute
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import ESTIMATORS, estimator_of
from fsjax.estimators.files import load
from fsjax.methods import METHODS

for _build in list(METHODS.values()):
    estimator_of(_build.registration)

#: The classes by name.
_CLASSES = {estimator.__name__: estimator for estimator in ESTIMATORS.values()}
globals().update(_CLASSES)


def __getattr__(name: str) -> Any:
    """AutoSelector, imported on first use, or the class of a method that was registered later."""
    if name == "AutoSelector":  # imports the models that compete
        return importlib.import_module("fsjax.estimators.auto").AutoSelector
    for candidate in ESTIMATORS.values():
        if candidate.__name__ == name:
            return candidate
    names = [estimator.__name__ for estimator in ESTIMATORS.values()]
    raise _unknown_attribute(__name__, name, ["AutoSelector", "Selector", "load", *names])


__all__ = ["ESTIMATORS", "AutoSelector", "Selector", "load", *_CLASSES]  # noqa: PLE0604
