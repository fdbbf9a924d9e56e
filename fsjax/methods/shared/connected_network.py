"""The sparse networks of ``sparse_network.py`` whose topology itself is the state.

Layers of few connections among very many pairs of neurons are held by their connections from the
start: in ``params`` their weights ``(n,)``, in ``masks`` a
:class:`fsjax.sparsity.connections.Connections`. The other layers are matrices with masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.method import PyTree, Spec, TrainState
from fsjax.nets.connected import connected_activations, init_connected, uniform_at
from fsjax.sparsity import Recipe, random_mask
from fsjax.sparsity.connections import (
    CSR_BATCH,
    Connections,
    indexed,
    is_connections,
    of_inputs,
    products,
)
from fsjax.sparsity.coordinates import gather
from fsjax.sparsity.rewiring import (
    draw_connections,
    drops_connections,
    grows_connections,
    rewire_connections,
)
from fsjax.sparsity.similarity import SIMILARITIES, Moments, moments
from fsjax.sparsity.topology import Changed, Layer, keep_moments, needs_of

#: Largest density of a layer that is held by its connections.
MAX_DENSITY = 0.25

#: Pairs of neurons from which on ``form="auto"`` holds a layer by its connections.
AUTO_SIZE = 2**25


class Pairs:
    """Activations of two successive layers, from which any rows of their pairs' scores are made."""

    def __init__(self, before: Array, after: Array, score: Callable[[Moments], Array]) -> None:
        """``(N, I)`` and ``(N, O)``, and how sums over rows become scores."""
        self.before, self.after, self.score = before, after, score

    def rows(self, numbers: Array) -> Array:
        """``(b, O)`` scores of the neurons ``(b,)`` of the lower layer."""
        return self.score(moments(self.before[:, numbers], self.after))

    def of(self, connections: Connections) -> Array:
        """``(n,)`` scores of connections."""
        rows, columns = connections.rows, connections.columns
        ones = jnp.ones(self.before.shape[0], self.before.dtype)
        lengths = (ones @ jnp.square(side) for side in (self.before, self.after))
        found = products(self.before.T, self.after.T, rows, columns)
        parts = (found, *(own[at] for own, at in zip(lengths, (rows, columns), strict=True)))

        def one(product: Array, before: Array, after: Array) -> Array:
            return self.score(Moments(product[None, None], before[None], after[None]))[0, 0]

        return jax.vmap(one)(*parts)


def held_by_connections(
    form: str, shapes: Sequence[tuple[int, int]], counts: Sequence[int], recipe: Recipe
) -> list[bool]:
    """Which layers are held by their connections, by the argument ``form``."""
    by_rules = drops_connections(recipe.drop) and grows_connections(recipe.grow)
    if form not in ("auto", "topology") or not by_rules:
        return [False] * len(shapes)
    least = 0 if form == "topology" else AUTO_SIZE
    sizes = [math.prod(shape) for shape in shapes]
    return [
        count <= MAX_DENSITY * size and size > least
        for size, count in zip(sizes, counts, strict=True)
    ]


def layer_shapes(spec: Spec, hidden: Sequence[int]) -> list[tuple[int, int]]:
    """``(I, O)`` of every layer."""
    widths = (spec.num_columns, *hidden, spec.num_outputs)
    return list(zip(widths[:-1], widths[1:], strict=True))


def init_held(
    key_network: Array,
    key_masks: Array,
    spec: Spec,
    shapes: Sequence[tuple[int, int]],
    counts: Sequence[int],
    held: Sequence[bool],
    initialisation: str,
) -> tuple[PyTree, PyTree]:
    """Parameters and masks; in small layers those that a network of masks has for the keys."""
    names = [f"layer_{number}" for number in range(len(shapes))]
    # In the order of the leaves of a tree, as masks are drawn.
    keys = dict(zip(sorted(names), jax.random.split(key_masks, len(names)), strict=True))
    masks: dict[str, dict[str, Array | Connections]] = {}
    for name, shape, count, own in zip(names, shapes, counts, held, strict=True):
        if own:
            kernel = with_index(draw_connections(keys[name], count, shape), spec)
        else:
            kernel = random_mask(keys[name], shape, count)
        masks[name] = {"bias": jnp.ones(shape[1], bool), "kernel": kernel}
    forms = [
        masks[name]["kernel"] if own else shape
        for name, shape, own in zip(names, shapes, held, strict=True)
    ]
    params = init_connected(key_network, forms, initialisation)
    return jax.tree.map(only_active, params, masks), masks


def only_active(leaf: Array, mask: Array | Connections) -> Array:
    """A parameter with 0 where its mask is false; those of connections are all active."""
    return leaf if is_connections(mask) else jnp.where(mask, leaf, 0)


def is_held(state: TrainState) -> bool:
    """Whether any layer is held by its connections."""
    return any(map(is_connections, jax.tree.leaves(state.masks, is_leaf=is_connections)))


def with_index(connections: Connections, spec: Spec) -> Connections:
    """Connections as the steps of a run need them."""
    wide = spec.batch_size >= CSR_BATCH and jax.default_backend() == "cpu"
    return indexed(connections, wide)


def similar_pairs(values: Sequence[Array], counts: Array, name: str) -> list[Pairs]:
    """Pairs of every layer, from activations ``(N, I)`` of the rows that count, ``(N,)`` bool."""
    real = [value * counts.astype(value.dtype)[:, None] for value in values]
    below_and_above = zip(real[:-1], real[1:], strict=True)
    return [Pairs(*pair, SIMILARITIES[name]) for pair in below_and_above]


def gradient_pairs(
    state: TrainState, x: Array, activation: str, loss: Callable[[Array], Array]
) -> list[Pairs]:
    """Pairs of every layer whose scores are the gradients of a loss of the outputs ``(B, C)``."""
    shapes = [layer["bias"].size for layer in (state.params[f"layer_{i}"] for i in _numbers(state))]
    probes = [jnp.zeros((size, x.shape[0])) for size in shapes]

    def of_probes(probes: list[Array]) -> tuple[Array, list[Array]]:
        values = connected_activations(state.params, state.masks, x, activation, probes)
        return loss(values[-1]), values

    slopes, values = jax.grad(of_probes, has_aux=True)(probes)
    return [
        Pairs(before, slope.T, lambda sums: sums.products)
        for before, slope in zip(values[:-1], slopes, strict=True)
    ]


def change_held(
    state: TrainState,
    recipe: Recipe,
    optimizer: optax.GradientTransformation,
    key: Array,
    grow_init: str,
    *,
    similarity: Sequence[Pairs] | None = None,
    gradient: Sequence[Pairs] | None = None,
    search: Array | None = None,
) -> TrainState:
    """The state with other connections in every layer that is not full.

    Args:
      state: whose layers are held by their connections, or are matrices with masks.
      recipe: the rules.
      optimizer: of the method.
      key: PRNG key; each layer folds in its number.
      grow_init: starting weights of new connections, ``zeros`` or ``uniform``.
      similarity, gradient: pairs of every layer, where the rules need them.
      search: of the :class:`~fsjax.sparsity.topology.Layer`.
    """
    params, masks = dict(state.params), dict(state.masks)
    kept = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), params)
    source = jax.tree.map(lambda leaf: jnp.zeros((0,), jnp.int32), params)
    counts = recipe.counts([_shape(state, number) for number in _numbers(state)])
    pairs = {"similarity": similarity, "gradient": gradient}
    for number, count in zip(_numbers(state), counts, strict=True):
        name, (inputs, outputs) = f"layer_{number}", _shape(state, number)
        weight, mask = params[name]["kernel"], masks[name]["kernel"]
        if count == inputs * outputs:
            continue
        scored = {field: of[number] for field, of in pairs.items() if of is not None}
        about = {"number": number, "search": search, "state": state}
        if not is_connections(mask):
            rows = jnp.arange(inputs)
            whole = {field: of.rows(rows) for field, of in scored.items()}
            layer = Layer(weight, mask, **whole, **about)
            trees = ({name: {"kernel": leaf}} for leaf in (weight, mask))
            done = recipe.change(*trees, {f"{name}/kernel": layer}, key)
            found = (done.params, done.masks, done.kept)
            weight, mask, stays = (tree[name]["kernel"] for tree in found)
        else:
            seen = {f: of.of(mask) for f, of in scored.items() if f in needs_of(recipe.drop)}
            layer = Layer(weight, jnp.ones(weight.shape, bool), **seen, **about)
            key_rules, key_init = jax.random.split(jax.random.fold_in(key, number))
            scores = {field: of.rows for field, of in scored.items()}
            fraction = recipe.fraction_at(0)
            change = rewire_connections(
                mask, layer, recipe.drop, recipe.grow, fraction, key_rules, scores
            )
            mask, stays = with_index(change.connections, state.spec), change.kept
            initial = 0.0
            if grow_init == "uniform":
                initial = uniform_at(key_init, math.sqrt(6.0 / inputs), mask)
            weight = jnp.where(stays, weight[change.source], initial)
            source[name] = {**source[name], "kernel": change.source}
        for tree, leaf in ((params, weight), (masks, mask), (kept, stays)):
            tree[name] = {**tree[name], "kernel": leaf}
    moved = optax.tree.map_params(optimizer, gather, state.opt_state, source)
    opt_state = keep_moments(optimizer, moved, Changed(params, masks, kept))
    return state.replace(params=params, masks=masks, opt_state=opt_state)


def _numbers(state: TrainState) -> range:
    return range(len(state.params))


def _shape(state: TrainState, number: int) -> tuple[int, int]:
    return tuple(state.masks[f"layer_{number}"]["kernel"].shape)


def input_strength(params: Mapping, masks: Mapping) -> Array:
    """``(D,)`` sums of the absolute weights of every input neuron; a dense network has no masks."""
    kernel, mask = jnp.abs(params["layer_0"]["kernel"]), masks and masks["layer_0"]["kernel"]
    return of_inputs(kernel, mask) if is_connections(mask) else jnp.sum(kernel, axis=1)
