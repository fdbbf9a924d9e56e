"""Checks of the user's own judge: mistakes in its predictions become errors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fsjax import ConfigError, FsjaxError
from fsjax.auto.reading.column_operations import Columns
from fsjax.errors import name_some


@contextmanager
def named_failures(name: str | None, step: str) -> Iterator[None]:
    """ConfigError, with the name of a judge and the step, for any exception within the block.

    Args:
      name: of the user's judge; with ``None`` exceptions stay as they are.
    """
    try:
        yield
    except FsjaxError:
        raise
    except Exception as error:
        if name is None:
            raise
        raise ConfigError(
            f"judge={name} fails at {step} ({type(error).__name__}: {error}); correct it, or "
            "choose another judge"
        ) from error


def check_predictions(name: str, model: Any, X: Columns, y_train: np.ndarray, task: str) -> None:
    """ConfigError unless a fitted judge predicts one value of the right kind for each row.

    Args:
      X: ``(n, D)`` rows to predict.
      y_train: targets that it was fitted to, which name all classes.
      task: ``classification`` and ``multilabel`` allow known labels, others finite numbers.
    """
    with named_failures(name, "predict"):
        predicted = np.asarray(model.predict(X))
    wanted = (X.shape[0], *y_train.shape[1:])
    if predicted.shape != wanted:
        raise ConfigError(
            f"judge={name} predicts an array of shape {predicted.shape} for {X.shape[0]} rows; its "
            f"predict must return one of shape {wanted}"
        )
    if task in ("classification", "multilabel"):
        known = np.unique(y_train).tolist()
        # By text: NaN differs from itself.
        distinct = {str(label): label for label in predicted.ravel().tolist()}
        unknown = [label for label in distinct.values() if label not in known]
        if unknown:
            raise ConfigError(
                f"judge={name} predicts {name_some(unknown)}, which no training row has; its "
                f"predict must return the labels that fit was given ({name_some(known)})"
            )
    elif predicted.dtype.kind not in "fiub" or not np.isfinite(predicted).all():
        raise ConfigError(
            f"judge={name} predicts values that are not finite numbers; correct it, or choose "
            "another judge"
        )
