"""Compiled programs on disk, so that another process need not trace, lower and compile them again.

JAX's own cache, in the same folder, is searched only after tracing and lowering, which take longer
than loading. Here, a program is found by all that determines it: the function and its static
arguments, the types of the arrays, the settings of JAX and XLA, and the code of the packages.
Functions and types of the user, whose code may change, have no file. If constants of the library
are replaced while it runs, set ``FSJAX_CACHE=off``. The machine code has a file of its own, which
is found by what was lowered: a change of the code that leaves a program as it is compiles nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import jax
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache
from jax.extend.backend import get_backend

from fsjax.engine.distributed.same import code
from fsjax.engine.environment.jax_settings import processor_type, setting
from fsjax.storage.atomic_files import atomic_open

#: Options of XLA by name.
CompilerOptions = Mapping[str, bool | int]

#: Packages whose functions and types :func:`fsjax.engine.distributed.same.code` determines.
KNOWN = ("fsjax", "optax", "numpy", "builtins")

#: Whether there are files at all; tests that replace parts of the library turn them off.
enabled = True


class _Description(pickle.Pickler):
    """Bytes that determine a value; PicklingError for what may have other code next time."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject:
                raise pickle.PicklingError("an array of objects")
            kind = type(value).__name__, repr(value.dtype), value.shape
            return str, (f"{kind} {value.tobytes().hex()}",)
        of = value if isinstance(value, FunctionType | type) else type(value)
        if of.__module__.partition(".")[0] not in KNOWN:
            raise pickle.PicklingError(f"{of} does not belong to the library")
        if isinstance(value, FunctionType) and "<locals>" not in value.__qualname__:
            return str, (f"{value.__module__}:{value.__qualname__}",)  # Perhaps undecorated.
        return NotImplemented


def _type_of(leaf: Any) -> Any:
    """The type of an array as text; another leaf as it is."""
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return leaf
    if isinstance(leaf, jax.Array) and leaf.devices() != {jax.devices()[0]}:
        raise pickle.PicklingError("an array on several devices, or on another one")
    return repr(jax.typeof(leaf))


def path_of(name: str, *parts: Any, arrays: Any = ()) -> Path | None:
    """The file of what the parts determine; ``None`` if there is no cache, or no description.

    Of the leaves of ``arrays``, a tree, only the types count; of all else, also the values.
    """
    folder = setting("jax_compilation_cache_dir")
    elsewhere = setting("jax_default_device") is not None or jax.process_count() > 1
    if elsewhere or not (enabled and folder and os.path.isdir(folder)):
        return None
    described = _Description(content := io.BytesIO())
    described.fast = True  # Bytes do not depend on which objects are the same.
    try:
        types = jax.tree.map(_type_of, arrays)
        described.dump((parts, types, _surroundings(), dict(code())))
    except (pickle.PicklingError, AttributeError, TypeError, ValueError):
        return None
    return Path(folder) / f"{name}-{hashlib.sha256(content.getvalue()).hexdigest()}-described"


def _surroundings() -> tuple[Any, ...]:
    """What determines machine code, beside what was lowered."""
    settings = {key: repr(getattr(jax.config, key, None)) for key in sorted(jax.config.values)}
    device, version = jax.devices()[0], get_backend().platform_version
    kind = device.platform, device.device_kind, processor_type()
    return *kind, version, os.environ.get("XLA_FLAGS"), settings


def load(path: Path | None, arrays: tuple[Any, ...]) -> jax.stages.Compiled | None:
    """The program of a path, for arrays of these types; ``None`` without intact files."""
    if path is None or (found := _read(path)) is None:
        return None
    return _load(path.with_name(found[0]), arrays, found[1])


def compile_and_store(
    path: Path | None,
    lowered: jax.stages.Lowered,
    arrays: tuple[Any, ...],
    options: CompilerOptions | None,
) -> jax.stages.Compiled:
    """Compiles what :func:`load` did not find, and writes its files; without a path as JAX does."""
    # XLA also accepts numbers; only the type annotation of JAX does not.
    of_xla = None if options is None else cast("dict[str, str | bool]", options)
    if path is None:
        return lowered.compile(compiler_options=of_xla)
    outputs = output_structure(lowered)
    determined = repr((lowered.as_text(), options, _surroundings())).encode()
    executable = path.with_name(f"{hashlib.sha256(determined).hexdigest()}-executable")
    program = _load(executable, arrays, outputs)
    if program is None:
        # XLA loses functions of a program that JAX loads from its cache, and that is stored again.
        with _without_jax_cache():
            program = lowered.compile(compiler_options=of_xla)
        try:
            write(executable, serialize_executable.serialize(program)[0])
        except Exception:  # It calls Python, of which a file knows nothing; of no documented kind.
            return program
    write(path, (executable.name, outputs))
    return program


def output_structure(program: jax.stages.Lowered | jax.stages.Compiled) -> Any:
    """The tree that a program returns, with a number in place of each array.

    ``Compiled.out_info`` also needs the layouts of the arrays. JAX swallows any exception that is
    raised while it reads them, including Ctrl-C, and then has no layouts.
    """
    tree: Any = program.out_tree
    return jax.tree.unflatten(tree, range(tree.num_leaves))


def _load(path: Path, arrays: tuple[Any, ...], outputs: Any) -> jax.stages.Compiled | None:
    """The program of a file; ``None`` without one that this process can run."""
    trees = jax.tree.structure((arrays, {})), jax.tree.structure(outputs)
    with contextlib.suppress(Exception):  # JAX documents no errors; then it is compiled again.
        return serialize_executable.deserialize_and_load(
            _read(path), *trees, execution_devices=[jax.devices()[0]]
        )
    return None


@contextlib.contextmanager
def _without_jax_cache() -> Iterator[None]:
    folder = setting("jax_compilation_cache_dir")
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", folder)
        compilation_cache.reset_cache()


def write(path: Path, value: Any) -> None:
    """Writes a file with its checksum, unless the folder cannot be written to."""
    content = zlib.compress(pickle.dumps(value), 1)
    with contextlib.suppress(OSError), atomic_open(path) as file:
        file.write(hashlib.sha256(content).digest() + content)


def _read(path: Path) -> Any:
    """What was written; ``None`` without an intact file."""
    with contextlib.suppress(OSError):
        content = path.read_bytes()
        # The folder belongs to the user alone, and holds machine code, which JAX runs, as well.
        if content[:32] == hashlib.sha256(content[32:]).digest():
            return pickle.loads(zlib.decompress(content[32:]))
    return None
