"""Compiled programs: found again by what they were compiled for, a bounded number of them kept.

JAX keeps every program that it compiles. A process that fits tables of many shapes would run out
of the memory mappings that Linux allows it, so the engine compiles ahead of time and lets go of
the programs that were not used for longest.
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

#: Programs that are kept, of some 350 mappings each.
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
    """The compiled form of ``function(*static, *args)`` for arguments like these.

    Args:
      function: pure, of the static values and then of arrays.
      static: hashable values that the program depends on.
      args: trees of arrays; another call may have others of the same shapes, types and devices.
      donate: which of them may be overwritten.
      work: what it will do in all its calls (:mod:`fsjax.engine.compile_effort`); for little of it
        fast compilation counts.
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

        # A function of its own, so that JAX forgets the program when it is dropped here.
        def compiled(*arrays: Any) -> Any:
            return function(*static, *arrays)

        compiled.__name__ = function.__name__
        with paused():
            lowered = jax.jit(compiled, donate_argnums=tuple(donate)).lower(*args)
            # XLA takes numbers, too.
            of_xla = None if options is None else cast("dict[str, str | bool]", options)
            _kept[key] = executable = lowered.compile(compiler_options=of_xla)
        if len(_kept) > CAPACITY:
            _kept.popitem(last=False)
            # What a program holds refers to itself.
            gc.collect()
        return executable


@own_settings
def run(
    function: Callable[..., Any], static: Sequence[Hashable], args: Sequence[Any], **options: Any
) -> Any:
    """Calls a :func:`program` at once."""
    return program(function, static, args, **options)(*args)


def output_structure(compiled: jax.stages.Compiled) -> Any:
    """The tree that a program returns, with a number in place of each array.

    ``Compiled.out_info`` would ask for the layouts as well, which JAX does not have where Ctrl-C
    came while it compiled: it swallows whatever is raised as it reads them.
    """
    tree: Any = compiled.out_tree
    return jax.tree.unflatten(tree, range(tree.num_leaves))


def num_programs() -> int:
    """How many programs are kept."""
    return len(_kept)


def free() -> None:
    """Lets go of all programs."""
    with _lock:
        _kept.clear()
        gc.collect()


def _like(leaf: Any) -> Hashable:
    if isinstance(leaf, jax.Array):
        return jax.typeof(leaf), leaf.sharding
    leaf = np.asarray(leaf)
    return leaf.shape, leaf.dtype
