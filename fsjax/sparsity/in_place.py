"""Conditional changes of large trees that copy nothing: a loop of at most one pass."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array
from jax import numpy as jnp

from fsjax.typing import PyTree


def change_if(condition: Array, change: Callable[[PyTree], PyTree], carry: PyTree) -> PyTree:
    """``change(carry)`` if the condition holds, else ``carry``; derivatives as of ``lax.cond``.

    ``lax.cond`` copies what passes through it; a loop of at most one pass works in place. What
    ``change`` looks at must therefore be part of the carry, if it is in there at all.
    """
    changed, given = jax.closure_convert(change, carry)

    @jax.custom_jvp
    def run(condition: Array, carry: PyTree, given: list[Array]) -> PyTree:
        def once(state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            return jnp.zeros_like(condition), changed(state[1], *given)

        return jax.lax.while_loop(lambda state: state[0], once, (condition, carry))[1]

    @run.defjvp
    def derivative(primals: tuple, tangents: tuple) -> tuple[PyTree, PyTree]:
        def branch(condition: Array, carry: PyTree, given: list[Array]) -> PyTree:
            return jax.lax.cond(condition, lambda: changed(carry, *given), lambda: carry)

        return jax.jvp(branch, primals, tangents)

    return run(condition, carry, given)


def replace_if(
    condition: Array, train: Callable[..., tuple[PyTree, PyTree]], *carry: PyTree
) -> tuple[PyTree, PyTree]:
    """``train(*carry)`` if the condition holds, else ``carry``, in the types of the former."""
    types = jax.eval_shape(train, *carry)

    # A step may change types, for example with gradients more precise than parameters.
    def cast(tree: PyTree, like: PyTree) -> PyTree:
        return jax.tree.map(
            lambda leaf, of: leaf if leaf.dtype == of.dtype else leaf.astype(of.dtype), tree, like
        )

    def wide(old: Array, new: Array) -> Array:
        return old if old.dtype == new.dtype else old.astype(jnp.promote_types(old, new))

    widest = jax.tree.map(wide, carry, types)
    result = change_if(
        condition, lambda present: cast(train(*cast(present, carry)), widest), widest
    )
    return cast(result, types)
