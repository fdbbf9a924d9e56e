"""Feedforward networks of sparse layers in a train state: initialisation, evaluation, changes.

Layers are called ``layer_0``, ``layer_1``, ... Each has its ``kernel`` and ``bias`` in ``params``
and its mask or connections in ``masks``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from fsjax.engine.kernels.products import dense_product
from fsjax.methods.shared.layers.base import (
    LayerChange,
    LayerScores,
    PairScores,
    RuleInputs,
    SparseLayer,
)
from fsjax.methods.shared.layers.connections import ConnectedLayer, uniform_at
from fsjax.methods.shared.layers.forms import Planned
from fsjax.methods.shared.layers.masked import MaskedLayer
from fsjax.methods.shared.layers.rewiring import draw_connections
from fsjax.nets.mlp import fan_in_uniform
from fsjax.sparsity.connections import MIN_CSR_BATCH, Connections, indexed
from fsjax.sparsity.masks import random_mask
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.topology import Changed
from fsjax.sparsity.trees import identity
from fsjax.sparsity.updates import keep_moments
from fsjax.typing import PyTree

if TYPE_CHECKING:
    from fsjax.method import Spec, TrainState

#: Layers by name, from the input on.
NamedLayers = dict[str, SparseLayer]


def layers_in(state: TrainState, params: PyTree | None = None) -> NamedLayers:
    """The layers of a state, with its parameters or with other ones."""
    params = state.params if params is None else params

    def layer_called(name: str) -> SparseLayer:
        kernel, bias = params[name]["kernel"], params[name]["bias"]
        where: Any = state.masks[name]["kernel"] if state.masks else None
        if isinstance(where, Connections):
            return ConnectedLayer(kernel, bias, where)
        return MaskedLayer(kernel, bias, where)

    names = (f"layer_{number}" for number in range(len(params)))
    return {name: layer_called(name) for name in names}


def active_layers(state: TrainState, params: PyTree | None = None) -> NamedLayers:
    """:func:`layers_in`, with weights set to 0 where there is no connection."""
    return {name: layer.active() for name, layer in layers_in(state, params).items()}


def params_of(layers: NamedLayers) -> PyTree:
    """The parameters of layers, by name."""
    return {name: {"kernel": layer.kernel, "bias": layer.bias} for name, layer in layers.items()}


def with_changes(
    state: TrainState, changes: Mapping[str, LayerChange], optimizer: optax.GradientTransformation
) -> TrainState:
    """The state with changed layers; the optimiser's arrays move along."""
    layers = {name: change.layer for name, change in changes.items()}
    params = params_of(layers)
    masks = {name: {**state.masks[name], "kernel": layer.where} for name, layer in layers.items()}
    opt_state = state.opt_state
    if opt_state != ():  # Empty before the first step, and in stored results.
        moves = {
            name: {"kernel": change.move, "bias": identity} for name, change in changes.items()
        }
        kept = {name: {"kernel": change.kept, "bias": True} for name, change in changes.items()}
        apply = lambda leaf, move: move(leaf)  # noqa: E731
        opt_state = optax.tree.map_params(optimizer, apply, opt_state, moves)
        changed = Changed(params, masks, jax.tree.map(jnp.asarray, kept))
        opt_state = keep_moments(optimizer, opt_state, changed)
    return state.replace(params=params, masks=masks, opt_state=opt_state)


def rewire_layers(
    state: TrainState,
    recipe: Recipe,
    scores: Mapping[str, Sequence[LayerScores]],
    rule_inputs: RuleInputs,
    key: Array,
    optimizer: optax.GradientTransformation,
) -> TrainState:
    """The state after one change of the connections of every layer.

    Args:
      state: train state; its layers have masks or connections.
      recipe: the rules.
      scores: scores of every layer, by the field that a rule needs.
      rule_inputs: what else the rules see; number and scores are filled in for each layer.
      key: PRNG key; the number of each layer is folded in.
      optimizer: the optimiser of the state.
    """
    changes = {}
    for number, (name, layer) in enumerate(layers_in(state).items()):
        layer_scores = {field: by_layer[number] for field, by_layer in scores.items()}
        changes[name] = layer.rewire(
            recipe, rule_inputs._replace(number=number, scores=layer_scores), key
        )
    return with_changes(state, changes, optimizer)


def expand_layers(
    state: TrainState, optimizer: optax.GradientTransformation, max_pairs: int
) -> TrainState:
    """The state in the form that results store: matrices up to ``max_pairs`` pairs of neurons."""
    if not state.masks:
        return state
    changes = {name: layer.expand(max_pairs) for name, layer in layers_in(state).items()}
    return with_changes(state, changes, optimizer)


def activations(
    layers: NamedLayers,
    x: Array,
    activation: Callable[[Array], Array],
    probes: Sequence[Array] | None = None,
) -> list[Array]:
    """The values of the inputs, of each hidden layer, and of the outputs, each ``(B, neurons)``.

    Equal to :meth:`fsjax.nets.Feedforward.activations`, up to floating-point reassociation if some
    layers are not matrices.

    Args:
      layers: layers of the network.
      x: inputs ``(B, D)``.
      activation: activation function of the hidden layers.
      probes: ``(O, B)`` for each layer, added before the activation function; the gradient with
        respect to them is that of the neurons' inputs.
    """
    last = len(layers) - 1
    if probes is None and all(layer.is_matrix for layer in layers.values()):
        values = [x]
        for number, layer in enumerate(layers.values()):
            sums = (((values[-1].ndim - 1,), (0,)), ((), ()))
            y = dense_product(values[-1], layer.kernel, sums) + layer.bias
            values.append(y if number == last else activation(y))
        return values
    # Neurons first, so that each connection reads and writes a contiguous row.
    values = [x.T]
    for number, layer in enumerate(layers.values()):
        y = layer.apply(values[-1]) + layer.bias[:, None]
        y = y if probes is None else y + probes[number]
        values.append(y if number == last else activation(y))
    return [value.T for value in values]


def gradient_scores(
    layers: NamedLayers,
    x: Array,
    activation: Callable[[Array], Array],
    loss: Callable[[Array], Array],
) -> list[PairScores]:
    """The gradients of a loss with respect to the weights of all pairs of neurons, as scores.

    Args:
      layers, x, activation: as in :func:`activations`.
      loss: function of the outputs ``(B, C)``.
    """
    probes = [jnp.zeros((layer.bias.size, x.shape[0])) for layer in layers.values()]

    def probed_loss(probes: list[Array]) -> tuple[Array, list[Array]]:
        values = activations(layers, x, activation, probes)
        return loss(values[-1]), values

    slopes, values = jax.grad(probed_loss, has_aux=True)(probes)
    return [
        PairScores(before, slope.T, lambda sums: sums.products)
        for before, slope in zip(values[:-1], slopes, strict=True)
    ]


def draw_masks(key: Array, spec: Spec, plan: Mapping[str, Planned]) -> PyTree:
    """Random masks, or connections in layers of that form."""
    # In the order of the leaves of a tree, which is the order in which masks are drawn.
    keys = dict(zip(sorted(plan), jax.random.split(key, len(plan)), strict=True))
    with_index = spec.batch_size >= MIN_CSR_BATCH and jax.default_backend() == "cpu"
    masks = {}
    for name, (shape, count, form) in plan.items():
        kernel: Array | Connections
        if form == "topology":
            kernel = indexed(draw_connections(keys[name], count, shape), with_index)
        else:
            kernel = random_mask(keys[name], shape, count)
        masks[name] = {"bias": jnp.ones(shape[1], bool), "kernel": kernel}
    return masks


def without_inactive(state: TrainState) -> TrainState:
    """The initial state, with weights set to 0 where there is no connection."""
    return state.replace(params=params_of(active_layers(state)))


class _LayerParameters(nn.Module):
    """The parameters of one layer, with the names and PRNG keys of ``nn.Dense``."""

    shape: tuple[int, int]
    connections: Connections | None
    glorot: bool

    @nn.compact
    def __call__(self) -> None:
        inputs, outputs = self.shape
        fan_in = fan_in_uniform(inputs)
        if self.connections is not None:
            bound = math.sqrt(6.0 / (inputs + outputs)) if self.glorot else 1.0 / math.sqrt(inputs)
            self.param("kernel", uniform_at, bound, self.connections)
        else:
            init = nn.initializers.glorot_uniform() if self.glorot else fan_in
            self.param("kernel", init, self.shape, jnp.float32)
        init = nn.initializers.zeros if self.glorot else fan_in
        self.param("bias", init, (outputs,), jnp.float32)


class _NetworkParameters(nn.Module):
    layers: Sequence[tuple[str, tuple[int, int], Connections | None]]
    glorot: bool

    @nn.compact
    def __call__(self) -> None:
        for name, shape, connections in self.layers:
            _LayerParameters(shape, connections, self.glorot, name=name)()


def init_params(
    key: Array, plan: Mapping[str, Planned], masks: PyTree, initialisation: str
) -> PyTree:
    """Initial parameters, equal to those of :class:`fsjax.nets.Feedforward`.

    Layers stored by their connections have kernels ``(n,)``.

    Args:
      key: PRNG key.
      plan: plans of the layers, by name.
      masks: masks from :func:`draw_masks`, or ``()``. Inactive weights are drawn too.
      initialisation: ``fan_in`` or ``glorot``, with the fans of the full matrix.
    """
    drawn = {name: masks and masks[name]["kernel"] for name in plan}
    layers = tuple(
        (name, plan[name].shape, where if isinstance(where, Connections) else None)
        for name, where in drawn.items()
    )
    return _NetworkParameters(layers, initialisation == "glorot").init(key)["params"]
