"""Checkpoints of a run through Orbax: the states of all seeds and the history so far.

Beside each lies a record, written last: what the run is, the epoch, the SHA-256 of the files, and
that of itself. A checkpoint is believed only if all of it still holds.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging

from fsjax.engine.serial import by_path, from_paths
from fsjax.errors import ConfigError
from fsjax.seal import DamagedError, read_sealed, sha256_of_file, write_sealed

#: Checkpoints that are kept: if the newest is damaged, there is another.
KEPT = 2

#: Bytes of a checkpoint beside its arrays: some dozens of small files.
_MARGIN = 2**19

#: Epochs done, states, and the history.
Restored = tuple[int, Any, dict[str, np.ndarray]]


class Checkpoints:
    """The checkpoints of one run in a folder; the two newest are kept.

    Args:
      folder: where they lie.
      identity: what the run is (method, seeds, shapes, ...); a folder that holds the checkpoints
        of another run is refused.
      where: the circumstances (devices, versions, ...) on which the last bits depend; others than
        those of the checkpoint that is continued are told by a warning.
    """

    def __init__(
        self,
        folder: str | Path,
        identity: Mapping[str, Any],
        where: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.identity, self.where = json.loads(json.dumps([identity, where or {}]))

    def _epochs(self) -> list[int]:
        # Orbax writes beside the final name and renames at the end.
        names = (path.name for path in self.folder.glob("epoch_*"))
        return sorted(int(n[6:]) for n in names if n[6:].isdigit())

    def _path(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:06d}"

    def _record(self, epoch: int) -> Path:
        return self._path(epoch).with_suffix(".json")

    def save(self, epoch: int, states: Any, history: Mapping[str, np.ndarray]) -> None:
        """Writes the states after ``epoch`` epochs and the history, then drops older ones.

        Raises:
          OSError: if they cannot be written; older checkpoints stay.
        """
        from orbax.checkpoint import v1 as ocp  # slow to import, and most runs save nothing

        self.folder.mkdir(parents=True, exist_ok=True)
        older = [e for e in self._epochs() if e != epoch]
        recorded = {f"history/{name}": np.asarray(values) for name, values in history.items()}
        arrays = by_path(states, "states/") | recorded
        # Orbax refuses empty ones, which the template has anyway.
        filled = {name: values for name, values in arrays.items() if values.size}
        self._record(epoch).unlink(missing_ok=True)
        self._check_room(sum(values.nbytes for values in filled.values()))
        try:
            # Made in the background, a folder that fails leaves threads waiting for it for minutes,
            # which hold up the end of the process.
            at_once = ocp.options.AsyncOptions(create_directories_asynchronously=False)
            with _quiet(), _alone(), ocp.Context(async_options=at_once):
                ocp.save(self._path(epoch), filled, overwrite=True)
        # Of a full disk, TensorStore raises a ValueError with all that it tried.
        except (OSError, ValueError, RuntimeError) as error:
            self._remove_unfinished()
            full = "No space" in str(error) or "RESOURCE_EXHAUSTED" in str(error)
            number = errno.ENOSPC if full else getattr(error, "errno", None) or errno.EIO
            raise OSError(number, os.strerror(number), str(self._path(epoch))) from error
        digest = _digest(self._path(epoch))
        record = {"identity": self.identity, "where": self.where, "epoch": epoch, "sha256": digest}
        write_sealed(self._record(epoch), record)
        self._remove_unfinished()
        for e in older[: len(older) + 1 - KEPT]:
            self._record(e).unlink(missing_ok=True)
            shutil.rmtree(self._path(e), ignore_errors=True)

    def _check_room(self, size: int) -> None:
        """OSError before Orbax runs into it, in threads that go on to complain of it."""
        if shutil.disk_usage(self.folder).free < size + _MARGIN:
            number = errno.ENOSPC
            raise OSError(number, os.strerror(number), str(self.folder))

    def _remove_unfinished(self) -> None:
        """Removes what a save that failed, or was killed, left behind."""
        for path in self.folder.glob("epoch_*.orbax-checkpoint-tmp*"):
            shutil.rmtree(path, ignore_errors=True)

    def restore(self, states: Any, history_names: list[str]) -> Restored | None:
        """The newest whole checkpoint; a warning names those that are damaged.

        Args:
          states: freshly initialised states, which give structure and dtypes.
          history_names: names of the recorded values.

        Returns:
          Epochs done, states and history ``(S, epochs)``; ``None`` if there is no whole one.

        Raises:
          ConfigError: if the folder belongs to another run.
        """
        epochs = self._epochs()
        for number, epoch in enumerate(reversed(epochs)):
            try:
                return self._read(epoch, states, history_names)
            except DamagedError as error:
                rest = "an older one" if number + 1 < len(epochs) else "the beginning"
                told = f"the checkpoint {self._path(epoch)} "
                if self._record(epoch).exists():
                    told += f"is damaged ({error})"
                else:
                    told += f"has no {self._record(epoch).name}: cut short, or an older version's"
                warnings.warn(f"{told}; going on from {rest}", stacklevel=2)
        return None

    def _read(self, epoch: int, states: Any, history_names: list[str]) -> Restored:
        from orbax.checkpoint import v1 as ocp

        record = read_sealed(self._record(epoch))
        self._check_identity(record["identity"])
        if record["epoch"] != epoch:
            raise DamagedError(f"it is that of epoch {record['epoch']}")
        # Before Orbax reads it: that complains of damage in threads of its own.
        if _digest(self._path(epoch)) != record["sha256"]:
            raise DamagedError("its files are not those that were written")
        differing = _differing(record.get("where", {}), self.where)
        if "where" not in record:
            differing = f"an older version wrote {self._record(epoch).name}, which tells none"
        if differing:
            warnings.warn(
                f"{self._path(epoch)} is continued under other circumstances ({differing}), so "
                "that the end may differ from that of a run in one piece",
                stacklevel=2,
            )
        with _alone():
            leaves = ocp.load(self._path(epoch))
        arrays = {name: np.asarray(leaf) for name, leaf in leaves.items()}
        history = {name: arrays[f"history/{name}"] for name in history_names}
        return epoch, from_paths(states, arrays, "states/"), history

    def _check_identity(self, there: dict[str, Any]) -> None:
        if differing := _differing(there, self.identity):
            raise ConfigError(
                f"{self.folder} holds the checkpoints of another run ({differing}); choose another "
                "folder or remove it"
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what Orbax's threads report beside the error that is raised anyway.

    After an error, writes of TensorStore that are still under way find the loop of their save
    closed, and go on to say so.
    """
    level, hook = logging.get_verbosity(), sys.unraisablehook

    def told(of: Any) -> None:
        if str(of.exc_value) != "Event loop is closed":
            hook(of)

    logging.set_verbosity(logging.FATAL)
    sys.unraisablehook = told
    try:
        yield
        sys.unraisablehook = hook
    finally:
        logging.set_verbosity(level)


@contextmanager
def _alone() -> Iterator[None]:
    """Lets Orbax work in this process without meeting others of the same run.

    Its own option for that, ``active_processes``, leaves out one comparison over all processes.
    """
    counted = jax.process_count
    jax.process_count = lambda: 1
    try:
        yield
    finally:
        jax.process_count = counted


def _differing(there: dict[str, Any], here: dict[str, Any]) -> str:
    """The first fields that differ; empty where none does."""
    names = [k for k in sorted({*there, *here}) if there.get(k) != here.get(k)]
    return ", ".join(f"{k} {there.get(k)!r} there, {here.get(k)!r} here" for k in names[:4])


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of all files."""
    found = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        found.update(f"{path.relative_to(folder).as_posix()} {sha256_of_file(path)}\n".encode())
    return found.hexdigest()
