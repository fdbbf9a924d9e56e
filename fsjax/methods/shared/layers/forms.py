"""Chooses the form in which each layer of a network is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax

from fsjax.errors import ConfigError
from fsjax.methods.shared.layers.rewiring import drops_connections, grows_connections
from fsjax.sparsity.recipes import Recipe

#: A masked matrix, or a list of connections.
Form = Literal["dense", "topology"]

#: Largest density of a layer stored by its connections; random growth needs enough free positions.
MAX_DENSITY = 0.25

#: Largest density at which connections are faster than a matrix on CPUs, with a change every
#: twenty steps, and the smallest layer, in pairs of neurons, where this holds (``BENCHMARKS.md``).
AUTO_MAX_DENSITY, AUTO_MIN_SIZE = 0.05, 2**16

#: Largest layer, in pairs of neurons, that ``form="auto"`` stores as a matrix in results.
MAX_MATRIX_SIZE = 2**25


class Planned(NamedTuple):
    """The plan of a layer: its shape ``(I, O)``, number of connections, and form."""

    shape: tuple[int, int]
    connections: int
    form: Form


def check_form(form: str, recipe: Recipe, prune: bool) -> None:
    """Checks that layers in this form can be trained with these rules.

    Args:
      form: ``auto`` or a :data:`Form`.
      recipe: the rules.
      prune: whether the masks are obtained by pruning a dense network before training.

    Raises:
      ConfigError: if a rule needs arrays of all pairs of neurons, or may lose connections, and the
        form does not allow it.
    """
    needs_pairs = _needs_all_pairs(recipe, prune)
    if form == "topology" and needs_pairs:
        raise ConfigError(
            f"form='topology' stores no array of all pairs of neurons, but {needs_pairs} needs "
            "one; leave form out"
        )
    if form == "topology" and not recipe.rules.keep_counts:
        raise ConfigError(
            "form='topology' needs layers with a constant number of connections, but these rules "
            "may lose some; leave form out"
        )


def plan_layers(
    form: str, recipe: Recipe | None, prune: bool, widths: Sequence[int]
) -> dict[str, Planned]:
    """Plans the layers of a network, by name, from the input on.

    Args:
      form, recipe, prune: as in :func:`check_form`; without a recipe, all layers are dense.
      widths: number of neurons of each layer of neurons, from the inputs to the outputs.
    """
    shapes = list(zip(widths[:-1], widths[1:], strict=True))
    counts = [math.prod(shape) for shape in shapes] if recipe is None else recipe.counts(shapes)
    forms: list[Form] = ["dense"] * len(shapes)
    if recipe is not None and recipe.rules.keep_counts and not _needs_all_pairs(recipe, prune):
        forms = _topology_or_dense(form, shapes, counts)
    return {
        f"layer_{number}": Planned(*layer)
        for number, layer in enumerate(zip(shapes, counts, forms, strict=True))
    }


def _topology_or_dense(
    form: str, shapes: Sequence[tuple[int, int]], counts: list[int]
) -> list[Form]:
    sizes = [math.prod(shape) for shape in shapes]
    limits = [MAX_DENSITY if form in ("auto", "topology") else 0.0] * len(sizes)
    if form == "auto":
        if_matrix_fits = AUTO_MAX_DENSITY if jax.default_backend() == "cpu" else 0.0
        limits = [MAX_DENSITY if size > MAX_MATRIX_SIZE else if_matrix_fits for size in sizes]
    fits = [count <= limit * size for count, limit, size in zip(counts, limits, sizes, strict=True)]
    # Programs with connections compile more slowly, which does not pay off in small networks.
    min_size = AUTO_MIN_SIZE if form == "auto" else 0
    if not any(fit and size >= min_size for fit, size in zip(fits, sizes, strict=True)):
        return ["dense"] * len(sizes)
    return ["topology" if fit else "dense" for fit in fits]


def largest_matrix(form: str) -> int:
    """Largest layer, in pairs of neurons, that results store as a masked matrix."""
    return 0 if form == "topology" else MAX_MATRIX_SIZE


def _needs_all_pairs(recipe: Recipe, prune: bool) -> str:
    """What needs an array of all pairs of neurons, in words; empty if nothing does."""
    if prune:
        return "pruning before training"
    drop, grow = recipe.rules
    for rule, supports in ((grow, grows_connections), (drop, drops_connections)):
        if rule is not None and not supports(rule):
            return f"the rule {rule.name}"
    return ""
