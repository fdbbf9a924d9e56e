"""Checkpoints of a run through Orbax: the states of all seeds and the history so far."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.engine.serial import by_path, from_paths
from fsjax.errors import ConfigError

_IDENTITY = "identity.json"


class Checkpoints:
    """The checkpoints of one run in a folder; the newest complete one is kept.

    Args:
      folder: where they lie.
      identity: what the run is (method, seeds, shapes, ...); a folder that holds the checkpoints
        of another run is refused.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder).absolute()
        self.identity = json.loads(json.dumps(identity))

    def _epochs(self) -> list[int]:
        # Orbax writes beside the final name and renames at the end: what has it is complete.
        names = (path.name for path in self.folder.glob("epoch_*"))
        return sorted(int(n[6:]) for n in names if n[6:].isdigit())

    def _path(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:06d}"

    def save(self, epoch: int, states: Any, history: Mapping[str, np.ndarray]) -> None:
        """Writes the states after ``epoch`` epochs and the history, then drops older ones."""
        from orbax.checkpoint import v1 as ocp  # slow to import, and most runs save nothing

        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _IDENTITY).write_text(json.dumps(self.identity, indent=2) + "\n")
        older = [e for e in self._epochs() if e != epoch]
        recorded = {f"history/{name}": np.asarray(values) for name, values in history.items()}
        arrays = by_path(states, "states/") | recorded
        # Orbax refuses empty ones, which the template has anyway.
        filled = {name: values for name, values in arrays.items() if values.size}
        ocp.save(self._path(epoch), filled, overwrite=True)
        for e in older:
            shutil.rmtree(self._path(e), ignore_errors=True)

    def restore(
        self, states: Any, history_names: list[str]
    ) -> tuple[int, Any, dict[str, np.ndarray]] | None:
        """The newest checkpoint.

        Args:
          states: freshly initialised states, which give structure and dtypes.
          history_names: names of the recorded values.

        Returns:
          Epochs done, states and history ``(S, epochs)``; ``None`` if there is no checkpoint.

        Raises:
          ConfigError: if the folder belongs to another run.
        """
        epochs = self._epochs()
        if not epochs:
            return None
        try:
            found = json.loads((self.folder / _IDENTITY).read_text())
        except (OSError, ValueError):
            found = {}
        pairs = {k: (found.get(k), self.identity.get(k)) for k in sorted({*found, *self.identity})}
        differing = [f"{k} {a!r} there, {b!r} here" for k, (a, b) in pairs.items() if a != b]
        if differing:
            raise ConfigError(
                f"{self.folder} holds the checkpoints of another run ({', '.join(differing[:4])}); "
                "choose another folder or remove it"
            )
        from orbax.checkpoint import v1 as ocp

        leaves = ocp.load(self._path(epochs[-1]))
        arrays = {name: np.asarray(leaf) for name, leaf in leaves.items()}
        history = {name: arrays[f"history/{name}"] for name in history_names}
        return epochs[-1], from_paths(states, arrays, "states/"), history
