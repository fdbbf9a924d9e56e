"""One of several processes: ``worker.py PORT COUNT NUMBER TIMEOUT FOLDER STEP...``.

Each step is a function below; they run in order. Process 0 writes results into the folder.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

import fsjax
from fsjax.engine import train
from fsjax.engine.distributed import agreed, gathered_processes, is_lead, share, shared_out

SETTINGS = dict(num_features=5, seeds=(4, 1, 9), num_epochs=9, batch_size=64, num_rows=300)


def wast(folder: Path | None = None, **changes: Any) -> fsjax.FitResult:
    """A small training with bitwise the same result on any number of processes."""
    options = SETTINGS | {"checkpoint_dir": folder, "checkpoint_every": 2} | changes
    data, rows = fsjax.data.load("digits"), options.pop("num_rows")
    data = dataclasses.replace(data, X=data.X[:rows], y=data.y[:rows])
    method = fsjax.methods.wast(hidden=(20,))
    return fsjax.fit(method, data, task="reconstruction", **options)


def one_batch(batch_devices: int) -> fsjax.FitResult:
    """A hundred steps of one run, whose batches are split over devices."""
    data = fsjax.data.load("digits")
    data = dataclasses.replace(data, X=data.X[:400], y=data.y[:400])
    method = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)
    options = dict(num_epochs=20, batch_size=64, seeds=(3,), batch_devices=batch_devices)
    return fsjax.fit(method, data, valid_fraction=0.2, **options)


def save(result: fsjax.FitResult, path: Path) -> None:
    """Saves the results that tests compare."""
    if is_lead():
        fsjax.save(result, path)


def whole(folder: Path) -> None:
    """A training without an interruption."""
    save(wast(), folder / "whole.npz")


def split(folder: Path) -> None:
    """The batches of one run over the devices of all processes."""
    save(one_batch(jax.device_count()), folder / "split.npz")


def killed(folder: Path) -> None:
    """Process 1 is lost after the checkpoint of epoch 4."""
    chunks = train.chunks

    def chunks_until_death(*args: Any, **options: Any) -> Iterator[train.Chunk]:
        for chunk in chunks(*args, **options):
            yield chunk
            if chunk.done >= 4 and not is_lead():
                os.kill(os.getpid(), signal.SIGKILL)

    train.chunks = chunks_until_death
    wast(folder / "checkpoints")


def resumed(folder: Path) -> None:
    """A training from the newest checkpoint; saves the number of epochs that were left."""
    result = wast(folder / "checkpoints")
    save(result, folder / "resumed.npz")
    if is_lead():
        (folder / "trained.txt").write_text(str(result.cost["trained_epochs"]))


def other_data(folder: Path) -> None:
    """The last process has fewer rows."""
    wast(num_rows=300 - (jax.process_index() == jax.process_count() - 1))


def exchange(folder: Path) -> None:
    """Exchanges values and bytes of several lengths; each process writes what it receives."""
    number = jax.process_index()
    pieces = [bytes(place * 7 % 251 for place in range(length)) for length in (0, 2, 200_000)]
    received = [share("data", piece if is_lead() else b"no") for piece in pieces]
    seen = {
        "gathered": gathered_processes("texts", [[], ["ä" * 40], ["ä" * 80]][number]),
        "agreed": agreed("number", 1.0e-300 if is_lead() else None),
        "shared": [[len(data), data[-1] if data else 0] for data in received],
        "work": shared_out("work", range(7), lambda part: [(i**2, number) for i in part]),
    }
    (folder / f"exchange{number}.json").write_text(json.dumps(seen))


def other_name(folder: Path) -> None:
    """The last process makes another exchange."""
    gathered_processes("b" if jax.process_index() == jax.process_count() - 1 else "a", 0)


STEPS = {f.__name__: f for f in (whole, split, killed, resumed, other_data, exchange, other_name)}


def main() -> None:
    """Joins the run and runs the steps."""
    port, count, number, timeout, folder, *steps = sys.argv[1:]
    fsjax.use_compilation_cache()
    fsjax.initialize_distributed(
        f"127.0.0.1:{port}", int(count), int(number), coordinator_timeout=float(timeout)
    )
    for step in steps:
        STEPS[step](Path(folder))


if __name__ == "__main__":
    main()
