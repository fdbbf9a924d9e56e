"""Makes programs of single operations, of which tests compile thousands, cheaper to compile.

What they compute stays the same. Both changes replace private functions of JAX; a version of JAX
without these compiles as usual.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax._src import core
from jax._src.interpreters import mlir

from fsjax.engine import programs

#: Mapped regions of the process above which compiled programs are freed. Linux allows 65,530; each
#: program takes several, and LLVM ends the process when there are no more.
MAX_REGIONS: Final = 20_000


class _Contexts(threading.local):
    """The MLIR context of each thread, as threads must not change one at the same time."""

    context: Any = None


_contexts = _Contexts()


def make_cheap() -> None:
    """Replaces what costs most in small programs; call it once."""
    if create := getattr(mlir, "make_ir_context", None):
        mlir.make_ir_context = _sharing(create)
    for primitive in (
        getattr(core, "stage_p", None),
        lax.convert_element_type_p,
        lax.broadcast_in_dim_p,
    ):
        if primitive is not None:
            primitive.def_impl(_without_compilation(primitive.impl))


def _sharing(create: Callable[[], Any]) -> Callable[[], Any]:
    """One context for all programs of a thread until :func:`free`: to create one, with all its
    dialects, takes a quarter of the time of a small program."""

    def shared() -> Any:
        if _contexts.context is None:
            _contexts.context = create()
        return _contexts.context

    return shared


def _without_compilation(run: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy makes arrays from its own and from single numbers, with no program for each shape.

    That is ``jnp.asarray`` of an array of a type that JAX has, and ``jnp.ones`` and the like.
    """

    def made(x: Any, **options: Any) -> Any:
        is_number = isinstance(x, jax.Array) and x.shape == () and not x.committed
        if not (is_number and "shape" in options or isinstance(x, np.ndarray)):
            return run(x, **options)
        same_type = isinstance(x.dtype, np.dtype) and options.get("new_dtype", x.dtype) == x.dtype
        shape = options.get("shape", x.shape)
        weak = options.get("weak_type") or getattr(x, "weak_type", False)
        if not same_type or weak or x.shape not in ((), shape) or options.get("sharding"):
            return run(x, **options)
        return jax.device_put(np.full(shape, x))

    return made


def free() -> None:
    """Frees the context with its constants, and all programs if they occupy too many regions.

    Until then, the next modules of tests find programs of single operations compiled.
    """
    _contexts.context = None
    regions = Path("/proc/self/maps")
    if not regions.exists() or regions.read_bytes().count(b"\n") > MAX_REGIONS:
        # What was frozen after earlier modules would never be collected.
        gc.unfreeze()
        jax.clear_caches()
    programs.free()
