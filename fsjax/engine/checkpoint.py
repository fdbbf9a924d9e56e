"""Checkpoints of a run through Orbax: the states of all seeds and the history so far.

Beside each lies a record, written last: what the run is, the epoch, the SHA-256 of the files, and
that of itself. A checkpoint is believed only if all of it still holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.atomic import write_text
from fsjax.engine.serial import by_path, from_paths
from fsjax.errors import ConfigError

#: Checkpoints that are kept: if the newest is damaged, there is another.
KEPT = 2

#: Epochs done, states, and the history.
Restored = tuple[int, Any, dict[str, np.ndarray]]


class _Damaged(Exception):
    """Not what was saved."""


class Checkpoints:
    """The checkpoints of one run in a folder; the two newest are kept.

    Args:
      folder: where they lie.
      identity: what the run is (method, seeds, shapes, ...); a folder that holds the checkpoints
        of another run is refused.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder).absolute()
        self.identity = json.loads(json.dumps(identity))

    def _epochs(self) -> list[int]:
        # Orbax writes beside the final name and renames at the end.
        names = (path.name for path in self.folder.glob("epoch_*"))
        return sorted(int(n[6:]) for n in names if n[6:].isdigit())

    def _path(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:06d}"

    def _record(self, epoch: int) -> Path:
        return self._path(epoch).with_suffix(".json")

    def save(self, epoch: int, states: Any, history: Mapping[str, np.ndarray]) -> None:
        """Writes the states after ``epoch`` epochs and the history, then drops older ones."""
        from orbax.checkpoint import v1 as ocp  # slow to import, and most runs save nothing

        self.folder.mkdir(parents=True, exist_ok=True)
        older = [e for e in self._epochs() if e != epoch]
        recorded = {f"history/{name}": np.asarray(values) for name, values in history.items()}
        arrays = by_path(states, "states/") | recorded
        # Orbax refuses empty ones, which the template has anyway.
        filled = {name: values for name, values in arrays.items() if values.size}
        self._record(epoch).unlink(missing_ok=True)
        with _alone():
            ocp.save(self._path(epoch), filled, overwrite=True)
        digest = _digest(self._path(epoch))
        record = _sealed({"identity": self.identity, "epoch": epoch, "sha256": digest})
        write_text(self._record(epoch), json.dumps(record, indent=2) + "\n")
        for e in older[: len(older) + 1 - KEPT]:
            self._record(e).unlink(missing_ok=True)
            shutil.rmtree(self._path(e), ignore_errors=True)

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
            except _Damaged as error:
                rest = "an older one" if number + 1 < len(epochs) else "the beginning"
                told = f"the checkpoint {self._path(epoch)} is damaged ({error})"
                warnings.warn(f"{told}; going on from {rest}", stacklevel=2)
        return None

    def _read(self, epoch: int, states: Any, history_names: list[str]) -> Restored:
        from orbax.checkpoint import v1 as ocp

        record = _read_record(self._record(epoch))
        self._check_identity(record["identity"])
        if record["epoch"] != epoch:
            raise _Damaged(f"it is that of epoch {record['epoch']}")
        # Before Orbax reads it: that complains of damage in threads of its own.
        if _digest(self._path(epoch)) != record["sha256"]:
            raise _Damaged("its files are not those that were written")
        with _alone():
            leaves = ocp.load(self._path(epoch))
        arrays = {name: np.asarray(leaf) for name, leaf in leaves.items()}
        history = {name: arrays[f"history/{name}"] for name in history_names}
        return epoch, from_paths(states, arrays, "states/"), history

    def _check_identity(self, there: dict[str, Any]) -> None:
        pairs = {k: (there.get(k), self.identity.get(k)) for k in sorted({*there, *self.identity})}
        differing = [f"{k} {a!r} there, {b!r} here" for k, (a, b) in pairs.items() if a != b]
        if differing:
            raise ConfigError(
                f"{self.folder} holds the checkpoints of another run ({', '.join(differing[:4])}); "
                "choose another folder or remove it"
            )


@contextlib.contextmanager
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


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of all files."""
    found = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return found.hexdigest()


def _sealed(record: dict[str, Any]) -> dict[str, Any]:
    """With a sum over the record itself."""
    return {**record, "seal": hashlib.sha256(json.dumps(record).encode()).hexdigest()}


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
        seal = record.pop("seal")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise _Damaged(f"{path.name} is missing or damaged") from None
    if seal != _sealed(record)["seal"]:
        raise _Damaged(f"{path.name} is not what was written")
    return record
