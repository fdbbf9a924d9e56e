"""Whether all processes are about to do the same: compared before anything is trained."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fsjax.distributed.members import group
from fsjax.errors import ConfigError

#: What to look at where something differs.
_HINTS = {
    "code": "install the same version of fsjax, JAX and Python everywhere",
    "data": "give all the same files (data.name, data.dir, FSJAX_DATA)",
    "configuration": "give all the same command line",
}


def check_same(**parts: Any) -> None:
    """Compares parts of a run over all processes: ``code``, ``data``, ``configuration``.

    Each is what JSON can hold. Nothing is compared where there is but one process.

    Raises:
      ConfigError: in all processes, naming what differs from process 0, and where.
    """
    found = group()
    if found is None:
        return
    values, _ = found.gather("comparison", {name: digest(part) for name, part in parts.items()})
    differing = {
        name: [number for number, other in enumerate(values) if other[name] != values[0][name]]
        for name in parts
    }
    told = [
        f"the {name} of process {', '.join(map(str, numbers))} is not that of process 0 "
        f"({_HINTS[name]})"
        for name, numbers in differing.items()
        if numbers
    ]
    if told:
        raise ConfigError(f"the processes disagree: {'; '.join(told)}")


def digest(part: Any) -> str:
    """SHA-256 of what JSON can hold; of anything else its text counts."""
    return hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()


@functools.cache
def code() -> Mapping[str, str]:
    """The source of this package and the versions of what computes, by name."""
    folder, found = Path(__file__).resolve().parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    versions = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}
    return {"fsjax": found.hexdigest(), **versions}
