"""How hard a program is compiled: little for a short run, for whole registers for a long one.

On a CPU the compilation of a small network takes seconds, its training often a fraction of one.
What is chosen depends on the settings of the whole run alone, never on what is left of it or on
how many seeds run beside each other: a run that is continued, and a seed that is trained by
itself, have the same program and so the same bits.
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

#: The work of a program that hardly runs more than once.
ONCE = 0.0

#: Not to be saved on.
ANY = math.inf

#: No code made of fusions by way of MLIR, no modules cut up for several threads.
_PLAIN = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}

#: For long runs. XLA's own 256 bits leave half of every AVX-512 register empty; processors without
#: them take what they have.
_WIDE: Options = {"xla_cpu_prefer_vector_width": 512}

#: Work up to which options are used: about a quarter of a second of training, and two seconds.
#: WAST on Madelon, a small run of the papers, is above both.
_LEVELS: tuple[tuple[float, Options], ...] = (
    (4e8, {"xla_backend_optimization_level": 0, **_PLAIN}),
    (3.5e9, {"xla_backend_optimization_level": 1, **_PLAIN}),
)

#: Weights that could be visited in the time that a step takes beside its products.
_STEP = 1e5

#: Weights of a matrix that are visited in the time of a connection that is held by itself.
_CONNECTION = 8

#: Trainings that a search for a strength is taken to need.
_TRAININGS = 4


def training_work(params: PyTree, masks: PyTree, spec: Spec, searches: bool) -> float:
    """The work of training one seed: about how many weights are visited.

    Args:
      params, masks: of S seeds, ``(S, ...)``.
      spec: static facts of the whole run.
      searches: whether a strength is searched for, by several trainings.
    """
    weights = sum(math.prod(np.shape(leaf)[1:]) for leaf in jax.tree.leaves(params))
    held = filter(is_connections, jax.tree.leaves(masks, is_leaf=is_connections))
    weights += sum((_CONNECTION - 1) * connections.rows.shape[-1] for connections in held)
    epoch = weights * spec.num_rows * spec.repeats + _STEP * spec.steps_per_epoch
    return epoch * spec.num_epochs * (_TRAININGS if searches else 1)


def options_for(work: float) -> Options | None:
    """Options of XLA for a program that does so much work; ``None`` on accelerators."""
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
