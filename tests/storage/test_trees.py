"""Trees as named arrays and back."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
from bad_calls import bad_calls, refuses

from fsjax.storage.trees import by_path, from_paths

TREE = {
    "a": [jnp.arange(3), {"b": jnp.ones((2, 2), bool)}],
    "key": jax.random.split(jax.random.key(1), 2),
    "none": (),
}


def test_what_goes_in_comes_out() -> None:
    named = by_path(TREE, "x/")
    assert sorted(named) == ["x/a/0", "x/a/1/b", "x/key"]
    assert all(isinstance(value, np.ndarray) for value in named.values())
    chex.assert_trees_all_equal(from_paths(TREE, {**named, "y/z": np.ones(1)}, "x/"), TREE)
    shapes = jax.eval_shape(lambda: TREE)
    chex.assert_trees_all_equal(from_paths(shapes, named, "x/"), TREE)


@bad_calls(
    ({"x/c": np.ones(1)}, "the method has no 'x/c'"),
    ({"x/a/0": np.ones(4, np.int32)}, "'x/a/0' has the shape (4,); expected (3,)"),
    ({"x/a/0": np.ones(3)}, "'x/a/0' has the type float64; expected int32"),
    ({"x/a/0": None}, "'x/a/0' is missing"),
)
def test_what_does_not_fit_is_named(bad: tuple) -> None:
    named = {k: v for k, v in (by_path(TREE, "x/") | bad[0]).items() if v is not None}
    refuses(lambda: from_paths(TREE, named, "x/"), bad[1])
