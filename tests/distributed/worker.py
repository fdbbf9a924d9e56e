"""One of several processes: ``worker.py PORT COUNT NUMBER FOLDER STEP...``, with steps in order.

Each step is a function below. Process 0 leaves what it finds in the folder.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path
from typing import Any

import jax

import fsjax
from fsjax.engine.train import _Training

SETTINGS = dict(num_features=5, seeds=(4, 1, 9), num_epochs=9, batch_size=64, num_rows=300)


def wast(folder: Path | None = None, **changes: Any) -> fsjax.FitResult:
    """A small training, whose result is the same bits on any number of processes."""
    options = SETTINGS | {"checkpoint_dir": folder, "checkpoint_every": 2} | changes
    data, rows = fsjax.data.load("digits"), options.pop("num_rows")
    data = dataclasses.replace(data, X=data.X[:rows], y=data.y[:rows])
    method = fsjax.methods.wast(hidden=(20,))
    return fsjax.fit(method, data, task="reconstruction", **options)


def one_batch(batch_devices: int) -> fsjax.FitResult:
    """A hundred steps of one run, each batch of which is split."""
    data = fsjax.data.load("digits")
    data = dataclasses.replace(data, X=data.X[:400], y=data.y[:400])
    method = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)
    options = dict(num_epochs=20, batch_size=64, seeds=(3,), batch_devices=batch_devices)
    return fsjax.fit(method, data, valid_fraction=0.2, **options)


def save(result: fsjax.FitResult, path: Path) -> None:
    """What tests compare."""
    if fsjax.distributed.is_lead():
        fsjax.save(result, path)


def whole(folder: Path) -> None:
    """Without a stop."""
    save(wast(), folder / "whole.npz")


def split(folder: Path) -> None:
    """The batches of one run over the devices of all processes."""
    save(one_batch(jax.device_count()), folder / "split.npz")


def killed(folder: Path) -> None:
    """Process 1 is lost after the checkpoint of epoch 4."""
    advance = _Training.advance

    def advance_or_die(self: _Training) -> int:
        if self.done >= 4 and fsjax.distributed.group().number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self)

    _Training.advance = advance_or_die
    wast(folder / "checkpoints")


def resumed(folder: Path) -> None:
    """From the newest checkpoint; the epochs that were left are noted."""
    result = wast(folder / "checkpoints")
    save(result, folder / "resumed.npz")
    if fsjax.distributed.is_lead():
        (folder / "trained.txt").write_text(str(result.cost["trained_epochs"]))


def other_data(folder: Path) -> None:
    """The last process has fewer rows."""
    found = fsjax.distributed.group()
    wast(num_rows=300 - (found.number == found.count - 1))


def main() -> None:
    """Takes part."""
    port, count, number, folder, *steps = sys.argv[1:]
    fsjax.use_compilation_cache()
    fsjax.initialize_distributed(f"127.0.0.1:{port}", int(count), int(number))
    for step in steps:
        {f.__name__: f for f in (whole, split, killed, resumed, other_data)}[step](Path(folder))


if __name__ == "__main__":
    main()
