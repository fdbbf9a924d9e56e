"""Compiler options by the length of a run: short runs compile fast, long ones run fast.

On a CPU, compiling a small network takes seconds, and training it often a fraction of a second. The
options depend only on the settings of the whole run, not on the remaining epochs or the number of
seeds that run together. A resumed run, or a seed that runs alone, therefore has the same program
and the same bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from fsjax.method import PyTree, Spec
from fsjax.sparsity.connections import is_connections

#: Options of XLA by name.
Options = Mapping[str, bool | int]

#: The work of a program that runs about once.
ONCE = 0.0

#: Unlimited work: compile for the fastest code.
ANY = math.inf

#: Without MLIR fusion emitters, and without splitting modules for several compiler threads.
_PLAIN = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

#: For long runs. XLA's default of 256 bits uses only half of each AVX-512 register; processors
#: without AVX-512 use their own width.
_WIDE: Options = {"xla_cpu_prefer_vector_width": 512}

#: The largest work for each set of options: about a quarter of a second of training, and two
#: seconds. WAST on Madelon, a small run of the papers, is above both.
_LEVELS: tuple[tuple[float, Options], ...] = (
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
    held = filter(is_connections, jax.tree.leaves(masks, is_leaf=is_connections))
    weights += sum((_CONNECTION - 1) * connections.rows.shape[-1] for connections in held)
    epoch = weights * spec.num_rows * spec.repeats + _STEP * spec.steps_per_epoch
    return epoch * spec.num_epochs * (_TRAININGS if searches else 1)


def options_for(work: float) -> Options | None:
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
