"""Movement pruning compared with magnitude pruning while a pretrained network is fine-tuned.

    python -m experiments.studies.sparsity.transfer --out=reproduction/transfer.csv

trains LeNet-300-100 on the digits 0 to 4, gives it a new last layer, and prunes it while it is
fine-tuned on some of the digits 5 to 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.networks import Problem, cross_entropy, problem
from fsjax import sparsity
from fsjax.sparsity import Recipe
from fsjax.storage.atomic_files import write_text
from fsjax.typing import PyTree


class Digits(NamedTuple):
    """Rows of five of the digits, with classes 0 to 4."""

    train: tuple[Any, Any]
    test: tuple[Any, Any]


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", "reproduction/transfer.csv", "Table.")
    flags.DEFINE_enum("data", "digits", ["digits", "mlp"], "scikit-learn's digits, or MNIST.")
    flags.DEFINE_integer("seeds", 5, "Number of seeds.", lower_bound=1)
    flags.DEFINE_integer("steps", 300, "Steps of each of the two trainings.", lower_bound=10)
    flags.DEFINE_integer("rows", 5000, "Rows to fine-tune on.", lower_bound=1)
    flags.DEFINE_list("densities", ["0.15", "0.05"], "Final densities.")
    flags.DEFINE_list("rates", ["0.001", "0.0001"], "Learning rates of the fine-tuning.")


def main() -> None:
    """Trains and prunes the networks, and writes the table."""
    options = flags.FLAGS
    chosen = problem(options.data)
    low_digits, high_digits = (digits(chosen, low) for low in (0, 5))
    pretrain = trainer(chosen, None, options.steps)
    trainers = {
        name: trainer(chosen, recipe, options.steps)
        for name, recipe in recipes(options.densities, options.steps).items()
    }
    rows = []
    for seed in range(options.seeds):
        new = jax.jit(chosen.model.init)(jax.random.key(seed), chosen.train[0][:1])
        pretrained = pretrain(new, seed, 1e-3, *low_digits.train)
        fresh = jax.jit(chosen.model.init)(jax.random.key(seed + 1000), chosen.train[0][:1])
        layers = {**pretrained["params"], "Dense_2": fresh["params"]["Dense_2"]}
        few = tuple(part[: options.rows] for part in high_digits.train)
        for (label, density), train in trainers.items():
            for rate in map(float, options.rates):
                params = train({"params": layers}, seed, rate, *few)
                rows.append((label, density, rate, seed, accuracy(chosen, high_digits, params)))
                print(*rows[-1], flush=True)
    columns = ["recipe", "density", "learning rate", "seed", "accuracy"]
    write_text(options.out, pd.DataFrame(rows, columns=columns).to_csv(index=False))


def recipes(densities: list[str], steps: int) -> dict[tuple[str, float], Recipe | None]:
    """The recipes by name and density; they prune from an eighth to three quarters of the steps."""
    gradual = sparsity.polynomial(steps // 8, 3 * steps // 4, every=max(steps // 100, 1))
    options: dict[str, Any] = {"schedule": gradual, "distribution": "uniform"}
    by_name: dict[tuple[str, float], Recipe | None] = {("dense", 1.0): None}
    for density in map(float, densities):
        by_name["magnitude", density] = sparsity.magnitude(density, **options)
        by_name["movement", density] = sparsity.movement(density, **options)
        by_name["movement, straight-through", density] = sparsity.movement(
            density, straight_through=True, **options
        )
    return by_name


def digits(chosen: Problem, low: int) -> Digits:
    """Those from ``low`` to ``low + 4``."""

    def part(inputs: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mine = (classes >= low) & (classes < low + 5)
        return inputs[mine], classes[mine] - low

    return Digits(part(*chosen.train), part(*chosen.test))


def trainer(chosen: Problem, recipe: Recipe | None, steps: int) -> Callable[..., PyTree]:
    """``(params, seed, learning rate, inputs, classes) -> params``: with a recipe, or dense."""

    @jax.jit
    def train(
        params: PyTree, seed: int, rate: jax.Array, inputs: jax.Array, classes: jax.Array
    ) -> PyTree:
        inner = optax.with_extra_args_support(optax.adam(optax.cosine_decay_schedule(rate, steps)))
        key = jax.random.key(seed)
        tx = inner if recipe is None else sparsity.sparse(inner, recipe, key, chosen.where)

        def step(carry: tuple[PyTree, PyTree], number: jax.Array) -> tuple[tuple, None]:
            params, state = carry

            def loss(params: PyTree) -> jax.Array:
                if recipe is not None and recipe.straight_through:
                    params = sparsity.forward_params(params, state)
                scores = jnp.asarray(chosen.model.apply(params, inputs[rows]))
                return cross_entropy(scores, classes[rows])

            rows = jax.random.randint(
                jax.random.fold_in(jax.random.key(seed), number), (chosen.batch,), 0, len(inputs)
            )
            updates, state = tx.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        (params, state), _ = jax.lax.scan(step, (params, tx.init(params)), jnp.arange(steps))
        return params if recipe is None else sparsity.mask_params(params, state)

    return train


def accuracy(chosen: Problem, data: Digits, params: PyTree) -> float:
    """Accuracy on the test rows, in percent."""
    scores = np.asarray(chosen.model.apply(params, data.test[0]))
    return round(100 * float((scores.argmax(-1) == data.test[1]).mean()), 2)


if __name__ == "__main__":
    cli.run(main, define_flags)
