"""A check before training that all processes have the same code, data and configuration."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fsjax.engine.distributed.exchange import gathered_processes, process_count
from fsjax.errors import ConfigError

#: What to do if a part differs.
_HINTS = {
    "code": "install the same versions of fsjax, JAX and Python everywhere",
    "data": "give all processes the same files (data.name, data.dir, FSJAX_DATA)",
    "configuration": "give all processes the same command line",
}


def check_same(**parts: Any) -> None:
    """Checks that ``code``, ``data`` and ``configuration`` are the same in all processes.

    Each part is a value for :func:`json_digest`. A single process compares nothing.

    Raises:
      ConfigError: in all processes; the message says which parts differ from those of process 0,
        and on which processes.
    """
    if process_count() == 1:
        return
    digests = gathered_processes(
        "comparison", {name: json_digest(part) for name, part in parts.items()}
    )
    messages = []
    for name in parts:
        different = [
            str(number) for number, other in enumerate(digests) if other[name] != digests[0][name]
        ]
        if different:
            messages.append(
                f"the {name} of process {', '.join(different)} is not that of process 0 "
                f"({_HINTS[name]})"
            )
    if messages:
        raise ConfigError(f"the processes disagree: {'; '.join(messages)}")


def json_digest(part: Any) -> str:
    """SHA-256 of a value as JSON; what JSON cannot represent is converted by ``str``."""
    return hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()


@functools.cache
def code() -> Mapping[str, str]:
    """The digest of this package's source and the versions of its numerical packages, by name."""
    folder, source = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        source.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    versions = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "optax")}
    return {"fsjax": source.hexdigest(), **versions}
