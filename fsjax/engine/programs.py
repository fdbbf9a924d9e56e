"""Compiled programs: a cache that discards the least recently used, and the options of XLA.

JAX keeps every program that it compiles. A process that fits tables of many shapes would run out of
the memory mappings that Linux allows it, so the engine compiles ahead of time and keeps a bounded
number of programs.

On a CPU, compiling a small network takes seconds, and training it often a fraction of a second, so
short runs are compiled fast and long ones to run fast. The options depend only on the settings of
the whole run, not on the remaining epochs or the number of seeds that run together. A resumed run,
or a seed that runs alone, therefore has the same program and the same bits.
"""

from __future__ import annotations

import functools
import gc
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, Literal, TypeVar

import jax
import numpy as np

from fsjax.engine.environment.garbage_collection import paused
from fsjax.engine.environment.jax_settings import own_settings, setting
from fsjax.engine.program_files import CompilerOptions, compile_and_store, load, path_of
from fsjax.method import PyTree, Spec
from fsjax.sparsity.connections import Connections, layer_masks

R = TypeVar("R")

#: How a program is compiled: in the shortest time, for programs that run about once, or for the
#: fastest code.
Compile = Literal["fast", "optimized"]

#: The work (:func:`training_work`) that each of them assumes.
_WORK: dict[Compile, float] = {"fast": 0.0, "optimized": math.inf}

#: Without MLIR fusion emitters, and without splitting modules for several compiler threads.
_PLAIN = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

#: For long runs. XLA's default of 256 bits uses only half of each AVX-512 register; processors
#: without AVX-512 use their own width.
_WIDE: CompilerOptions = {"xla_cpu_prefer_vector_width": 512}

#: The largest work for each set of options: about a quarter of a second of training, and two
#: seconds. WAST on Madelon, a small run of the papers, is above both.
_LEVELS: tuple[tuple[float, CompilerOptions], ...] = (
    (4e8, {"xla_backend_optimization_level": 0, **_PLAIN}),
    (3.5e9, {"xla_backend_optimization_level": 1, **_PLAIN}),
)

#: The fixed cost of a step beside its matrix products, in visited weights.
_STEP = 1e5

#: The cost of a connection of a truly sparse layer, in visited weights of a dense matrix.
_CONNECTION = 8

#: The assumed number of trainings of a search for a strength.
_TRAININGS = 4


def training_work(params: PyTree, masks: PyTree, spec: Spec, searches: bool) -> float:
    """The work of training one seed: the approximate number of visited weights.

    Args:
      params, masks: the parameters and masks of S seeds, ``(S, ...)``.
      spec: static facts about the whole run.
      searches: whether a strength is searched for, by several trainings.
    """
    weights = sum(math.prod(np.shape(leaf)[1:]) for leaf in jax.tree.leaves(params))
    layers = [layer for layer in layer_masks(masks) if isinstance(layer, Connections)]
    weights += sum((_CONNECTION - 1) * layer.rows.shape[-1] for layer in layers)
    epoch = weights * spec.num_rows * spec.repeats + _STEP * spec.steps_per_epoch
    return epoch * spec.num_epochs * (_TRAININGS if searches else 1)


def options_for(work: float) -> CompilerOptions | None:
    """The options of XLA for a program with this amount of work; ``None`` on accelerators."""
    if jax.default_backend() != "cpu":
        return None
    chosen = next((options for most, options in _LEVELS if work <= most), _WIDE)
    return {name: value for name, value in chosen.items() if _is_known(name, value)}


@functools.cache
def _is_known(name: str, value: bool | int) -> bool:
    """Whether this version of XLA has an option: newer versions drop some."""
    if jax.__version_info__ < (0, 11):
        return True
    option: dict[str, Any] = {name: value}
    try:
        jax.jit(lambda: 0).lower().compile(option)
    except jax.errors.JaxRuntimeError:
        return False
    return True


#: The number of programs to keep; each has 350 to 1,000 memory mappings.
CAPACITY = 32

#: The number of discarded programs after which the garbage collector frees them.
COLLECT_EVERY = 8

_kept: OrderedDict[Hashable, jax.stages.Compiled] = OrderedDict()
_lock = threading.RLock()
_num_discarded = 0


class Program(Generic[R]):
    """A function that runs as compiled programs, as with ``jax.jit``; made by :func:`program`.

    Positional arguments are trees of arrays, on the host or the device. Keyword arguments are
    static: hashable values that a program depends on.

    Attributes:
      function: the function itself, for use in other programs.
    """

    __name__: str

    def __init__(
        self, function: Callable[..., R], compile: Compile, donate: tuple[int, ...]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.compile, self.donate = function, compile, donate

    @own_settings()
    def __call__(self, *arrays: Any, **static: Any) -> R:
        """Runs the program for these arrays, which is compiled unless it is in the cache."""
        return self.compiled(*arrays, **static)(*arrays)

    def compiled(
        self, *arrays: Any, work: float | None = None, **static: Hashable
    ) -> jax.stages.Compiled:
        """The program for arrays of these shapes, types and devices, possibly from the cache.

        Callers set the settings of JAX by ``own_settings``, as :meth:`__call__` does.

        Args:
          arrays: the positional arguments of the function, and of the program.
          work: the work of all calls (:func:`training_work`), which determines the compiler
            options instead of ``compile``.
          static: the keyword arguments of the function.
        """
        options = options_for(_WORK[self.compile] if work is None else work)
        leaves, structure = jax.tree.flatten(arrays)
        settings = (
            None if options is None else tuple(options.items()),
            setting("jax_default_matmul_precision"),
        )
        values = tuple(sorted(static.items()))
        arguments = (values, _types(values), structure, tuple(map(_like, leaves)))
        key = (self.function, self.donate, arguments, settings)
        with _lock:
            if key in _kept:
                _kept.move_to_end(key)
                return _kept[key]
            with paused():
                parts = self.function, dict(static), self.donate, options
                path = path_of(self.__name__, *parts, arrays=arrays)
                if (program := load(path, arrays)) is None:
                    # A new function each time, so that JAX releases the program with ours.
                    whole, stored = functools.partial(self.function, **static), path is not None
                    # What JAX lowers finds a stored program; it drops arrays that are not used.
                    jitted = jax.jit(whole, donate_argnums=self.donate, keep_unused=stored)
                    program = compile_and_store(path, jitted.lower(*arrays), arrays, options)
                _kept[key] = program
            _discard_oldest()
            return program


def program(
    *, compile: Compile = "optimized", donate: tuple[int, ...] = ()
) -> Callable[[Callable[..., R]], Program[R]]:
    """Makes a function a :class:`Program`.

    Args:
      compile: how its programs are compiled.
      donate: positions of the arguments whose memory may be reused.
    """
    return lambda function: Program(function, compile, donate)


def _discard_oldest() -> None:
    """Discards the program that was not used for longest, if there are too many."""
    global _num_discarded
    if len(_kept) <= CAPACITY:
        return
    _kept.popitem(last=False)
    _num_discarded += 1
    # A program is part of a reference cycle, which only the garbage collector frees. It searches
    # all objects of the process, so it runs once for several programs.
    if _num_discarded % COLLECT_EVERY == 0:
        gc.collect()


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


def _types(value: Any) -> Any:
    """The types of a value and its parts, as 1, True and ``np.int64(1)`` are equal."""
    return (type(value), *map(_types, value)) if isinstance(value, tuple) else type(value)
