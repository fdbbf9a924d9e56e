"""Checkpoints of a training on several processes: process 0 writes and reads them for all.

The states are gathered and written whole, without the rows that only fill up, so that any number
of processes can go on from them; the folder need not be seen by others than process 0.
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
    """:meth:`Checkpoints.save` of gathered states, in process 0."""
    if is_lead():
        checkpoints.save(epoch, states, history)


def restore(checkpoints: Checkpoints, states: Any, names: list[str]) -> Restored | None:
    """:meth:`Checkpoints.restore` by process 0, for all; arguments and errors are the same."""
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
    # Of any type for savez, whose options no name with a slash is taken for.
    entries: dict[str, Any] = {"epoch": np.int64(epoch), **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **entries)
    return buffer.getvalue()
