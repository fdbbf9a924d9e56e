"""Which form the layers of a network are trained in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

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

#: Largest density, and least pairs of neurons, at which connections are faster than a matrix on
#: CPUs, with a change in every twenty steps (``BENCHMARKS.md``).
CONNECTIONS_DENSITY, CONNECTIONS_SIZE = 0.05, 2**16

#: Pairs of neurons up to which ``form="auto"`` has matrices, if only in what is kept.
MATRIX_SIZE = 2**25


class Planned(NamedTuple):
    """A layer before it is made: ``(I, O)``, how many connections it has, and its form."""

    shape: tuple[int, int]
    connections: int
    form: Form


def check_form(form: str, recipe: Recipe, prune: bool) -> None:
    """ConfigError unless layers may have the form by these rules.

    Args:
      form: ``auto`` or a :data:`Form`.
      recipe: the rules.
      prune: whether the masks come from a network without them.
    """
    whole = _look_at_pairs(recipe, prune)
    if form == "topology" and whole:
        raise ConfigError(
            f"form='topology' has no array of all pairs of neurons, and {whole} needs one; leave "
            "form out"
        )
    if form in ("coordinates", "topology") and not _keeps_numbers(recipe):
        raise ConfigError(
            f"form={form!r} is for layers that keep their number of connections, and by these "
            "rules some may be lost; leave form out"
        )


def plan_layers(
    form: str, recipe: Recipe | None, prune: bool, widths: Sequence[int]
) -> dict[str, Planned]:
    """The layers between neurons of these numbers, by name, from the input on.

    Connections alone do not stand beside coordinates. Arguments as in :func:`check_form`, where a
    network without a recipe is dense.
    """
    shapes = list(zip(widths[:-1], widths[1:], strict=True))
    counts = [math.prod(shape) for shape in shapes] if recipe is None else recipe.counts(shapes)
    forms: list[Form] = ["dense"] * len(shapes)
    if recipe is not None and _keeps_numbers(recipe):
        without_matrices = not _look_at_pairs(recipe, prune)
        if without_matrices:
            forms = [_without_matrix(form, *of) for of in zip(shapes, counts, strict=True)]
        if "topology" not in forms:
            forms = [_with_matrix(form, *of) for of in zip(shapes, counts, strict=True)]
    return {
        f"layer_{number}": Planned(*of)
        for number, of in enumerate(zip(shapes, counts, forms, strict=True))
    }


def _without_matrix(form: str, shape: tuple[int, int], count: int) -> Form:
    size = math.prod(shape)
    most = MAX_DENSITY
    if form == "auto" and size <= MATRIX_SIZE:
        pays = jax.default_backend() == "cpu" and size >= CONNECTIONS_SIZE
        most = CONNECTIONS_DENSITY if pays else 0.0
    wanted = form in ("auto", "topology")
    return "topology" if wanted and count <= most * size else "dense"


def _with_matrix(form: str, shape: tuple[int, int], count: int) -> Form:
    few = count <= COORDINATES_DENSITY * math.prod(shape) and jax.default_backend() == "cpu"
    return "coordinates" if form == "coordinates" or (form == "auto" and few) else "dense"


def largest_matrix(form: str) -> int:
    """Pairs of neurons up to which what is kept after training is a matrix under a mask."""
    return 0 if form == "topology" else MATRIX_SIZE


def _keeps_numbers(recipe: Recipe) -> bool:
    return recipe.drop is None or not shrinks(recipe.grow)


def _look_at_pairs(recipe: Recipe, prune: bool) -> str:
    """What looks at all pairs of neurons of a layer, or nothing."""
    if prune:
        return "pruning before training"
    for rule, known in ((recipe.grow, grows_connections), (recipe.drop, drops_connections)):
        if rule is not None and not known(rule):
            return f"the rule {rule_name(rule)}"
    return ""
