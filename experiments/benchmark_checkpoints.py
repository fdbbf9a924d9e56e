"""What it costs that a checkpoint is verified: a training whose state has a gibibyte."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

import fsjax
from experiments.timing import Case, measured
from fsjax.data import Split
from fsjax.engine import checkpoint

ROWS, COLUMNS = 1280, 10_000


def verified(hidden: int, epochs: int) -> dict[str, float]:
    """Adam on one wide layer, a checkpoint after so many epochs, and a restart that reads it.

    CPU seconds of the training with its checkpoint, of the restart, and of the SHA-256 in both;
    the share of the latter in all.
    """
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((ROWS, COLUMNS), np.float32), rng.integers(0, 5, ROWS)
    spent: list[float] = []

    def timed(path: Path) -> str:
        started = time.process_time()
        found = digest(path)
        spent.append(time.process_time() - started)
        return found

    def run(folder: str) -> fsjax.FitResult:
        return fsjax.fit(
            fsjax.methods.neural_network(hidden=(hidden,), optimizer="adam"),
            (x, y),
            num_features=10,
            split=Split(np.arange(ROWS), np.arange(0), np.arange(0)),
            scaling="none",
            best_by="last",
            batch_size=128,
            num_epochs=epochs,
            checkpoint_dir=folder,
            checkpoint_every=epochs,
        )

    digest = checkpoint._digest
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(checkpoint, "_digest", timed),
    ):
        training = measured(lambda: run(folder))[0]["cpu_seconds"]
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        restart = measured(lambda: run(folder))[0]["cpu_seconds"]
    return {
        "gib": size / 2**30,
        "training_cpu_seconds": training,
        "restart_cpu_seconds": restart,
        "sha256_cpu_seconds": sum(spent),
        "share": sum(spent) / (training + restart),
    }


def cases() -> dict[str, Case]:
    """The cases by name."""
    return {
        f"checkpoints/a gibibyte, {epochs} epochs of 10 steps": (
            partial(verified, 9_500, epochs),
            0,
        )
        for epochs in (1, 5)
    }
