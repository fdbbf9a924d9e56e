"""A cache of compiled programs that discards the least recently used.

JAX keeps every program that it compiles. A process that fits tables of many shapes would run out of
the memory mappings that Linux allows it, so the engine compiles ahead of time and keeps a bounded
number of programs.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import jax
import numpy as np

from fsjax.engine.compile_effort import ANY, options_for
from fsjax.environment.garbage_collection import paused
from fsjax.environment.jax_settings import own_settings, setting

#: The number of programs to keep; each has some 350 memory mappings.
CAPACITY = 32

_kept: OrderedDict[Hashable, jax.stages.Compiled] = OrderedDict()
_lock = threading.RLock()


@own_settings
def program(
    function: Callable[..., Any],
    static: Sequence[Hashable],
    args: Sequence[Any],
    *,
    donate: Sequence[int] = (),
    work: float = ANY,
) -> jax.stages.Compiled:
    """Compiles ``function(*static, *args)``, or returns the program from the cache.

    Args:
      function: a pure function of the static values and then of arrays.
      static: hashable values that the program depends on.
      args: trees of arrays; the program accepts others of the same shapes, types and devices.
      donate: positions of the arguments whose memory may be reused.
      work: the work of all its calls, which determines the compiler options
        (:mod:`fsjax.engine.compile_effort`).
    """
    leaves, structure = jax.tree.flatten(args)
    options = options_for(work)
    settings = (
        None if options is None else tuple(options.items()),
        setting("jax_default_matmul_precision"),
    )
    key = (function, *static, structure, tuple(map(_like, leaves)), tuple(donate), settings)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]

        # A new function per program, so that JAX releases the program when it is discarded here.
        def compiled(*arrays: Any) -> Any:
            return function(*static, *arrays)

        compiled.__name__ = function.__name__
        with paused():
            lowered = jax.jit(compiled, donate_argnums=tuple(donate)).lower(*args)
            # XLA also accepts numbers; only the type annotation of JAX does not.
            of_xla = None if options is None else cast("dict[str, str | bool]", options)
            _kept[key] = executable = lowered.compile(compiler_options=of_xla)
        if len(_kept) > CAPACITY:
            _kept.popitem(last=False)
            # A program is part of a reference cycle, which only the garbage collector frees.
            gc.collect()
        return executable


@own_settings
def run(
    function: Callable[..., Any], static: Sequence[Hashable], args: Sequence[Any], **options: Any
) -> Any:
    """Compiles a :func:`program`, or finds it in the cache, and calls it."""
    return program(function, static, args, **options)(*args)


def output_structure(compiled: jax.stages.Compiled) -> Any:
    """The tree that a program returns, with a number in place of each array.

    ``Compiled.out_info`` also needs the layouts of the arrays. JAX swallows any exception that is
    raised while it reads them, including Ctrl-C, and then has no layouts.
    """
    tree: Any = compiled.out_tree
    return jax.tree.unflatten(tree, range(tree.num_leaves))


def num_programs() -> int:
    """The number of programs in the cache."""
    return len(_kept)


def free() -> None:
    """Discards all programs."""
    with _lock:
        _kept.clear()
        gc.collect()


def _like(leaf: Any) -> Hashable:
    if isinstance(leaf, jax.Array):
        return jax.typeof(leaf), leaf.sharding
    leaf = np.asarray(leaf)
    return leaf.shape, leaf.dtype
