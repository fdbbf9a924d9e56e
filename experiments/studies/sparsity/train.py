"""Trains a network with a recipe, one seed after another with the same compiled program."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.studies.sparsity.networks import Problem, cross_entropy
from fsjax import sparsity
from fsjax.sparsity import Recipe
from fsjax.typing import PyTree

#: Temperature of the softmax in GraSP's loss, as in the authors' code.
TEMPERATURE = 200.0

#: Number of first steps that are not timed, because of compilation.
UNTIMED = 10

#: Number of test rows that are predicted at once.
ROWS = 250


def recipes(density: float, steps: int, every: int) -> dict[str, Recipe]:
    """The recipes by name; connections do not change in the last quarter of the steps."""
    end = 3 * steps // 4
    gradual = sparsity.polynomial(steps // 8, end, every=every)
    periodic = sparsity.periodic(every, end=end)
    return {
        "static": sparsity.static(density),
        "SET": sparsity.evolutionary(density, schedule=periodic),
        "RigL": sparsity.rigl(density, every=every, end_step=end),
        "SRigL": sparsity.srigl(density, every=every, end_step=end),
        "SNIP": sparsity.snip(density),
        "GraSP": sparsity.grasp(density),
        "random pruning": sparsity.random(density, schedule=gradual),
        "magnitude": sparsity.magnitude(density, schedule=gradual),
        "global magnitude": sparsity.global_magnitude(density, schedule=gradual),
        "saliency": sparsity.saliency(density, schedule=gradual),
        "magnitude STE": sparsity.magnitude_ste(density),
    }


@dataclasses.dataclass(frozen=True)
class Trained:
    """Results of :func:`train`.

    Attributes:
      accuracy: test accuracy of each seed, in percent; for text, of characters.
      density: share of active connections in the masked parameters.
      params: parameters of each seed, 0 where connections are inactive.
      cpu_ms: CPU milliseconds per step, median over seeds.
    """

    accuracy: np.ndarray
    density: float
    params: list[PyTree]
    cpu_ms: float


class Programs(NamedTuple):
    """The compiled parts of a training.

    Attributes:
      start: from a seed to parameters, state of the optimiser, and the extra argument of GraSP.
      step: from these, the seed and the number of the step to new parameters and state, in place.
    """

    start: Callable[[Any], tuple[PyTree, PyTree, PyTree]]
    step: Callable[[PyTree, PyTree, PyTree, Any, Any], tuple[PyTree, PyTree]]


def programs(problem: Problem, recipe: Recipe | None, steps: int) -> Programs:
    """The programs of a training with a recipe, or of a dense one; the rate decays in ``steps``."""
    model, where = problem.model, problem.where
    apply = cast("Callable[[PyTree, jax.Array], jax.Array]", model.apply)
    schedule = optax.cosine_decay_schedule(problem.learning_rate, steps)
    inputs, classes = map(jnp.asarray, problem.train)

    def optimizer(key: jax.Array) -> optax.GradientTransformationExtraArgs:
        inner = optax.adam(schedule)
        if recipe is None:
            return optax.with_extra_args_support(inner)
        return sparsity.sparse(inner, recipe, key, where)

    def rows_of(seed: jax.Array, number: jax.Array | int) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(seed), number)
        return jax.random.randint(key, (problem.batch,), 0, len(inputs))

    def loss(params: PyTree, rows: jax.Array, temperature: float = 1.0) -> jax.Array:
        return cross_entropy(apply(params, inputs[rows]) / temperature, classes[rows])

    @jax.jit
    def start(seed: jax.Array) -> tuple[PyTree, PyTree, PyTree]:
        """Parameters, state of the optimiser, and the extra argument of GraSP's first step."""
        key_params, key_masks = jax.random.split(jax.random.key(seed))
        params = model.init(key_params, inputs[:1])
        state = optimizer(key_masks).init(params)
        if recipe is not None:
            params = sparsity.mask_params(params, state)
        if recipe is None or recipe.drop is not sparsity.drop.gradient_flow:
            return params, state, {}
        # Four batches, with numbers that no training step uses.
        rows = jnp.concatenate([rows_of(seed, 10**6 + number) for number in range(4)])
        product = sparsity.hessian_gradient(lambda p: loss(p, rows, TEMPERATURE), params)
        return params, state, {"hessian_gradient": product}

    # No scan over the steps, because on CPUs XLA's convolutions are several times slower in loops.
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(
        params: PyTree, state: PyTree, extra: PyTree, seed: jax.Array, number: jax.Array
    ) -> tuple[PyTree, PyTree]:
        def loss_of(params: PyTree) -> jax.Array:
            if recipe is not None and recipe.straight_through:
                params = sparsity.forward_params(params, state)
            return loss(params, rows_of(seed, number))

        # The key has no effect here; changes use the key in the state.
        tx = optimizer(jax.random.key(0))
        updates, state = tx.update(jax.grad(loss_of)(params), state, params, **extra)
        return optax.apply_updates(params, updates), state

    return Programs(start, step)


def train(problem: Problem, recipe: Recipe | None, seeds: range, steps: int) -> Trained:
    """Trains with a recipe, or densely without one.

    Seeds are trained one after another, because convolutions under ``vmap`` over their kernels are
    slow on CPUs.
    """
    start, step = programs(problem, recipe, steps)
    apply = cast("Callable[[PyTree, jax.Array], jax.Array]", problem.model.apply)

    @jax.jit
    def predict(params: PyTree, rows: jax.Array) -> jax.Array:
        return apply(params, rows).argmax(-1)

    accuracies, densities, networks, cpu_ms = [], [], [], []
    for seed in seeds:
        params, state, extra = start(seed)
        for number in range(steps):
            if number == UNTIMED:
                jax.block_until_ready(params)
                before = time.process_time()
            params, state = step(params, state, extra, seed, number)
        jax.block_until_ready(params)
        cpu_ms.append(1000 * (time.process_time() - before) / (steps - UNTIMED))
        if recipe is not None:
            masks = sparsity.masks_of(state)
            params = sparsity.apply_masks(params, masks)
            densities.append(1.0 - float(sparsity.sparsity(masks, problem.where)))
        networks.append(params)
        accuracies.append(_accuracy(functools.partial(predict, params), problem))
    return Trained(
        accuracy=np.asarray(accuracies),
        density=float(np.mean(densities)) if densities else 1.0,
        params=networks,
        cpu_ms=float(np.median(cpu_ms)),
    )


def _accuracy(predict: Callable[[np.ndarray], jax.Array], problem: Problem) -> float:
    """Share of test rows, or of characters, that are predicted correctly, in percent."""
    inputs, classes = problem.test
    correct = [
        np.asarray(predict(inputs[first : first + ROWS])) == classes[first : first + ROWS]
        for first in range(0, len(inputs), ROWS)
    ]
    return 100 * float(np.concatenate(correct).mean())
