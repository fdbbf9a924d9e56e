"""Feedforward networks of sparse layers in a train state: how they begin, run, and are replaced.

Layers are called ``layer_0``, ... In ``params`` each has its ``kernel`` and ``bias``, in ``masks``
its mask or connections, and in ``extra`` the ``positions`` of those by coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from fsjax.method import PyTree, Spec, TrainState
from fsjax.nets.mlp import fan_in_uniform
from fsjax.products import dense_product
from fsjax.sparsity.connections import CSR_BATCH, Connections, indexed
from fsjax.sparsity.layers.base import PairScores, Replaced, Scores, Seen, SparseLayer
from fsjax.sparsity.layers.connections import ConnectedLayer, uniform_at
from fsjax.sparsity.layers.coordinates import CoordinateLayer, by_coordinates
from fsjax.sparsity.layers.forms import Form
from fsjax.sparsity.layers.masked import MaskedLayer
from fsjax.sparsity.masks import random_mask
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.rewiring import draw_connections
from fsjax.sparsity.topology import Changed, keep_moments

Shape = tuple[int, int]


def name_of(number: int) -> str:
    """The name of a layer, from 0 at the input."""
    return f"layer_{number}"


def layer_shapes(spec: Spec, hidden: Sequence[int]) -> list[Shape]:
    """``(I, O)`` of every layer."""
    widths = (spec.num_columns, *hidden, spec.num_outputs)
    return list(zip(widths[:-1], widths[1:], strict=True))


def layers_in(state: TrainState, params: PyTree | None = None) -> list[SparseLayer]:
    """The layers of a state, from the input on, with other parameters where they are given."""
    params = state.params if params is None else params
    found = []
    for number in range(len(params)):
        name = name_of(number)
        kernel, bias = params[name]["kernel"], params[name]["bias"]
        where = state.masks[name]["kernel"] if state.masks else None
        positions = state.extra.get("positions", {}).get(name)
        if isinstance(where, Connections):
            found.append(ConnectedLayer(kernel, bias, where))
        elif positions is not None:
            found.append(CoordinateLayer(kernel, bias, where, positions))
        else:
            found.append(MaskedLayer(kernel, bias, where))
    return found


def active_layers(state: TrainState, params: PyTree | None = None) -> list[SparseLayer]:
    """:func:`layers_in` with weights of 0 where there is no connection."""
    return [layer.active() for layer in layers_in(state, params)]


def params_of(layers: Sequence[SparseLayer]) -> PyTree:
    """The parameters of layers, by name."""
    return {
        name_of(number): {"kernel": layer.kernel, "bias": layer.bias}
        for number, layer in enumerate(layers)
    }


def replaced(
    state: TrainState, changes: Sequence[Replaced], optimizer: optax.GradientTransformation
) -> TrainState:
    """The state with other layers, and with the arrays of the optimiser moved as they are."""
    named = {name_of(number): change for number, change in enumerate(changes)}
    params = params_of([change.layer for change in changes])
    masks = {name: {**state.masks[name], "kernel": of.layer.where} for name, of in named.items()}
    # Methods that are made of this one have entries of their own in extra.
    extra = {name: entry for name, entry in state.extra.items() if name != "positions"}
    positions = {
        name: change.layer.positions
        for name, change in named.items()
        if isinstance(change.layer, CoordinateLayer)
    }
    if positions:
        extra["positions"] = positions
    state = state.replace(params=params, masks=masks, extra=extra)
    if state.opt_state == ():  # before the first step, and in what is kept
        return state
    moves = {name: {"bias": _same, "kernel": change.move} for name, change in named.items()}
    opt_state = optax.tree.map_params(
        optimizer, lambda leaf, move: move(leaf), state.opt_state, moves
    )
    if all(change.kept is None for change in changes):
        return state.replace(opt_state=opt_state)
    kept = {name: {"bias": _all(of.layer.bias), "kernel": of.kept} for name, of in named.items()}
    opt_state = keep_moments(optimizer, opt_state, Changed(params, masks, kept))
    return state.replace(opt_state=opt_state)


def _all(leaf: Array) -> Array:
    return jnp.ones(leaf.shape, bool)


def _same(leaf: Array) -> Array:
    return leaf


def at_rest(state: TrainState, counts: Sequence[int], forms: Sequence[Form]) -> TrainState:
    """The state before the first step, whose layers are as they are trained."""
    changes = [
        by_coordinates(layer, count) if form == "coordinates" else Replaced(layer)
        for layer, count, form in zip(active_layers(state), counts, forms, strict=True)
    ]
    return replaced(state, changes, optax.identity())


def rewire_layers(
    state: TrainState,
    recipe: Recipe,
    scores: Mapping[str, Sequence[Scores]],
    seen: Seen,
    key: Array,
    optimizer: optax.GradientTransformation,
) -> TrainState:
    """The state after one change of the connections of every layer.

    Args:
      state: whose layers have masks or connections.
      recipe: the rules.
      scores: of every layer, by the fields that the rules need.
      seen: what else they look at; its number and scores are those of each layer.
      key: PRNG key; each layer folds in its number.
      optimizer: of the state.
    """
    changes = []
    for number, layer in enumerate(layers_in(state)):
        scores_here = {field: of_layers[number] for field, of_layers in scores.items()}
        seen_here = seen._replace(number=number, scores=scores_here)
        changes.append(layer.rewire(recipe, seen_here, key))
    return replaced(state, changes, optimizer)


def expand(state: TrainState, optimizer: optax.GradientTransformation, most: int) -> TrainState:
    """The state as it is kept: matrices and masks; connections for more pairs than ``most``."""
    if not state.masks:
        return state
    return replaced(state, [layer.expand(most) for layer in layers_in(state)], optimizer)


def activations(
    layers: Sequence[SparseLayer],
    x: Array,
    activation: Callable[[Array], Array],
    probes: Sequence[Array] | None = None,
) -> list[Array]:
    """The values of every layer of neurons: the inputs, each hidden layer and the outputs.

    As :meth:`fsjax.nets.Feedforward.activations`, up to floating-point reassociation where not all
    layers are matrices.

    Args:
      layers: from the input on.
      x: ``(B, D)``.
      activation: of the hidden layers.
      probes: ``(O, B)`` for each layer, added to what its neurons get; for derivatives.
    """
    if probes is None and all(layer.is_matrix for layer in layers):
        values = [x]
        for layer in layers:
            last = (((values[-1].ndim - 1,), (0,)), ((), ()))
            y = dense_product(values[-1], layer.kernel, last) + layer.bias
            values.append(y if layer is layers[-1] else activation(y))
        return values
    # Neurons first, so that a connection moves one contiguous row of the batch.
    values = [x.T]
    for number, layer in enumerate(layers):
        y = layer.apply(values[-1]) + layer.bias[:, None]
        if probes is not None:
            y = y + probes[number]
        values.append(y if layer is layers[-1] else activation(y))
    return [value.T for value in values]


def gradient_scores(
    layers: Sequence[SparseLayer],
    x: Array,
    activation: Callable[[Array], Array],
    loss: Callable[[Array], Array],
) -> list[PairScores]:
    """Scores of every layer that are the gradients of a loss of the outputs ``(B, C)``."""
    probes = [jnp.zeros((layer.bias.size, x.shape[0])) for layer in layers]

    def of_probes(probes: list[Array]) -> tuple[Array, list[Array]]:
        values = activations(layers, x, activation, probes)
        return loss(values[-1]), values

    slopes, values = jax.grad(of_probes, has_aux=True)(probes)
    return [
        PairScores(before, slope.T, lambda sums: sums.products)
        for before, slope in zip(values[:-1], slopes, strict=True)
    ]


def draw_masks(
    key: Array, spec: Spec, shapes: Sequence[Shape], counts: Sequence[int], forms: Sequence[Form]
) -> PyTree:
    """Random masks, or connections where that is the form; the same in small layers."""
    names = [name_of(number) for number in range(len(shapes))]
    # In the order of the leaves of a tree, as masks are drawn.
    keys = dict(zip(sorted(names), jax.random.split(key, len(names)), strict=True))
    with_index = spec.batch_size >= CSR_BATCH and jax.default_backend() == "cpu"
    masks = {}
    for name, shape, count, form in zip(names, shapes, counts, forms, strict=True):
        if form == "topology":
            kernel = indexed(draw_connections(keys[name], count, shape), with_index)
        else:
            kernel = random_mask(keys[name], shape, count)
        masks[name] = {"bias": jnp.ones(shape[1], bool), "kernel": kernel}
    return masks


class _Layer(nn.Module):
    """The parameters of one layer; names and keys are those of ``nn.Dense``."""

    where: Connections | Shape
    initialisation: str

    @nn.compact
    def __call__(self) -> None:
        connections = self.where if isinstance(self.where, Connections) else None
        inputs, outputs = self.where if connections is None else connections.shape
        fan_in = fan_in_uniform(inputs)
        glorot = self.initialisation == "glorot"
        if connections is not None:
            bound = math.sqrt(6.0 / (inputs + outputs)) if glorot else 1.0 / math.sqrt(inputs)
            self.param("kernel", uniform_at, bound, connections)
        else:
            init = nn.initializers.glorot_uniform() if glorot else fan_in
            self.param("kernel", init, (inputs, outputs), jnp.float32)
        init = nn.initializers.zeros if glorot else fan_in
        self.param("bias", init, (outputs,), jnp.float32)


class _Layers(nn.Module):
    wheres: Sequence[Connections | Shape]
    initialisation: str

    @nn.compact
    def __call__(self) -> None:
        for number, where in enumerate(self.wheres):
            _Layer(where, self.initialisation, name=f"layer_{number}")()


def init_params(key: Array, shapes: Sequence[Shape], masks: PyTree, initialisation: str) -> PyTree:
    """Parameters as those of :class:`fsjax.nets.Feedforward`; of connections the kernels ``(n,)``.

    Args:
      key: PRNG key.
      shapes: of every layer.
      masks: of :func:`draw_masks`, or ``()``; inactive weights are drawn, too.
      initialisation: ``fan_in`` or ``glorot``; fans are those of the matrix.
    """
    drawn = [masks and masks[name_of(number)]["kernel"] for number in range(len(shapes))]
    wheres = [
        where if isinstance(where, Connections) else shape
        for where, shape in zip(drawn, shapes, strict=True)
    ]
    return _Layers(tuple(wheres), initialisation).init(key)["params"]
