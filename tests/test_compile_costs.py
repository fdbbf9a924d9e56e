"""Arrays that the tests make without a compiled program are those that JAX makes with one."""

from __future__ import annotations

import compile_costs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

CASES = {
    "float64": lambda: jnp.asarray(np.linspace(-1, 1, 7)),
    "int64": lambda: jnp.asarray(np.arange(2**31, 2**31 + 2)),
    "bfloat16": lambda: jnp.asarray(np.ones(3, jnp.bfloat16)),
    "every second": lambda: jnp.asarray(np.arange(5.0)[::2]),
    "no entries": lambda: jnp.asarray(np.ones((0, 3))),
    "another type": lambda: jnp.asarray(np.array([0.5, 2.0]), jnp.int32),
    "rounded": lambda: jnp.asarray(np.array([0.1, 1e30]), jnp.float32),
    "a number": lambda: jnp.asarray(2.0),
    "zeros": lambda: jnp.zeros((2, 3), bool),
    "full": lambda: jnp.full(3, jnp.nan),
    "rows": lambda: jnp.broadcast_to(np.arange(3), (2, 3)),
    "weak": lambda: jnp.broadcast_to(2.0, (2,)),
}


@pytest.mark.parametrize("name", CASES)
def test_arrays_are_those_of_a_program(name: str) -> None:
    made, compiled = CASES[name](), jax.jit(CASES[name])()
    assert made.aval == compiled.aval and made.sharding == compiled.sharding
    assert not made.committed
    assert np.asarray(made).tobytes() == np.asarray(compiled).tobytes()


def test_arrays_are_copies() -> None:
    numbers = np.ones(64, np.float32)
    array = jnp.asarray(numbers)
    numbers[:] = 2
    assert np.asarray(array).max() == 1


def test_a_context_lasts_until_it_is_freed() -> None:
    made: list[object] = []
    shared = compile_costs._sharing(lambda: made.append(object()) or made[-1])
    compile_costs.free()
    first = shared()
    assert shared() is first and len(made) == 1
    compile_costs.free()
    assert shared() is not first
    compile_costs.free()
