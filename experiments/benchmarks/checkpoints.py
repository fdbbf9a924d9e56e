"""The cost of writing, reading and verifying a checkpoint of one gibibyte."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import fsjax
from experiments.benchmarks.timing import Case, case, measured, random_plan
from fsjax.storage.checkpoints import Checkpoints

ROWS, COLUMNS = 1280, 10_000


def train_and_restart(hidden: int, epochs: int) -> dict[str, float]:
    """Trains one wide layer with Adam, writes a checkpoint at the end, and restarts from it.

    Returns:
      CPU seconds of the training, of the restart, and of writing and reading the checkpoint within
      them; ``share`` is the part of all seconds that writing and reading take.
    """
    spent: dict[str, float] = {}

    def timed(name: str) -> Any:
        method: Callable[..., Any] = getattr(Checkpoints, name)

        def call(*args: Any) -> Any:
            started = time.thread_time()
            value = method(*args)
            spent[name] = spent.get(name, 0.0) + time.thread_time() - started
            return value

        return mock.patch.object(Checkpoints, name, call)

    def run(folder: str) -> fsjax.FitResult:
        planned = random_plan(
            fsjax.methods.neural_network(hidden=(hidden,), optimizer="adam"),
            *(ROWS, COLUMNS, 5),
            num_features=10,
            best_by="last",
            batch_size=128,
            num_epochs=epochs,
            checkpoint_dir=folder,
            checkpoint_every=epochs,
        )
        return planned.fit()[0]

    with tempfile.TemporaryDirectory() as folder, timed("save"), timed("restore"):
        training = measured(lambda: run(folder))[0]["cpu_seconds"]
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        restart = measured(lambda: run(folder))[0]["cpu_seconds"]
    return {
        "gib": size / 2**30,
        "training_cpu_seconds": training,
        "restart_cpu_seconds": restart,
        "write_cpu_seconds": spent["save"],
        "read_cpu_seconds": spent["restore"],
        "share": sum(spent.values()) / (training + restart),
    }


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    return {
        f"checkpoints/a gibibyte, {epochs} epochs of 10 steps": case(
            train_and_restart, 9_500, epochs
        )
        for epochs in (1, 5)
    }
