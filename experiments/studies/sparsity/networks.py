"""The networks of the studies, in Flax Linen, and their data."""

from __future__ import annotations

from importlib import resources
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from fsjax.data import load, make_split


class MLP(nn.Module):
    """Two hidden layers of 300 and 100 neurons, LeNet-300-100 (LeCun et al., 1998) with ReLU."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in (300, 100):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


class LeNet5(nn.Module):
    """LeNet-5 (LeCun et al., 1998) with ReLU and max pooling, for 32 x 32 x 3 images."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for channels in (6, 16):
            x = nn.relu(nn.Conv(channels, (5, 5), padding="VALID")(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1)
        for width in (120, 84):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


class ResNet8(nn.Module):
    """A residual network of eight layers (He et al., 2016) with group normalisation.

    Attributes:
      width: channels of the first stage; each further stage has twice as many.
    """

    width: int = 8

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.GroupNorm(4)(nn.Conv(self.width, (3, 3), use_bias=False)(x)))
        for stage in range(3):
            channels, strides = self.width * 2**stage, 1 if stage == 0 else 2
            y = nn.Conv(channels, (3, 3), strides, use_bias=False)(x)
            y = nn.relu(nn.GroupNorm(4)(y))
            y = nn.GroupNorm(4)(nn.Conv(channels, (3, 3), use_bias=False)(y))
            if x.shape != y.shape:
                x = nn.Conv(channels, (1, 1), strides, use_bias=False)(x)
            x = nn.relu(x + y)
        return nn.Dense(10)(x.mean((1, 2)))


class Transformer(nn.Module):
    """A causal transformer of two blocks that predicts the next character.

    Attributes:
      characters: number of different characters.
      width: width of the residual stream.
    """

    characters: int
    width: int = 64

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        positions = self.param("positions", nn.initializers.normal(0.02), (tokens.shape[1], 1))
        x = nn.Embed(self.characters, self.width)(tokens) + positions[:, 0, None]
        mask = nn.make_causal_mask(tokens)
        for _ in range(2):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(4)(y, y, mask=mask)
            y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
            x = x + nn.Dense(self.width)(y)
        return nn.Dense(self.characters)(nn.LayerNorm()(x))


class Problem(NamedTuple):
    """A network, its data and the settings of its training.

    Attributes:
      model: returns scores ``(..., classes)``.
      train, test: inputs ``(N, ...)`` and classes ``(N, ...)``.
      where: path patterns of the parameters that are masked.
      steps: number of training steps.
      every: steps between two changes of the connections.
      batch: rows per step.
      learning_rate: initial learning rate of Adam; it decays to 0 along a cosine.
    """

    model: nn.Module
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    where: tuple[str, ...]
    steps: int
    every: int
    batch: int
    learning_rate: float


def problem(name: str) -> Problem:
    """The problem ``"digits"``, ``"mlp"``, ``"lenet5"``, ``"resnet8"`` or ``"transformer"``."""
    kernels: tuple[str, ...] = ("params/*/kernel",)
    if name == "transformer":
        train, test, characters = text()
        kernels = ("params/Dense_*/kernel", "params/MultiHead*/*/kernel")
        return Problem(Transformer(characters), train, test, kernels, 800, 25, 16, 3e-3)
    if name == "digits":
        return Problem(MLP(), *standardised("digits"), kernels, 500, 25, 64, 1e-3)
    if name == "mlp":
        return Problem(MLP(), *standardised("mnist"), kernels, 2000, 100, 128, 1e-3)
    if name == "resnet8":
        return Problem(ResNet8(), *photos(), kernels, 400, 25, 32, 5e-3)
    return Problem(LeNet5(), *photos(), kernels, 600, 25, 64, 2e-3)


def photos() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training and test images of CIFAR-10, ``(N, 32, 32, 3)``, with their classes.

    If the data folder contains the subset of 5,000 images, the subset is used.
    """
    train, test = standardised("cifar10")

    def images(rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    return (images(train[0]), train[1]), (images(test[0]), test[1])


def standardised(name: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training and test rows, standardised by one mean and one deviation, with their classes.

    Those of digits, which have no official test rows, are halves.
    """
    dataset = load(name)
    assert dataset.y is not None
    protocol = "stratified" if name == "digits" else "official"
    split = make_split(dataset, protocol, seed=0, fractions=(0.5, 0.0, 0.5), valid_fraction=0.0)
    X = np.asarray(dataset.X, np.float32)
    X = (X - X.mean()) / X.std()
    return (X[split.train], dataset.y[split.train]), (X[split.test], dataset.y[split.test])


def text(length: int = 64) -> tuple[Any, Any, int]:
    """Rows of text from scikit-learn's data set descriptions, with the next characters as targets.

    Args:
      length: characters per row.

    Returns:
      Training rows; test rows, from the last tenth of the text; and the number of different
      characters. Rows are pairs of inputs and targets, each ``(N, length)`` int32.
    """
    folder = resources.files("sklearn.datasets.descr")
    files = sorted(path.name for path in folder.iterdir() if path.name.endswith(".rst"))
    content = "".join(folder.joinpath(name).read_text("utf-8") for name in files)
    alphabet, codes = np.unique(list(content), return_inverse=True)
    codes = codes.astype(np.int32)
    cut = len(codes) * 9 // 10

    def rows(part: np.ndarray, stride: int) -> tuple[np.ndarray, np.ndarray]:
        windows = np.lib.stride_tricks.sliding_window_view(part, length + 1)[::stride]
        return windows[:, :-1], windows[:, 1:]

    return rows(codes[:cut], 8), rows(codes[cut:], length), len(alphabet)


def cross_entropy(scores: jax.Array, classes: jax.Array) -> jax.Array:
    """Mean cross-entropy over rows and positions."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), classes[..., None], -1)
    return -chosen.mean()
