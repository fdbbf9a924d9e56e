"""Checkpoints of a run through Orbax: the states of all seeds and the history so far."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from orbax.checkpoint import v1 as ocp

from fsjax.errors import ConfigError

_IDENTITY = "identity.json"


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(tree: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(jax.random.key_data(x) if _is_key(x) else x), tree)


def _like(tree: Any, like: Any) -> Any:
    def convert(leaf: np.ndarray, template: Any) -> Any:
        if _is_key(template):
            return jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(template))
        return jax.numpy.asarray(leaf)

    return jax.tree.map(convert, tree, like)


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
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _IDENTITY).write_text(json.dumps(self.identity, indent=2) + "\n")
        older = [e for e in self._epochs() if e != epoch]
        tree = {
            "states": _to_host(states),
            "history": {k: np.asarray(v) for k, v in history.items()},
        }
        leaves = {f"{i:05d}": leaf for i, leaf in enumerate(jax.tree.leaves(tree))}
        ocp.save(self._path(epoch), leaves, overwrite=True)
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
        differing = sorted(
            k for k in {*found, *self.identity} if found.get(k) != self.identity.get(k)
        )
        if differing:
            told = ", ".join(
                f"{k} {found.get(k)!r} there, {self.identity.get(k)!r} here" for k in differing[:4]
            )
            raise ConfigError(
                f"{self.folder} holds the checkpoints of another run ({told}); choose another "
                "folder or remove it"
            )
        leaves = ocp.load(self._path(epochs[-1]))
        template = {"states": states, "history": dict.fromkeys(history_names, 0)}
        flat = [np.asarray(leaves[name]) for name in sorted(leaves)]
        tree = jax.tree.unflatten(jax.tree.structure(template), flat)
        return epochs[-1], _like(tree["states"], states), tree["history"]
