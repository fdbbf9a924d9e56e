"""Benchmarks of sparse networks whose connections change during training."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

import fsjax
from experiments.benchmarks.timing import Case, case, looped, random_plan, rounded, training_seconds
from fsjax.methods.shared.layers import ConnectedLayer, MaskedLayer, RuleInputs, SparseLayer
from fsjax.nets import Feedforward
from fsjax.nets.networks import outputs_of
from fsjax.sparsity import (
    DropRule,
    GrowRule,
    Layer,
    drop,
    evolutionary,
    grow,
    random_mask,
    rewire,
    smallest,
)
from fsjax.sparsity.connections import connected, indexed
from fsjax.sparsity.similarity import cosine

#: Drop and grow rules by the name of their method.
RULES = {
    "SET": (drop.magnitude, grow.random),
    "SET, per sign": (drop.per_sign, grow.random),
    "RigL": (drop.magnitude, grow.gradient),
    "CTRE_seq": (drop.magnitude, grow.similar),
    "CTRE_sim": (drop.magnitude, grow.similar_or_random),
    "WAST": (drop.magnitude_times_importance, grow.important_inputs),
}


def wast(rows: int, columns: int, num_seeds: int) -> dict[str, Any]:
    """Trains ten epochs of WAST: seconds per seed after compilation, peak memory."""
    planned = random_plan(
        *(fsjax.methods.wast(), rows, columns),
        seeds=range(num_seeds),
        batch_size=128,
        num_epochs=10,
    )
    return training_seconds(planned, num_seeds, "seed")


def changes(
    rows: int, columns: int, density: float, clock: Literal["cpu", "wall"] = "cpu"
) -> dict[str, float]:
    """Milliseconds of one topology change by every rule; of a sort and a step, to compare."""
    keys = jax.random.split(jax.random.key(0), 6)
    mask = random_mask(keys[0], (rows, columns), round(density * rows * columns))
    weight = jnp.where(mask, jax.random.normal(keys[1], mask.shape), 0.0)
    layer = Layer(
        weight,
        mask,
        gradient=jax.random.normal(keys[2], mask.shape),
        similarity=jax.random.uniform(keys[3], mask.shape),
        importance=jax.random.uniform(keys[4], (rows, 1)),
    )

    def change(
        rules: tuple[DropRule, GrowRule], carry: tuple[Any, ...], i: jax.Array
    ) -> tuple[Any, ...]:
        weight, mask, score = carry
        changed = {"weight": weight, "mask": mask, "gradient": score, "similarity": jnp.abs(score)}
        key = jax.random.fold_in(keys[5], i)
        rewired = rewire(layer._replace(**changed), *rules, 0.3, key)
        return 0.99 * weight + 0.01 * score, rewired.mask, jnp.roll(score, 1)

    def by_sorting(carry: tuple, i: jax.Array) -> tuple:
        weight, total = carry
        return 0.99 * weight, total + jnp.sort(jnp.abs(weight).ravel())[i]

    start = (weight, mask, layer.gradient)
    by_rule = {
        name: looped(partial(change, rules), start, clock=clock) for name, rules in RULES.items()
    }
    return {
        **{f"{name} {clock}_ms": milliseconds for name, milliseconds in by_rule.items()},
        f"one sort of the weights {clock}_ms": looped(by_sorting, (weight, 0.0), clock=clock),
        f"training step {clock}_ms": training_step(rows, columns, clock),
    }


def training_step(columns: int, hidden: int, clock: Literal["cpu", "wall"] = "cpu") -> float:
    """Milliseconds of a dense step of an autoencoder, batch 128, with momentum."""
    net, optimizer = Feedforward(columns, (hidden,), "sigmoid", "fan_in"), optax.sgd(0.1, 0.9)
    params = net.init(jax.random.key(0), jnp.zeros((1, columns)))
    x = jax.random.normal(jax.random.key(1), (128, columns))

    def step(carry: tuple, i: jax.Array) -> tuple:
        params, state = carry
        grads = jax.grad(lambda p: jnp.mean(jnp.square(outputs_of(net, p, x) - x)))(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    return looped(step, (params, optimizer.init(params)), clock=clock)


def forms(rows: int, columns: int, density: float) -> dict[str, float]:
    """CPU milliseconds of a layer in every form: of a step and of a change by SET's rules.

    A step consists of the product, its gradients with respect to weights and activations, and
    momentum; batch 100.
    """
    keys = jax.random.split(jax.random.key(0), 4)
    count = round(density * rows * columns)
    mask = random_mask(keys[0], (rows, columns), count)
    weight = jnp.where(mask, jax.random.normal(keys[1], mask.shape), 0.0)
    masked = MaskedLayer(weight, jnp.zeros(columns), mask)
    positions = jnp.flatnonzero(mask, size=count)
    connections = indexed(connected(positions // columns, positions % columns, (rows, columns)))
    layers = {
        "mask": masked,
        "connections": ConnectedLayer(weight.ravel()[positions], masked.bias, connections),
    }
    recipe = evolutionary(density, drop=drop.magnitude, fraction=0.2)
    x = jax.random.normal(keys[2], (rows, 100))

    def step(carry: tuple, i: jax.Array) -> tuple:
        layer, trace, x = carry

        def loss(kernel: jax.Array, x: jax.Array) -> jax.Array:
            values = replace(layer, kernel=kernel).active().apply(x)
            return jnp.sum(jax.nn.relu(values))

        to_kernel, to_x = jax.grad(loss, argnums=(0, 1))(layer.kernel, x)
        trace = 0.9 * trace + to_kernel
        return replace(layer, kernel=layer.kernel - 1e-6 * trace), trace, x - 1e-6 * to_x

    def change(layer: SparseLayer, i: jax.Array) -> SparseLayer:
        return layer.rewire(recipe, RuleInputs(0, {}), jax.random.fold_in(keys[3], i)).layer

    times = {}
    for name, layer in layers.items():
        start = (layer, jnp.zeros_like(layer.kernel), x)
        times[f"{name}, step cpu_ms"] = looped(step, start)
        times[f"{name}, change cpu_ms"] = looped(change, layer, 4)
    return times


def cosines() -> dict[str, float]:
    """CPU milliseconds of the cosine similarity of two layers of 1000 neurons over 1800 rows."""
    keys = jax.random.split(jax.random.key(0))
    before, after = (jax.random.normal(key, (1800, 1000)) for key in keys)
    step = lambda c, i: (c[0] * 1.0001, cosine(c[0], after))  # noqa: E731
    return {"cosine similarity cpu_ms": looped(step, (before, before[:1000]))}


def selection(size: int) -> dict[str, float]:
    """CPU milliseconds to mark the smallest 6 % of the weights."""
    weight = jax.random.normal(jax.random.key(0), (1000, size // 1000))

    def mark(carry: tuple, i: jax.Array) -> tuple:
        weight, _ = carry
        return 0.99 * weight, smallest(jnp.abs(weight), round(0.06 * size))

    return {"cpu_ms": looped(mark, (weight, weight > 0))}


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    madelon = "wast/madelon, 2000 x 500, 10 epochs"
    by_name = {
        f"{madelon}, 1 seed": case(wast, 2000, 500, 1),
        f"{madelon}, 1 seed, bfloat16": case(rounded, wast, 2000, 500, 1),
        f"{madelon}, 4 seeds": case(wast, 2000, 500, 4, devices=2),
        "wast/150 x 50000, 10 epochs, 1 seed": case(wast, 150, 50_000, 1),
    }
    for rows, columns in ((784, 200), (5000, 200), (1000, 1000)):
        by_name[f"change/{rows} x {columns}, density 0.2"] = case(changes, rows, columns, 0.2)
    by_name["change/similarity, 1800 rows, 1000 x 1000"] = case(cosines)
    for size in (100_000, 1_000_000):
        by_name[f"smallest/{size:,} weights"] = case(selection, size)
    for width in (100, 300, 1000):
        for density in (0.002, 0.005, 0.01, 0.02, 0.05, 0.2):
            by_name[f"form/{width} x {width}, density {density:g}"] = case(
                forms, width, width, density
            )
    return by_name
