"""Test layers of all kinds, on which :mod:`fsjax.sparsity.testing` checks a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np
from jax import Array

from fsjax.sparsity.topology import (
    Layer,
    Rule,
    choose_dropped,
    choose_grown,
)

RuleKind = Literal["drop", "grow"]

#: Fields of a layer by name; the others are ``None``.
Fields = dict[str, Any]

#: How the values of a layer are drawn.
DRAWS = ("continuous", "tied", "zero")

FRACTIONS = (0.0, 0.2, 0.5, 0.8, 1.0)


@dataclass(frozen=True)
class Subject:
    """The rule that is checked, and what its test layers look like.

    Attributes:
      rule: drop or grow rule.
      kind: which of the two.
      shape: shape of the weights.
      importance: shape of the importance of the neurons.
      state: train state of the layers, or ``None``.
    """

    rule: Rule
    kind: RuleKind
    shape: tuple[int, ...]
    importance: tuple[int, ...]
    state: Any

    def __str__(self) -> str:
        return f"the {self.kind} rule {self.rule.name}"

    @property
    def fields(self) -> set[str]:
        """Names of the fields of a layer that are passed to the rule."""
        return {"weight", "mask"} | self.rule.needs - {"state"}

    def answer(self, fields: Fields, second: Array, key: Array) -> tuple[Array, Array]:
        """What the rule returns for a layer, and the connections that the driver then chooses."""
        # The number of the layer stays a Python int, even inside vmap.
        layer = Layer(**fields, state=self.state)
        picks = self.rule(layer, second, key)

        returned = replace(self.rule, function=lambda *_: picks)
        choose = choose_dropped if self.kind == "drop" else choose_grown
        return picks, choose(returned, layer, second, key)


@dataclass(frozen=True)
class Cases:
    """Test layers, stacked along axis 0, and the arguments for the rule.

    Attributes:
      fields: fields of the layers.
      second: second argument of the rule: fractions, or bool arrays of dropped connections.
      fractions: shares of the active connections that are dropped.
      draws: how the values of each layer were drawn, from :data:`DRAWS`.
    """

    fields: Fields
    second: np.ndarray
    fractions: np.ndarray
    draws: np.ndarray

    def keys(self, seed: int) -> Array:
        """One key per layer."""
        return jax.random.split(jax.random.key(seed), len(self.draws))

    @property
    def candidates(self) -> np.ndarray:
        """Connections that the rule may choose."""
        mask = self.fields["mask"]
        return ~mask | self.second if self.second.dtype == bool else mask


def random_fields(
    shape: tuple[int, ...],
    importance: tuple[int, ...],
    rng: np.random.Generator,
    number: int,
    draw: str,
) -> Fields:
    """All fields of a layer with ``number`` active connections."""
    mask = (rng.permutation(math.prod(shape)) < number).reshape(shape)

    def values(shape: tuple[int, ...]) -> np.ndarray:
        drawn = {
            "continuous": rng.normal(size=shape),
            "tied": rng.integers(-2, 3, shape),
            "zero": np.zeros(shape),
        }
        return drawn[draw].astype(np.float32)

    return {
        "weight": np.where(mask, values(shape), np.float32(0)),
        "mask": mask,
        "gradient": values(shape),
        "similarity": np.abs(values(shape)),
        "importance": np.abs(values(importance)),
        "search": np.asarray(rng.random() < 0.5),
        "hessian_gradient": values(shape),
        "momentum": values(shape),
    }


def cases_of(subject: Subject) -> Cases:
    """Every draw and fraction, with one to all of the connections active."""
    rng, size = np.random.default_rng(0), math.prod(subject.shape)
    numbers = (1, 2, size // 3, size // 2, size - 1, size)
    settings = [(n, draw, fraction) for n in numbers for draw in DRAWS for fraction in FRACTIONS]
    layers = [
        random_fields(subject.shape, subject.importance, rng, number, draw)
        for number, draw, _ in settings
    ]
    fractions = np.asarray([fraction for *_, fraction in settings], np.float32)
    second = fractions
    if subject.kind == "grow":
        second = np.stack([weakest(*pair) for pair in zip(layers, fractions, strict=True)])
    fields = {name: np.stack([layer[name] for layer in layers]) for name in subject.fields}
    return Cases(fields, second, fractions, np.asarray([draw for _, draw, _ in settings]))


def weakest(fields: Fields, fraction: float) -> np.ndarray:
    """The given fraction of the active connections: those with the smallest weights."""
    mask = fields["mask"]
    order = np.argsort(np.where(mask, np.abs(fields["weight"]), np.inf), axis=None)
    dropped = np.zeros(mask.size, bool)
    dropped[order[: int(fraction * mask.sum() + 1e-3)]] = True
    return dropped.reshape(mask.shape)
