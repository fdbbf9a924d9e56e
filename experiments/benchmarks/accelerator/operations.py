"""The rates of the machine, single operations that may be slow on it, and pruned networks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from experiments.benchmarks import sparse, timing
from experiments.benchmarks.accelerator.pieces import Piece, Size
from experiments.studies.sparsity import inference
from fsjax import sparsity


def copy_rate(megabytes: int) -> dict[str, float]:
    """GB per second that are read and written by adding 1 to an array."""
    start = jnp.zeros(megabytes * 2**18, jnp.float32)
    milliseconds = timing.looped(lambda x, i: x + 1.0, start, clock="wall")
    return {"gb_per_second": 2 * start.nbytes / 1e6 / milliseconds}


def product_rate(width: int) -> dict[str, float]:
    """Tera-operations per second of a square float32 product, by JAX's precision."""
    x = jax.random.normal(jax.random.key(0), (width, width)) / width**0.5
    rates = {}
    for precision in ("highest", "default", "bfloat16"):
        with jax.default_matmul_precision(precision):
            milliseconds = timing.looped(lambda x, i: x @ x, x, clock="wall")
        rates[f"tflop_per_second, {precision}"] = 2 * width**3 / 1e9 / milliseconds
    return rates


def operations(rows: int, columns: int) -> dict[str, float]:
    """Milliseconds of operations on a matrix of weights: sorts, a scatter, counts, elementwise."""
    weight = jax.random.normal(jax.random.key(0), (rows, columns))
    count = weight.size // 20
    places = jax.random.permutation(jax.random.key(1), weight.size)[:count]

    def marked(weight: jax.Array, i: jax.Array) -> jax.Array:
        return jnp.where(sparsity.smallest(jnp.abs(weight), count), 0.1, weight)

    def scattered(weight: jax.Array, i: jax.Array) -> jax.Array:
        flat = weight.ravel().at[places].add(1.0)
        return flat.reshape(weight.shape)

    bodies: dict[str, Callable[[Any, jax.Array], Any]] = {
        "elementwise": lambda weight, i: weight * 0.99,
        "marking the smallest 5 %": marked,
        "lax.top_k of 5 %": lambda weight, i: (
            weight * jax.lax.top_k(jnp.abs(weight).ravel(), count)[0][-1]
        ),
        "sort": lambda weight, i: jnp.sort(weight.ravel()).reshape(weight.shape) * 0.99,
        "scatter of 5 %": scattered,
    }
    return {
        f"ms, {name}": timing.looped(body, weight, clock="wall") for name, body in bodies.items()
    }


def compressed(density: float, batch: int) -> dict[str, float | str]:
    """Inference of a pruned network of two layers of 1,024: dense, masked, compressed."""
    network = inference.NETWORKS["1024-1024-1024-10"]
    return inference.measure(*network, density, batch, seconds=0.3)


def two_of_four(batch: int) -> dict[str, float | str]:
    """The same with two of four weights: ``compress`` has no use of the hardware's N:M products."""
    network = inference.NETWORKS["1024-1024-1024-10"]
    structure = sparsity.n_of_m(2, 4)
    return inference.measure(*network, None, batch, seconds=0.3, structure=structure)


def pieces(size: Size) -> dict[str, Piece]:
    """The pieces by name."""
    full = size == "full"
    shapes = ((784, 200), (1000, 1000)) if full else ((8, 4),)
    by_name: dict[str, Callable[[], Mapping[str, float | str]]] = {
        "rate/copy": functools.partial(copy_rate, 1024 if full else 1),
        "rate/product": functools.partial(product_rate, 8192 if full else 16),
    }
    for rows, columns in shapes:
        by_name[f"operations/{rows} x {columns}"] = functools.partial(operations, rows, columns)
        by_name[f"change/{rows} x {columns}"] = functools.partial(
            sparse.changes, rows, columns, 0.2, clock="wall"
        )
    if full:
        for density, batch in ((0.1, 128), (0.01, 128), (0.01, 1)):
            name = f"compress/density {density}, batch {batch}"
            by_name[name] = functools.partial(compressed, density, batch)
        by_name["compress/2 of 4, batch 128"] = functools.partial(two_of_four, 128)
    return {name: Piece(run) for name, run in by_name.items()}
