"""Inference time of pruned networks: dense, masked, and after ``fsjax.sparsity.compress``.

    python -m experiments.studies.sparsity.inference --out=reproduction/inference.csv

prunes two networks by magnitude, one with two hidden layers of 1024 neurons and LeNet-5, and times
calls with 1 row and with 128 rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.networks import LeNet5
from fsjax import sparsity
from fsjax.storage.atomic_files import write_text
from fsjax.typing import PyTree


class Wide(nn.Module):
    """Two hidden layers of 1024 neurons."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.relu(nn.Dense(1024)(x))
        return nn.Dense(10)(x)


NETWORKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "1024-1024-1024-10": (Wide(), (1024,)),
    "LeNet-5": (LeNet5(), (32, 32, 3)),
}

#: Consecutive calls of one network, so that its weights are in the caches for all but the first.
IN_A_ROW = 5


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", "reproduction/inference.csv", "Table.")
    flags.DEFINE_list("networks", list(NETWORKS), "Networks to measure.")
    flags.DEFINE_list("densities", ["0.1", "0.05", "0.02", "0.01"], "Shares of connections.")
    flags.DEFINE_float("seconds", 1.0, "Seconds per measurement.", lower_bound=0.0)


def main() -> None:
    """Measures all networks and writes the table."""
    options = flags.FLAGS
    # The caller computes, so that no call waits until the system starts another thread.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    rows = []
    for name in options.networks:
        for density in map(float, options.densities):
            for batch in (1, 128):
                row = measure(*NETWORKS[name], density, batch, options.seconds)
                rows.append({"network": name, **row})
                print(*rows[-1].values(), flush=True)
    write_text(options.out, pd.DataFrame(rows).to_csv(index=False))


def measure(
    model: nn.Module,
    shape: tuple[int, ...],
    density: float | None,
    batch: int,
    seconds: float,
    **options: Any,
) -> dict[str, float | int | str]:
    """One row of the table: the shortest times of many alternating calls.

    ``density`` and ``options`` are those of :func:`fsjax.sparsity.magnitude`, by which the network
    is pruned.
    """
    inputs = jax.random.normal(jax.random.key(1), (batch, *shape))
    params = model.init(jax.random.key(0), inputs)
    recipe = sparsity.magnitude(density, schedule=sparsity.one_shot(1), **options)
    tx = sparsity.sparse(optax.sgd(0.0), recipe, jax.random.key(2))
    _, state = jax.jit(tx.update)(jax.tree.map(jnp.zeros_like, params), tx.init(params), params)
    masks = sparsity.masks_of(state)
    pruned = [mask for mask in map(np.asarray, jax.tree.leaves(masks)) if not mask.all()]
    fast = sparsity.compress(model.apply, params, masks, inputs)

    def masked(params: PyTree, rows: jax.Array) -> jax.Array | tuple:
        return model.apply(sparsity.apply_masks(params, masks), rows)

    dense, with_masks = jax.jit(model.apply), jax.jit(masked)
    calls: dict[str, Callable] = {
        "dense_ms": lambda: dense(params, inputs),
        "masked_ms": lambda: with_masks(params, inputs),
        "compressed_ms": lambda: fast(inputs),
    }
    times = milliseconds(calls, seconds)
    return {
        "density": round(sum(map(np.sum, pruned)) / sum(map(np.size, pruned)), 4),
        "batch": batch,
        **{label: round(value, 4) for label, value in times.items()},
        "times_faster": round(times["dense_ms"] / times["compressed_ms"], 2),
        "forms": ", ".join(layer.form for layer in fast.layers),
    }


def milliseconds(calls: dict[str, Callable], seconds: float) -> dict[str, float]:
    """The shortest time of each call; calls alternate, so that other load affects all of them."""
    for call in calls.values():
        jax.block_until_ready(call())
    least = dict.fromkeys(calls, np.inf)
    end = time.perf_counter() + seconds * len(calls)
    while np.inf in least.values() or time.perf_counter() < end:
        for label, call in calls.items():
            for _ in range(IN_A_ROW):
                start = time.perf_counter()
                jax.block_until_ready(call())
                least[label] = min(least[label], 1000 * (time.perf_counter() - start))
    return {label: float(value) for label, value in least.items()}


if __name__ == "__main__":
    cli.run(main, define_flags)
