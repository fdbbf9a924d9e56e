"""Checkpoints of a training on several processes: process 0 writes and reads them for all.

The gathered states are written without padding, so that a run can resume on any number of
processes. Only process 0 needs access to the folder.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsjax.distributed.exchange import is_lead, process_count, share
from fsjax.storage.checkpoints import Checkpoints, Restored
from fsjax.storage.trees import by_path, from_paths


def save(
    checkpoints: Checkpoints, epoch: int, states: Any, history: Mapping[str, np.ndarray]
) -> None:
    """Saves gathered states by :meth:`Checkpoints.save`, in process 0 only."""
    if is_lead():
        checkpoints.save(epoch, states, history)


def restore(checkpoints: Checkpoints, states: Any, names: list[str]) -> Restored | None:
    """Restores by :meth:`Checkpoints.restore` in process 0, and sends the result to all."""
    restored = checkpoints.restore(states, names) if is_lead() else None
    if process_count() == 1:
        return restored
    data = share("checkpoint", b"" if restored is None else _packed(restored))
    if is_lead() or not data:
        return restored
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    history = {name: arrays[f"history/{name}"] for name in names}
    return int(arrays["epoch"]), from_paths(states, arrays, "states/"), history


def _packed(restored: Restored) -> bytes:
    epoch, states, history = restored
    arrays = by_path(states, "states/") | {f"history/{k}": v for k, v in history.items()}
    # Any, for the types of savez; a name with a slash cannot collide with its keyword arguments.
    entries: dict[str, Any] = {"epoch": np.int64(epoch), **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **entries)
    return buffer.getvalue()
