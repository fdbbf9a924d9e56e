"""Checks all parameters of an estimator, before it is saved and after it is loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsjax.arguments import Count, Positive, Rate, check
from fsjax.engine import FitResult
from fsjax.errors import ConfigError
from fsjax.estimators import inputs
from fsjax.tasks import TABLE

#: Allowed values of the parameters of all estimators, except those that :mod:`inputs` checks.
_COMMON: dict[str, Any] = {
    "num_epochs": Count,
    "batch_size": Count | None,
    "n_seeds": Count,
    "validation_fraction": Rate,
    "early_stopping": Count | None,
    "max_time": Positive | None,
    "keep_partial": bool,
    "warm_start": bool,
    "verbose": bool,
}


def check_parameters(estimator: Any, result: FitResult) -> None:
    """ConfigError unless a fitted estimator's parameters are allowed and match its result.

    Args:
      estimator: with its parameters and, for classification, ``classes_``.
      result: of ``fit``; it was trained with the same arguments of the method.
    """
    for name, annotation in _COMMON.items():
        check(annotation, **{name: getattr(estimator, name)})
    spec = result.states.spec
    inputs.first_seed(estimator.random_state)
    inputs.scaling_of(estimator.standardize)
    inputs.shape_of_images(getattr(estimator, "image_shape", None), spec.num_columns)
    if estimator.n_features_to_select is not None:
        inputs.number_to_select(estimator.n_features_to_select, spec.num_units)
    if estimator.class_weight is not None:
        if not TABLE[spec.task].classes:
            raise ConfigError(
                f"class_weight={estimator.class_weight!r} needs task='classification'"
            )
        classes = estimator.classes_
        inputs.class_weights(estimator.class_weight, classes, np.arange(len(classes)))
    _check_method(estimator, result)


def _check_method(estimator: Any, result: FitResult) -> None:
    """ConfigError unless the method's arguments are allowed and equal to those of the training."""
    trained = dict(result.method.about.settings)
    number = trained.get("num_features")
    settings = dict(estimator._method(number).about.settings)
    for name, value in settings.items():
        if value != trained.get(name):
            raise ConfigError(
                f"{name}={value!r}, but the network was trained with {trained.get(name)!r}; fit "
                "again, or set it back"
            )
