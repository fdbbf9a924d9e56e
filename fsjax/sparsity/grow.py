"""Grow rules: which connections to add. Most return scores, and the highest are added.

See :mod:`fsjax.sparsity.rules` for what a rule may return. Unless stated otherwise, a connection
that was just dropped may be added again in the same change; it then keeps its weight.

Examples:
  >>> from fsjax.sparsity import grow
  >>> rules = [grow.random, grow.gradient, grow.momentum, grow.similar, grow.similar_or_random]
  >>> rules += [grow.dissimilar_or_random, grow.important_inputs, grow.important_outputs]
  >>> rules += [grow.short_paths, grow.sampled_short_paths]
  >>> for rule in rules:
  ...     sparsity.Recipe(density=0.1, drop=sparsity.drop.random, grow=rule, fraction=0.3, every=20)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kth import count_true, largest, ordered_bits, random_order, random_subset
from fsjax.sparsity.rules import GrowRule, Layer, Rule, as_rule, needs
from fsjax.sparsity.topology import choose_grown, cond_with_key

#: Largest number of neurons that are compared pairwise; for more, sorting is faster.
MAX_COMPARED = 2000


def _free(layer: Layer, dropped: Array) -> Array:
    """Connections that were not kept."""
    return ~layer.mask | dropped


@as_rule
def random(layer: Layer, dropped: Array, key: Array) -> Array:
    """Random free connections (SET)."""
    return ~random_order(key, layer.mask.shape)


@needs("gradient")
def gradient(layer: Layer, dropped: Array, key: Array) -> Array:
    """The largest absolute gradients of the loss (RigL)."""
    return jnp.abs(layer.needed("gradient"))


@needs("momentum")
def momentum(layer: Layer, dropped: Array, key: Array) -> Array:
    """The largest absolute running means of gradients (Dettmers and Zettlemoyer, 2019)."""
    return jnp.abs(layer.needed("momentum"))


@needs("similarity")
def similar(layer: Layer, dropped: Array, key: Array) -> Array:
    """The most similar neurons (CTRE, algorithm 1, line 11)."""
    return layer.needed("similarity")


@needs("similarity")
def similar_or_random(layer: Layer, dropped: Array, key: Array) -> Array:
    """The most similar neurons; random ones where these were just dropped (CTRE, algorithm 2)."""
    wanted = count_true(dropped)
    picks = largest(layer.needed("similarity"), wanted, _free(layer, dropped))
    grown = picks & ~dropped
    rest = random_subset(key, wanted - count_true(grown), _free(layer, dropped) & ~grown)
    return grown | rest


@needs("similarity")
def dissimilar_or_random(layer: Layer, dropped: Array, key: Array) -> Array:
    """The least similar neurons first: CTRE's ablation "LTH" (section 5.1.2)."""
    return similar_or_random(layer._replace(similarity=-layer.needed("similarity")), dropped, key)


def path_scores(mask: Array) -> Array:
    """How well paths of three connections join the two neurons of every connection.

    A path from input i to output o runs through a neighbour z of o on the side of i, or of i on
    the side of o. With ``n`` neurons that i and z both are connected to, it counts
    ``(1 + n) / (1 + e)``, where ``e`` are the other connections of z, but for that to o: paths
    inside a community count more than paths through a neuron that leads everywhere.

    This is CH2-L3 in its node-based form (Zhang et al., "Brain network science modelling of sparse
    neural networks enables Transformers and LLMs to perform as fully connected", NeurIPS 2025). It
    looks at the topology alone.

    Args:
      mask: bool ``(..., O)``, the active connections; axes before the last count as inputs.

    Returns:
      float32 in the shape of the mask, at least 0; 0 where no such path exists.

    Examples:
      >>> mask = sparsity.random_mask(jax.random.key(0), (20, 10), 40)
      >>> scores = sparsity.grow.path_scores(mask)  # (20, 10)
    """
    links = mask.reshape(-1, mask.shape[-1]).astype(jnp.float32)
    return (_paths_through_inputs(links) + _paths_through_inputs(links.T).T).reshape(mask.shape)


def _paths_through_inputs(links: Array) -> Array:
    """Sums ``(I, O)`` over the neurons z of the first axis that lead to an output."""
    shared = links @ links.T
    other = jnp.maximum(jnp.sum(links, axis=1) - shared - 1.0, 0.0)
    # (1 + i) / (1 + e) for neurons with a common neighbour.
    weight = jnp.where(shared > 0, (1.0 + shared) / (1.0 + other), 0.0)
    return weight @ links


@as_rule
def short_paths(layer: Layer, dropped: Array, key: Array) -> Array:
    """The missing connections with most short paths in the topology that is left (CHT)."""
    scores = path_scores(layer.mask & ~dropped)
    # Paths are few where connections are few, so that many tie: these come in a random order.
    jitter = 1.0 - 1e-4 * jax.random.uniform(key, scores.shape)
    return jnp.where(scores > 0, scores, 1e-9) * jitter


@as_rule
def sampled_short_paths(layer: Layer, dropped: Array, key: Array) -> Array:
    """Draws connections with probabilities proportional to the scores of short paths (CHTs)."""
    scores = path_scores(layer.mask & ~dropped)
    # The largest of log score plus Gumbel noise are a sample without replacement.
    return jnp.log(jnp.maximum(scores, 1e-9)) + jax.random.gumbel(key, scores.shape)


def switched(first: GrowRule, then: GrowRule) -> Rule:
    """The rule ``first`` until ``layer.search`` is true, and ``then`` from there on.

    Examples:
      >>> rule = sparsity.grow.switched(sparsity.grow.similar, sparsity.grow.random)
    """
    before, after = as_rule(first), as_rule(then)

    def rule(layer: Layer, dropped: Array, key: Array) -> Array:
        return cond_with_key(
            layer.needed("search"),
            lambda key: choose_grown(after, layer, dropped, key),
            lambda key: choose_grown(before, layer, dropped, key),
            key,
        )

    return Rule(
        rule,
        f"switched({before.name}, {after.name})",
        needs=before.needs | after.needs | {"search"},
        may_shrink=before.may_shrink or after.may_shrink,
        between=(before, after),
    )


@needs("importance")
def important_inputs(layer: Layer, dropped: Array, key: Array) -> Array:
    """Free connections of the most important input neurons (WAST, section 3).

    Their score is that of their neuron, so neurons are ordered rather than connections. Within
    the last neuron that gets some, the lowest positions are filled. The layer is ``(I, O)`` and
    its importance ``(I, 1)``.
    """
    importance = layer.needed("importance")[:, 0]
    return _by_neuron(_free(layer, dropped), importance, count_true(dropped), axis=0)


@needs("importance")
def important_outputs(layer: Layer, dropped: Array, key: Array) -> Array:
    """As :func:`important_inputs`, for the importance ``(1, O)`` of the output neurons."""
    importance = layer.needed("importance")[0]
    return _by_neuron(_free(layer, dropped), importance, count_true(dropped), axis=1)


def _by_neuron(free: Array, importance: Array, wanted: Array, axis: int) -> Array:
    """Marks ``wanted`` of the free ``(I, O)`` connections, neuron after neuron.

    ``importance`` is that of the neurons along ``axis``: 0 for the inputs, 1 for the outputs.
    """
    # As a product with ones: a sum over a leading axis is slow on CPUs.
    ones = jnp.ones(free.shape[1 - axis], jnp.float32)
    numbers = free.astype(jnp.float32)
    room = (numbers @ ones if axis == 0 else ones @ numbers).astype(jnp.int32)
    quota = jnp.clip(wanted - _room_before(importance, room), 0, room)
    # One neuron at most is filled in part, up to some position; without one, this changes nothing.
    partial = jnp.argmax((quota > 0) & (quota < room))
    line = jax.lax.dynamic_index_in_dim(free, partial, axis, keepdims=False)
    length = count_true(jnp.cumsum(line) <= quota[partial])
    in_part = (jnp.arange(room.size) == partial)[:, None] & (jnp.arange(line.size) < length)
    full = jnp.expand_dims(quota == room, 1 - axis)
    return free & (full | (in_part if axis == 0 else in_part.T))


def _room_before(importance: Array, room: Array) -> Array:
    """Free connections ``(N,)`` of all neurons that are more important, or as much and earlier."""
    rank, number = ordered_bits(importance), jnp.arange(room.size)
    if room.size > MAX_COMPARED:
        order = jnp.argsort(~rank, stable=True)
        ordered = room[order]
        return jnp.zeros_like(room).at[order].set(jnp.cumsum(ordered) - ordered)
    earlier = rank[:, None] > rank
    earlier |= (rank[:, None] == rank) & (number[:, None] < number)
    return jnp.sum(jnp.where(earlier, room[:, None], 0), axis=0)
