"""Lottery tickets compared with random masks, random weights and pruning in one training.

    python -m experiments.studies.sparsity.tickets --out=reproduction/tickets.csv

finds tickets of LeNet-300-100 on images of digits, with weights rewound to the start or to an early
step, and trains them beside their controls: the masks of the ticket with other initial weights, and
random masks with as many connections in each layer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.networks import Problem, cross_entropy, problem
from fsjax import sparsity
from fsjax.storage.atomic_files import write_text
from fsjax.typing import PyTree

#: A training: ``(params, masks, seed, first) -> params``, from the step ``first`` on.
Train = Callable[..., PyTree]


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", "reproduction/tickets.csv", "Table.")
    flags.DEFINE_enum("data", "digits", ["digits", "mlp"], "scikit-learn's digits, or MNIST.")
    flags.DEFINE_integer("seeds", 5, "Number of seeds.", lower_bound=1)
    flags.DEFINE_integer("steps", 500, "Training steps.", lower_bound=2)
    flags.DEFINE_float("density", 0.1, "Density of the tickets.", 0.0, 1.0)
    flags.DEFINE_integer("rounds", 5, "Rounds; each removes the same share.", lower_bound=1)
    flags.DEFINE_list("rewind", ["0", "50"], "Steps to which weights are rewound.")


def main() -> None:
    """Finds and trains the tickets, and writes the table."""
    options = flags.FLAGS
    chosen = problem(options.data)
    rounds = options.rounds
    densities = [options.density ** (number / rounds) for number in range(1, rounds + 1)]
    train = trainer(chosen, options.steps)
    rows = []
    for seed in range(options.seeds):
        initial = start(chosen, seed)
        dense = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), initial)
        networks = {("dense", 0): train(initial, dense, seed, 0)}
        for step in map(int, options.rewind):
            early = trainer(chosen, options.steps, step)(initial, dense, seed, 0)
            to_the_end = functools.partial(train, seed=seed, first=step)
            *_, ticket = sparsity.lottery_tickets(to_the_end, early, densities)
            networks["ticket", step] = to_the_end(*ticket)
            other = sparsity.apply_masks(start(chosen, seed + 1000), ticket.masks)
            networks["other weights", step] = to_the_end(other, ticket.masks)
            masks = random_like(ticket.masks, jax.random.key(seed))
            networks["random masks", step] = to_the_end(sparsity.apply_masks(early, masks), masks)
        for (label, step), params in networks.items():
            rows.append((label, step, seed, accuracy(chosen, params)))
            print(*rows[-1], flush=True)
    columns = ["network", "rewound to step", "seed", "accuracy"]
    write_text(options.out, pd.DataFrame(rows, columns=columns).to_csv(index=False))


def start(chosen: Problem, seed: int) -> PyTree:
    """Initial parameters."""
    return jax.jit(chosen.model.init)(jax.random.key(seed), chosen.train[0][:1])


def random_like(masks: PyTree, key: jax.Array) -> PyTree:
    """Random masks with as many connections in each array."""
    leaves, structure = jax.tree.flatten(masks)
    keys = jax.random.split(key, len(leaves))
    drawn = [
        sparsity.random_mask(key, leaf.shape, int(leaf.sum()))
        for key, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, drawn)


def trainer(chosen: Problem, steps: int, end: int | None = None) -> Train:
    """Trains up to the step ``end``; the learning rate decays in all ``steps``, as without it."""
    data = tuple(map(jnp.asarray, chosen.train))
    rate = optax.cosine_decay_schedule(chosen.learning_rate, steps)
    recipe = sparsity.static(1.0)

    @functools.partial(jax.jit, static_argnames="first")
    def train(
        data: tuple[jax.Array, jax.Array], params: PyTree, masks: PyTree, seed: int, first: int
    ) -> PyTree:
        inputs, classes = data

        def loss(params: PyTree, rows: jax.Array) -> jax.Array:
            scores = jnp.asarray(chosen.model.apply(params, inputs[rows]))
            return cross_entropy(scores, classes[rows])

        adam = optax.adam(lambda count: rate(count + first))
        tx = sparsity.sparse(adam, recipe, jax.random.key(0), chosen.where)

        def step(carry: tuple[PyTree, PyTree], number: jax.Array) -> tuple[tuple, None]:
            params, state = carry
            # The same batch at the same step of each training.
            key = jax.random.fold_in(jax.random.key(seed), number)
            rows = jax.random.randint(key, (chosen.batch,), 0, len(inputs))
            updates, state = tx.update(jax.grad(loss)(params, rows), state, params)
            return (optax.apply_updates(params, updates), state), None

        state = sparsity.with_masks(tx.init(params), masks)
        numbers = jnp.arange(first, steps if end is None else end)
        return jax.lax.scan(step, (params, state), numbers)[0][0]

    return functools.partial(train, data)


def accuracy(chosen: Problem, params: PyTree) -> float:
    """Accuracy on the test rows, in percent."""
    scores = np.asarray(chosen.model.apply(params, chosen.test[0]))
    return round(100 * float((scores.argmax(-1) == chosen.test[1]).mean()), 2)


if __name__ == "__main__":
    cli.run(main, define_flags)
