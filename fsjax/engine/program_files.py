"""Traced programs on disk, so that another process need not trace and lower them again.

JAX's own cache, in the same folder, holds compiled programs. It is searched only after tracing and
lowering, which take longer than loading. A file is found by all that determines a program: the
function and its static arguments, the types of the arrays, the settings of JAX, and the code of the
packages. Functions and types of the user, whose code may change, have no file. If constants of the
library are replaced while it runs, set ``FSJAX_CACHE=off``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import numpy as np
from jax import export

from fsjax.engine.distributed.same import code
from fsjax.engine.environment.jax_settings import setting
from fsjax.storage.atomic_files import atomic_open

#: Packages whose functions and types :func:`fsjax.engine.distributed.same.code` determines.
KNOWN = ("fsjax", "optax", "numpy", "builtins")

#: Whether there are files at all; tests that replace parts of the library turn them off.
enabled = True


class _Description(pickle.Pickler):
    """Bytes that determine a value; PicklingError for what may have other code next time."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            if isinstance(value, jax.Array) and len(value.sharding.device_set) > 1:
                raise pickle.PicklingError("an array on several devices")
            return str, (repr(jax.typeof(value)),)
        of = value if isinstance(value, FunctionType | type) else type(value)
        if of.__module__.partition(".")[0] not in KNOWN:
            raise pickle.PicklingError(f"{of} does not belong to the library")
        if isinstance(value, FunctionType) and "<locals>" not in value.__qualname__:
            return str, (f"{value.__module__}:{value.__qualname__}",)  # Perhaps undecorated.
        return NotImplemented


def path_of(name: str, *parts: Any) -> Path | None:
    """The file of what the parts determine; ``None`` if there is no cache, or no description."""
    folder = setting("jax_compilation_cache_dir")
    if folder is None or not enabled or jax.process_count() > 1:
        return None
    settings = {key: repr(getattr(jax.config, key, None)) for key in sorted(jax.config.values)}
    first = jax.devices()[0]
    where = (first.platform, first.device_kind, jax.device_count(), dict(code()), settings)
    described = _Description(content := io.BytesIO())
    described.fast = True  # Bytes do not depend on which objects are the same.
    try:
        described.dump((parts, where))
    except (pickle.PicklingError, AttributeError, TypeError, ValueError):
        return None
    return Path(folder) / f"{name}-{hashlib.sha256(content.getvalue()).hexdigest()}-traced"


def traced(
    function: Callable[..., Any], arrays: tuple[Any, ...], static: Mapping[str, Any]
) -> Callable[..., Any]:
    """The function of the arrays; loaded from the file of its program, which is written if need be.

    Args:
      function: of arrays by position, and of static values by name.
      arrays: trees of arrays, of which only the types matter.
      static: the values.
    """

    whole = functools.partial(function, **static)
    path = path_of(function.__name__, function, arrays, dict(static))
    if path is None:
        return whole
    stored, trees = _read(path), []
    if stored is None:
        leaves, structure = jax.tree.flatten(arrays)

        def flat(*leaves: Any) -> list[Any]:
            outputs, tree = jax.tree.flatten(whole(*jax.tree.unflatten(structure, leaves)))
            trees.append(jax.tree.map(lambda _: 0, jax.tree.unflatten(tree, outputs)))
            return outputs

        try:
            stored = bytes(export.export(jax.jit(flat))(*leaves).serialize()), trees[0]
        except Exception:  # It calls Python or unversioned code; its own errors come again.
            return whole
        write(path, stored)
    call, tree = export.deserialize(bytearray(stored[0])).call, jax.tree.structure(stored[1])

    def loaded(*arrays: Any) -> Any:
        return jax.tree.unflatten(tree, call(*jax.tree.leaves(arrays)))

    loaded.__name__ = function.__name__
    return loaded


def write(path: Path, value: Any) -> None:
    """Writes a file with its checksum, unless the folder cannot be written to."""
    content = pickle.dumps(value)
    with contextlib.suppress(OSError), atomic_open(path) as file:
        file.write(hashlib.sha256(content).digest() + content)


def _read(path: Path) -> Any:
    """What was written; ``None`` without an intact file."""
    with contextlib.suppress(OSError):
        content = path.read_bytes()
        # The folder belongs to the user alone, and holds machine code, which JAX runs, as well.
        if content[:32] == hashlib.sha256(content[32:]).digest():
            return pickle.loads(content[32:])
    return None
