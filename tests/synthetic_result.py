"""A made-up FitResult, for tests that need no training."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsjax.engine.result import FitResult
from fsjax.method import Method
from fsjax.methods import random_selection


def curve(rng: np.random.Generator, start: float, end: float, shape: tuple[int, int]) -> np.ndarray:
    """Values ``(S, E)`` that go from start to end, with noise that differs between seeds."""
    way = 1.0 - np.exp(-4.0 * np.linspace(0.0, 1.0, shape[1]))
    level = start + (end - start) * way
    return (level * (1.0 + 0.04 * rng.standard_normal(shape))).astype(np.float32)


def named(name: str, num_features: int = 10, **settings: Any) -> Method:
    """A method of any name and settings."""
    method = random_selection(num_features)
    about = method.about._replace(name=name, settings=tuple(settings.items()))
    return method._replace(about=about)


def make_result(
    *,
    name: str = "ip_cae",
    dataset: str = "coil20",
    task: str = "classification",
    columns: int = 64,
    num_features: int = 10,
    num_seeds: int = 3,
    num_epochs: int = 5,
    metrics: dict[str, np.ndarray] | None = None,
    **replaced: Any,
) -> FitResult:
    """A result of the given size with plausible numbers, always the same ones.

    Args:
      name: of the method.
      dataset: name.
      task: ``classification``, ``reconstruction`` or ``regression``.
      columns: D.
      num_features: K.
      num_seeds: S; the seeds are 1, 2, ...
      num_epochs: E.
      metrics: test metrics; by default those of the task.
      **replaced: further fields of the result.
    """
    rng = np.random.default_rng(0)
    shape = (num_seeds, num_epochs)
    place = np.arange(columns) / columns
    scores = (
        np.exp(-20.0 * (place - 0.5) ** 2) + 0.15 * rng.standard_normal((num_seeds, columns))
    ).astype(np.float32)
    ranking = np.argsort(-scores, axis=1)
    history = {
        "train/loss": curve(rng, 3.0, 0.05, shape),
        "train/unique_percentage": np.clip(curve(rng, 40.0, 99.0, shape), 0, 100),
        "valid/loss": curve(rng, 3.2, 0.3, shape),
    }
    if task == "classification":
        history["valid/accuracy"] = np.clip(curve(rng, 10.0, 96.0, shape), 0, 100)
        own = {"embedded_accuracy": 97.0 + rng.random(num_seeds)}
    elif task == "reconstruction":
        history["valid/reconstruction_frobenius"] = curve(rng, 9e-3, 2.6e-3, shape)
        own = {"reconstruction_frobenius": 2.4e-3 + 1e-4 * rng.random(num_seeds)}
    else:
        history["valid/mse"] = history["valid/loss"]
        own = {"mse": 0.3 + 0.01 * rng.random(num_seeds)}
    if metrics is None:
        metrics = {**own, "unique_percentage": history["train/unique_percentage"][:, -1]}
    fields: dict[str, Any] = {
        "method": named(name, num_features=num_features),
        "dataset": dataset,
        "task": task,
        "num_features": num_features,
        "seeds": tuple(range(1, num_seeds + 1)),
        "selected": ranking[:, :num_features],
        "ranking": ranking,
        "scores": scores,
        "gates": None,
        "metrics": metrics,
        "history": history,
        "best_epoch": history["valid/loss"].argmin(axis=1).astype(np.int32) + 1,
        "cost": {"params": 1234, "train_flops": 1e9, "train_seconds": 1.5},
        "states": None,
        "scalers": (),
        "splits": (),
        "constant_columns": np.zeros(num_seeds, np.int64),
    }
    return FitResult(**{**fields, **replaced})
