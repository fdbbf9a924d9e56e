"""scikit-learn estimators, one class for every method, thin over :func:`fsjax.fit`.

They select columns (``fit``, ``transform``, ``get_support``), and where the method trains a
classifier or a regressor they predict as well. The defaults are those of the methods and their
papers, also for epochs, rows per step and scaling.

The classes follow from the registration of their methods (:func:`fsjax.register`).
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
_CLASSES = {one.__name__: one for one in ESTIMATORS.values()}
globals().update(_CLASSES)


def __getattr__(name: str) -> Any:
    """What is imported when it is used, and classes of methods that were registered later."""
    if name == "AutoSelector":  # brings in the models that compete
        return importlib.import_module("fsjax.estimators.auto").AutoSelector
    for candidate in ESTIMATORS.values():
        if candidate.__name__ == name:
            return candidate
    names = [estimator.__name__ for estimator in ESTIMATORS.values()]
    raise _unknown_attribute(__name__, name, ["AutoSelector", "Selector", "load", *names])


__all__ = ["ESTIMATORS", "AutoSelector", "Selector", "load", *_CLASSES]  # noqa: PLE0604
