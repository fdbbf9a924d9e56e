"""Checks of hyperparameters that several methods share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fsjax.errors import ConfigError, nearest
from fsjax.method import Spec
from fsjax.methods.network import NetworkOptions


def check_choice(label: str, value: Any, allowed: Sequence[str]) -> None:
    """Raises ConfigError, with the nearest name, for a value that is not allowed."""
    if value not in allowed:
        raise ConfigError(f"{label}={value!r}: {nearest(str(value), allowed)}")


def check_above_0(**values: float) -> None:
    """Raises ConfigError for the first value that is not above 0; infinity is."""
    for label, value in values.items():
        if not value > 0:
            raise ConfigError(f"{label}={value}; choose a value above 0")


def check_optimizer(optimizer: Callable[[Spec], Any], body: NetworkOptions) -> None:
    """Builds the optimiser of the shortest run, to find bad values before there is a run.

    Args:
      optimizer: from the facts of a run to its optimiser.
      body: the options of the network, whose epochs of fine-tuning come on top.

    Raises:
      ConfigError: what the optimiser raises.
    """
    optimizer(Spec(1, 2, "classification", 1, 1, num_epochs=body.finetune_epochs + 1))
