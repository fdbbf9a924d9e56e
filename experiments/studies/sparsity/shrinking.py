"""Smaller networks: outputs, cost and accuracy after half of the channels or blocks are removed.

    python -m experiments.studies.sparsity.shrinking --out=reproduction/shrinking.csv

trains dense networks, removes half of the channels of each group, or half of the blocks, by the
first-order Taylor terms of training rows, builds the smaller module from the widths or the depth
that is left, compares its outputs with those of the masked network, and fine-tunes it for 100
steps, beside a network of this size that is trained from new weights for as many steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.inference import milliseconds
from experiments.studies.sparsity.networks import cross_entropy, standardised, text
from fsjax import sparsity
from fsjax.storage.atomic_files import write_text
from fsjax.typing import PyTree

#: Batch sizes of which a call is timed.
BATCHES = (1, 128)


class LeNet5(nn.Module):
    """LeNet-5 with ReLU and max pooling."""

    widths: tuple[int, ...] = (6, 16, 120, 84)

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        for channels in self.widths[:2]:
            x = nn.max_pool(nn.relu(nn.Conv(channels, (5, 5))(x)), (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1)
        for width in self.widths[2:]:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


class ResNet(nn.Module):
    """A residual network with batch normalisation: stem, and two layers in each of three blocks."""

    widths: tuple[int, ...] = (16, 16, 32, 32, 64, 64)

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        norm = partial(nn.BatchNorm, use_running_average=not train, momentum=0.9)
        conv = partial(nn.Conv, kernel_size=(3, 3), use_bias=False)
        x = nn.relu(norm()(conv(self.widths[0])(x)))
        for hidden, channels in zip(self.widths[::2], self.widths[1::2], strict=True):
            strides = 1 if channels == x.shape[-1] else 2
            y = nn.relu(norm()(conv(hidden, strides=strides)(x)))
            y = norm()(conv(channels)(y))
            if strides == 2:
                x = norm()(conv(channels, kernel_size=(1, 1), strides=2)(x))
            x = nn.relu(x + y)
        return nn.Dense(10)(x.mean((1, 2)))


class Mixer(nn.Module):
    """An MLP-mixer of two blocks on patches of 4 by 4 pixels; widths of the hidden layers."""

    widths: tuple[int, ...] = (64, 256, 64, 256)

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        x = nn.Conv(64, (4, 4), strides=(4, 4))(x)
        x = x.reshape(x.shape[0], -1, 64)
        for tokens, channels in zip(self.widths[::2], self.widths[1::2], strict=True):
            y = nn.gelu(nn.Dense(tokens)(nn.LayerNorm()(x).swapaxes(1, 2)))
            x = x + nn.Dense(x.shape[1])(y).swapaxes(1, 2)
            y = nn.gelu(nn.Dense(channels)(nn.LayerNorm()(x)))
            x = x + nn.Dense(64)(y)
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


class Transformer(nn.Module):
    """A causal transformer of two blocks of width 64; heads of 16 and hidden width of each."""

    widths: tuple[int, ...] = (4, 256, 4, 256)
    characters: int = 0

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        mask = nn.make_causal_mask(x)
        x = nn.Embed(self.characters, 64)(x)
        x = x + self.param("pos", nn.initializers.normal(0.02), x.shape[1:])
        for heads, hidden in zip(self.widths[::2], self.widths[1::2], strict=True):
            y = nn.LayerNorm()(x)
            attend = nn.MultiHeadDotProductAttention(
                heads, qkv_features=16 * heads, out_features=64
            )
            x = x + attend(y, y, mask=mask)
            y = nn.gelu(nn.Dense(hidden)(nn.LayerNorm()(x)))
            x = x + nn.Dense(64)(y)
        return nn.Dense(self.characters)(nn.LayerNorm()(x))


class Block(nn.Module):
    """A block of a causal transformer of width 64, with four heads."""

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(4)(y, y, mask=mask)
        y = nn.gelu(nn.Dense(256)(nn.LayerNorm()(x)))
        return x + nn.Dense(64)(y)


class DeepTransformer(nn.Module):
    """A causal transformer of equal blocks."""

    characters: int
    depth: int = 6

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        mask = nn.make_causal_mask(x)
        x = nn.Embed(self.characters, 64)(x)
        x = x + self.param("pos", nn.initializers.normal(0.02), x.shape[1:])
        for _ in range(self.depth):
            x = Block()(x, mask)
        return nn.Dense(self.characters)(nn.LayerNorm()(x))


class Case(NamedTuple):
    """A network, and the weights whose outputs its widths count; without, its depth is reduced."""

    model: nn.Module
    weights: tuple[str, ...]
    steps: int
    batch: int


#: Networks by name; the transformer gets its number of characters from the text.
CASES = {
    "lenet5": Case(LeNet5(), ("Conv_0", "Conv_1", "Dense_0", "Dense_1"), 600, 64),
    "resnet": Case(ResNet(), ("Conv_1", "Conv_0", "Conv_3", "Conv_4", "Conv_6", "Conv_7"), 300, 64),
    "mixer": Case(Mixer(), ("Dense_0", "Dense_2", "Dense_4", "Dense_6"), 600, 64),
    "transformer": Case(
        Transformer(),
        (
            "MultiHeadDotProductAttention_0/query",
            "Dense_0",
            "MultiHeadDotProductAttention_1/query",
            "Dense_2",
        ),
        600,
        16,
    ),
    "blocks": Case(DeepTransformer(0), (), 600, 16),
}


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", "reproduction/shrinking.csv", "Table.")
    flags.DEFINE_list("networks", list(CASES), "Networks to shrink.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds.", lower_bound=1)
    flags.DEFINE_integer("steps", 0, "Training steps; 0 for the default of the network.", 0)
    flags.DEFINE_float("ratio", 0.5, "Share of channels, or of blocks, to remove.", 0.0)
    flags.DEFINE_float("seconds", 1.0, "Time of the measurement of a batch size.", 0.0)


def main() -> None:
    """Trains and shrinks the networks, and writes the table."""
    options = flags.FLAGS
    rows: list[Mapping[str, Any]] = []
    for name in options.networks:
        case, data = _case(name)
        for seed in range(options.seeds):
            row = measure(
                case, data, seed, options.steps or case.steps, options.ratio, options.seconds
            )
            rows.append({"network": name, "seed": seed, **row})
            print(rows[-1], flush=True)
    write_text(options.out, pd.DataFrame(rows).to_csv(index=False))


def _case(name: str) -> tuple[Case, tuple[Any, Any]]:
    case = CASES[name]
    if name in ("transformer", "blocks"):
        train, test, characters = text()
        return case._replace(model=case.model.copy(characters=characters)), (train, test)
    train, test = standardised("mnist")
    return case, tuple((x.reshape(-1, 28, 28, 1), y) for x, y in (train, test))  # type: ignore[return-value]


def measure(
    case: Case, data: tuple[Any, Any], seed: int, steps: int, ratio: float, seconds: float
) -> dict[str, Any]:
    """One row: parameters, operations, times, outputs and accuracies before and after."""
    model, (train, test) = case.model, data
    new = model.init(jax.random.key(seed), jnp.asarray(train[0][:1]))
    variables = fit(model, new, train, case.batch, steps, seed)
    sample = tuple(jnp.asarray(part[:512]) for part in train)

    def loss(variables: PyTree) -> jax.Array:
        return cross_entropy(jnp.asarray(model.apply(variables, sample[0])), sample[1])

    shrunk, smaller = reduced(case, variables, sample[0][:1], ratio, jax.grad(loss)(variables))
    rows = jnp.asarray(test[0][:128])
    masked = jnp.asarray(model.apply(shrunk.masked, rows))
    outputs = jnp.asarray(smaller.apply(shrunk.params, rows))
    fresh = smaller.init(jax.random.key(seed), sample[0][:1])
    row = {
        "parameters": count(variables),
        "parameters_left": count(shrunk.params),
        "flops": flops(model, variables, rows),
        "flops_left": flops(smaller, shrunk.params, rows),
        "difference": float(jnp.abs(masked - outputs).max() / jnp.abs(masked).max()),
        "accuracy": accuracy(model, variables, test),
        "accuracy_shrunk": accuracy(smaller, shrunk.params, test),
        "accuracy_tuned": accuracy(
            smaller, fit(smaller, shrunk.params, train, case.batch, 100, seed + 1000), test
        ),
        "accuracy_fresh": accuracy(
            smaller, fit(smaller, fresh, train, case.batch, 100, seed + 1000), test
        ),
    }
    for batch in BATCHES:
        part = jnp.asarray(test[0][:batch])
        times = milliseconds(
            {
                "before": partial(jax.jit(model.apply), variables, part),
                "after": partial(jax.jit(smaller.apply), shrunk.params, part),
            },
            seconds,
        )
        row |= {f"ms_{batch}": times["before"], f"ms_{batch}_left": times["after"]}
    return {key: float(f"{value:.4g}") for key, value in row.items()}


def reduced(
    case: Case, variables: PyTree, x: jax.Array, ratio: float, gradients: PyTree
) -> tuple[Any, nn.Module]:
    """The parameters that are left, and the module for them."""
    apply = case.model.apply
    if not case.weights:
        fewer = sparsity.remove_blocks(apply, variables, x, ratio=ratio, importance=gradients)
        return fewer, case.model.copy(depth=fewer.depths["params/Block"])
    shrunk = sparsity.shrink(apply, variables, x, ratio=ratio, importance=gradients)
    widths = tuple(shrunk.widths[f"params/{path}/kernel"] for path in case.weights)
    return shrunk, case.model.copy(widths=widths)


def fit(
    model: nn.Module, variables: PyTree, rows: tuple[Any, Any], batch: int, steps: int, seed: int
) -> PyTree:
    """Trains with Adam, whose rate decays from 0.002 to 0 along a cosine."""
    tx = optax.adam(optax.cosine_decay_schedule(2e-3, steps))
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}

    def loss(params: PyTree, rest: PyTree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, PyTree]:
        scores, rest = model.apply({"params": params, **rest}, x, train=True, mutable=list(rest))
        return cross_entropy(scores, y), rest

    @jax.jit
    def step(params: PyTree, rest: PyTree, state: PyTree, x: Any, y: Any) -> tuple:
        gradients, rest = jax.grad(loss, has_aux=True)(params, rest, x, y)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), rest, state

    state, rng = tx.init(params), np.random.default_rng(seed)
    for _ in range(steps):
        chosen = rng.integers(len(rows[0]), size=batch)
        params, rest, state = step(params, rest, state, rows[0][chosen], rows[1][chosen])
    return {"params": params, **rest}


def count(variables: PyTree) -> int:
    """Number of entries of all parameters and statistics."""
    return sum(leaf.size for leaf in jax.tree.leaves(variables))


def flops(model: nn.Module, variables: PyTree, rows: jax.Array) -> float:
    """Operations of one row, by the compiler's count."""
    cost = jax.jit(model.apply).lower(variables, rows).compile().cost_analysis() or {}
    return float(cost["flops"]) / len(rows)


def accuracy(model: nn.Module, variables: PyTree, rows: tuple[Any, Any]) -> float:
    """Share of the first 2,000 test rows, or of their characters, in percent."""
    predict: Callable = jax.jit(model.apply)
    scores = np.concatenate(
        [np.asarray(predict(variables, rows[0][at : at + 500])) for at in range(0, 2000, 500)]
    )
    return 100 * float((scores.argmax(-1) == rows[1][: len(scores)]).mean())


if __name__ == "__main__":
    cli.run(main, define_flags)
