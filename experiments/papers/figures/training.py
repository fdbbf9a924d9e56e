"""Trainings behind the figures: a paper's protocol with some fields changed, and their curves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fsjax
from experiments.launch.config import load_config
from experiments.launch.experiment import build_method, evaluated, load_data, make_plan
from experiments.papers.figures.rows import Point, point
from fsjax.method import Method


class Training(NamedTuple):
    """A training in the protocol of a paper; equal ones are trained once per process.

    Attributes:
      variant: the words after ``configs/papers.py:``, as in ``ctre,set,madelon``.
      epochs: their number; ``None`` for that of the protocol.
      fields: fields of ``config.method`` that differ, with their values.
      seeds: their number, from 0.
      k: the number of selected columns; ``None`` for that of the protocol.
      change: a function that changes the method, if it has no field for that.
    """

    variant: str
    epochs: int | None = None
    fields: tuple[tuple[str, Any], ...] = ()
    seeds: int = 3
    k: int | None = None
    change: Callable[[Method], Method] | None = None


@functools.cache
def trained(training: Training) -> fsjax.FitResult:
    """The result of a training with its test metrics."""
    config = load_config(f"configs/papers.py:{training.variant}")
    config.seeds = tuple(range(training.seeds))
    config.evaluation.protocols = ("embedded",)
    config.evaluation.num_features = ()
    for name, value in training.fields:
        config.method[name] = value
    if training.epochs is not None:
        config.train.num_epochs = training.epochs
    if training.k is not None:
        config.num_features = training.k
    method, dataset = build_method(config), load_data(config)
    if training.change is not None:
        method = training.change(method)
    plan = make_plan(
        config, method, dataset, task=config.task, num_features=config.num_features, progress=False
    )
    return evaluated(config, plan.fit()[0], dataset)


def curve(
    panel: str, series: str, metric: str, values: np.ndarray, every: int = 10, scale: float = 1.0
) -> list[Point]:
    """A curve over epochs at the first one, and at each multiple of ``every``.

    Args:
      panel, series, metric: as those of :class:`~experiments.papers.figures.rows.Point`.
      values: ``(S, E)``, after each epoch.
      every: epochs between two points.
      scale: a factor of all values.
    """
    epochs = [1, *range(every, values.shape[1] + 1, every)]
    return [point(panel, series, epoch, metric, scale * values[:, epoch - 1]) for epoch in epochs]
