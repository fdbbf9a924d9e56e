"""Lottery tickets: iterative magnitude pruning that rewinds the weights after each round.

Frankle and Carbin ("The lottery ticket hypothesis", ICLR 2019) train a network, prune its smallest
weights, give the others their initial values back, and repeat; Frankle et al. ("Linear mode
connectivity and the lottery ticket hypothesis", ICML 2020) rewind to an early step of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from fsjax.errors import ConfigError
from fsjax.sparsity.kernel_axes import AxesByPath, check_known, from_layers, kernel_axes, to_layers
from fsjax.sparsity.masks import Where, apply_masks, is_kernel
from fsjax.sparsity.named_recipes import magnitude
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.schedules import one_shot
from fsjax.sparsity.trees import leaves_by_name
from fsjax.sparsity.updates import layers_of
from fsjax.typing import PyTree


class Ticket(NamedTuple):
    """A sparse network that begins its training, of :func:`lottery_tickets`.

    Attributes:
      params: the early parameters, 0 at inactive connections.
      masks: bool arrays in their structure, all true where nothing is masked.
    """

    params: PyTree
    masks: PyTree


def lottery_tickets(
    train: Callable[[PyTree, PyTree], PyTree],
    early: PyTree,
    densities: Sequence[float],
    where: Where = is_kernel,
    *,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
    **options: Any,
) -> Iterator[Ticket]:
    """Finds lottery tickets by iterative magnitude pruning with rewinding.

    Each round trains the last ticket (at first the dense network), keeps the largest of its trained
    weights, and rewinds these to the early parameters. A round runs when its ticket is asked for.

    Args:
      train: ``(params, masks) -> params`` trains a sparse network to the end, from the early step
        on, with weights that stay 0 where masks are false. It should see the same batches and
        learning rates in each round.
      early: parameters of the dense network at the step to which weights are rewound; the initial
        ones for tickets of Frankle and Carbin.
      densities: share of active connections after each round, decreasing, in (0, 1]; the papers
        remove a fifth per round, ``[0.8**n for n in range(1, 11)]``.
      where, axes, output_first: which parameters are masked, and their axes, as for
        :func:`fsjax.sparsity.sparse`.
      **options: of :class:`fsjax.sparsity.Recipe`; by default each layer has the same density
        (``distribution="uniform"``). ``scope="global"`` compares the weights of all layers.

    Returns:
      An iterator of a ticket for each density, with exactly the connections of the recipe; each
      ticket has a part of the connections of the one before.

    Raises:
      ConfigError: if densities do not decrease or are out of range, for options that a recipe
        refuses, or, in a round, if ``train`` returns weights that are not finite, or not 0 at
        inactive connections.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (6, 4))}
      >>> def train(params, masks):  # the training loop, with sparse(..., masks=masks)
      ...     return sparsity.apply_masks(jax.tree.map(jnp.sin, params), masks)
      >>> for ticket in sparsity.lottery_tickets(train, params, [0.8, 0.64]):
      ...     trained = train(ticket.params, ticket.masks)  # a sparsity.Ticket
    """
    if any(after >= before for before, after in zip(densities, densities[1:], strict=False)):
        raise ConfigError(
            f"densities={list(densities)} do not decrease; each round removes connections, so give "
            "for example [0.8**n for n in range(1, 11)]"
        )
    if fixed := options.keys() & {"density", "schedule"}:
        names = ", ".join(sorted(fixed))
        raise ConfigError(f"lottery_tickets sets {names} itself; leave it out, and give densities")
    options = {"distribution": "uniform", **options}
    recipes = [magnitude(density, schedule=one_shot(1), **options) for density in densities]
    return _rounds(train, early, recipes, where, axes, output_first)


def _rounds(
    train: Callable[[PyTree, PyTree], PyTree],
    early: PyTree,
    recipes: Sequence[Recipe],
    where: Where,
    axes: AxesByPath | None,
    output_first: bool | None,
) -> Iterator[Ticket]:
    kernels = kernel_axes(early, where, axes, output_first)
    masks = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), early)
    for number, recipe in enumerate(recipes):
        check_known(kernels, recipe.structure)
        trained = train(apply_masks(early, masks), masks)
        _check_trained(trained, masks)
        cut = to_layers(trained, kernels), to_layers(masks, kernels)
        layers = layers_of(*cut, lambda path, layer: True)
        changed = recipe.change(*cut, layers, jax.random.key(number), 1)
        masks = from_layers(changed.masks, kernels, masks)
        yield Ticket(apply_masks(early, masks), masks)


def _check_trained(trained: PyTree, masks: PyTree) -> None:
    by_path = leaves_by_name(masks)
    for path, leaf in leaves_by_name(trained).items():
        if not jnp.isfinite(leaf).all():
            raise ConfigError(
                f"train returned {path} with numbers that are not finite; lower the learning rate"
            )
        if jnp.any((leaf != 0) & ~by_path[path]):
            raise ConfigError(
                f"train returned {path} with weights that are not 0 at inactive connections; give "
                "the masks to the optimiser, sparsity.sparse(..., masks=masks)"
            )
