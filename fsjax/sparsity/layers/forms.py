"""Which form the layers of a network are trained in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import jax

from fsjax.errors import ConfigError
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.rewiring import drops_connections, grows_connections
from fsjax.sparsity.topology import rule_name, shrinks

#: A matrix under a mask, the weights of a mask by their coordinates, or connections alone.
Form = Literal["dense", "coordinates", "topology"]

#: Largest density of a layer that is held by its connections: growth at random needs room.
MAX_DENSITY = 0.25

#: Largest density at which coordinates are faster than a matrix on CPUs (``BENCHMARKS.md``).
COORDINATES_DENSITY = 0.02

#: Pairs of neurons up to which ``form="auto"`` has matrices, if only in what is kept.
MATRIX_SIZE = 2**25


def check_form(form: str, recipe: Recipe, prune: bool) -> None:
    """ConfigError unless layers may have the form by these rules.

    Args:
      form: ``auto`` or a :data:`Form`.
      recipe: the rules.
      prune: whether the masks come from a network without them.
    """
    if form == "topology" and (prune or not _on_connections(recipe)):
        subject = f"the rule {rule_name(recipe.drop)}"
        if prune:
            subject = "pruning before training"
        elif not grows_connections(recipe.grow):
            subject = f"the rule {rule_name(recipe.grow)}"
        raise ConfigError(
            f"form='topology' has no array of all pairs of neurons, and {subject} needs one; leave "
            "form out"
        )
    if form in ("coordinates", "topology") and not _keeps_numbers(recipe):
        raise ConfigError(
            f"form={form!r} is for layers that keep their number of connections, and by these "
            "rules some may be lost; leave form out"
        )


def choose_forms(
    form: str, recipe: Recipe, prune: bool, shapes: Sequence[tuple[int, int]]
) -> list[Form]:
    """The form of every layer; connections alone do not stand beside coordinates.

    Args:
      form, recipe, prune: as in :func:`check_form`.
      shapes: ``(I, O)`` of every layer.
    """
    sizes = [math.prod(shape) for shape in shapes]
    counts = recipe.counts(shapes)
    densities = [count / size for count, size in zip(counts, sizes, strict=True)]
    if not _keeps_numbers(recipe):
        return ["dense"] * len(shapes)
    if form in ("auto", "topology") and not prune and _on_connections(recipe):
        least = MATRIX_SIZE if form == "auto" else 0
        forms: list[Form] = [
            "topology" if density <= MAX_DENSITY and size > least else "dense"
            for density, size in zip(densities, sizes, strict=True)
        ]
        if "topology" in forms:
            return forms
    most = 1.0 if form == "coordinates" else 0.0
    if form == "auto" and jax.default_backend() == "cpu":
        most = COORDINATES_DENSITY
    return ["coordinates" if density <= most else "dense" for density in densities]


def largest_matrix(form: str) -> int:
    """Pairs of neurons up to which what is kept after training is a matrix under a mask."""
    return 0 if form == "topology" else MATRIX_SIZE


def _keeps_numbers(recipe: Recipe) -> bool:
    return recipe.drop is None or not shrinks(recipe.grow)


def _on_connections(recipe: Recipe) -> bool:
    return drops_connections(recipe.drop) and grows_connections(recipe.grow)
