"""Checkpoints of a run: files with the states of all seeds and the history so far.

Files are written atomically and have a checksum; if the newest is damaged,
the run resumes from the one before it. On several processes, process 0 writes and reads them for
all, and only it needs access to the folder. The states are those of all processes, without padding,
so that a run can resume on any number of processes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.engine.distributed.exchange import is_lead, process_count, share
from fsjax.errors import ConfigError, DataError
from fsjax.storage import npz
from fsjax.storage.atomic_files import remove_leftovers
from fsjax.storage.identity import Identity
from fsjax.storage.trees import by_path, from_paths

#: ``kind`` of the header of a checkpoint.
CHECKPOINT = "checkpoint"

#: The number of checkpoints that are kept, so that there is another if the newest is damaged.
KEPT = 2

#: Number of epochs done, states, and the history.
Restored = tuple[int, Any, dict[str, np.ndarray]]


class Checkpoints:
    """The checkpoints of one run in a folder; the two newest are kept.

    Args:
      folder: of the checkpoints.
      identity: of the run. Checkpoints of another run are refused; checkpoints of other versions
        are used with a warning.
    """

    def __init__(self, folder: str | Path, identity: Identity) -> None:
        self.folder, self.identity = Path(folder).absolute(), identity

    def save(self, epoch: int, states: Any, history: Mapping[str, np.ndarray]) -> None:
        """Write the states after ``epoch`` epochs and the history, then remove old checkpoints.

        Processes other than process 0 do nothing.

        Raises:
          OSError: if the checkpoint cannot be written; older ones are kept then.
        """
        if not is_lead():
            return
        header = {"kind": CHECKPOINT, "epoch": epoch, "identity": self.identity.to_json()}
        arrays = _named_arrays(states, history)
        npz.write(self._path(epoch), header, arrays, compress=False)
        remove_leftovers(self.folder)
        # Later ones are damaged, because the run would have resumed from them otherwise.
        kept = [saved for saved in self._epochs() if saved <= epoch][-KEPT:]
        for other in {*self._epochs()} - {*kept}:
            self._path(other).unlink(missing_ok=True)

    def restore(self, states: Any, history_names: Sequence[str]) -> Restored | None:
        """Read the newest checkpoint that is not damaged, in process 0, and send it to all.

        A warning names damaged ones.

        Args:
          states: freshly initialised states, which give structure and types.
          history_names: names of the recorded values.

        Returns:
          Number of epochs done, states and history ``(S, epochs)``; ``None`` without a checkpoint.

        Raises:
          ConfigError: if the folder belongs to another run.
          DataError: for a checkpoint of another version.
        """
        restored = self._newest(states, history_names) if is_lead() else None
        if process_count() == 1:
            return restored
        data = share("checkpoint", b"" if restored is None else _packed(*restored))
        if is_lead() or not data:
            return restored
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return _restored(int(file["epoch"]), states, dict(file), history_names)

    def _newest(self, states: Any, history_names: Sequence[str]) -> Restored | None:
        epochs = self._epochs()
        while epochs:
            epoch = epochs.pop()
            try:
                return self._read(epoch, states, history_names)
            except npz.VersionError:
                raise
            except DataError as error:
                rest = "an older one" if epochs else "the beginning"
                warnings.warn(
                    f"the checkpoint {self._path(epoch)} is damaged ({error}); continuing from "
                    f"{rest}",
                    stacklevel=3,
                )
        return None

    def _epochs(self) -> list[int]:
        numbers = (path.stem.removeprefix("epoch_") for path in self.folder.glob("epoch_*.npz"))
        return sorted(int(number) for number in numbers if number.isdigit())

    def _path(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:06d}.npz"

    def _read(self, epoch: int, states: Any, history_names: Sequence[str]) -> Restored:
        path = self._path(epoch)
        # Arrays are not compressed, and so not larger than the file.
        header, arrays = npz.read(path, max_bytes=max(path.stat().st_size, 1))
        if header.get("kind") != CHECKPOINT or header.get("epoch") != epoch:
            raise DataError(f"it is a {header.get('kind')} of epoch {header.get('epoch')}")
        earlier = Identity.from_json(header.get("identity"))
        if changes := self.identity.changes(earlier):
            raise ConfigError(
                f"{self.folder} holds the checkpoints of another run ({changes}); choose another "
                "folder or remove it"
            )
        if changes := self.identity.changes(earlier, ["versions"]):
            warnings.warn(
                f"{path} is resumed with other versions or devices ({changes}), so the "
                "results may differ from those of an uninterrupted run",
                stacklevel=4,
            )
        try:
            return _restored(epoch, states, arrays, history_names)
        except (DataError, KeyError) as error:
            raise ConfigError(
                f"{path} does not hold the states of this version of the method ({error}); remove "
                f"{self.folder} to start again"
            ) from None


def _named_arrays(states: Any, history: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return by_path(states, "states/") | by_path(dict(history), "history/")


def _restored(
    epoch: int, states: Any, arrays: Mapping[str, np.ndarray], history_names: Sequence[str]
) -> Restored:
    """The inverse of :func:`_named_arrays`."""
    history = {name: arrays[f"history/{name}"] for name in history_names}
    return epoch, from_paths(states, arrays, "states/"), history


def _packed(epoch: int, states: Any, history: Mapping[str, np.ndarray]) -> bytes:
    # Any, for the types of savez; a name with a slash cannot collide with its keyword arguments.
    entries: dict[str, Any] = {"epoch": np.int64(epoch), **_named_arrays(states, history)}
    buffer = io.BytesIO()
    np.savez(buffer, **entries)
    return buffer.getvalue()
