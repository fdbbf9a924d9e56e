"""Feedforward networks some of whose layers are held by their connections, without a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.nets.mlp import ACTIVATIONS, fan_in_uniform
from fsjax.products import product
from fsjax.sparsity.connections import Connections, connected_dot, is_connections
from fsjax.sparsity.free import DRAWN_AS_MASKS
from fsjax.typing import PyTree

#: A layer: its connections, or the shape ``(I, O)`` of its matrix.
Form = Connections | tuple[int, int]


def uniform_at(key: Array, bound: float, connections: Connections) -> Array:
    """``(n,)`` uniform values within the bound; those of a matrix, for the key, in small layers."""
    small = connections.size <= DRAWN_AS_MASKS
    shape = connections.shape if small else connections.rows.shape
    values = jax.random.uniform(key, shape, minval=-1.0) * bound
    return values[connections.rows, connections.columns] if small else values


class _Layer(nn.Module):
    """The parameters of one layer; names and keys are those of ``nn.Dense``."""

    form: Form
    initialisation: str

    @nn.compact
    def __call__(self) -> None:
        inputs, outputs = self.form.shape if is_connections(self.form) else self.form
        fan_in = fan_in_uniform(inputs)
        glorot = self.initialisation == "glorot"
        if is_connections(self.form):
            bound = math.sqrt(6.0 / (inputs + outputs)) if glorot else 1.0 / math.sqrt(inputs)
            self.param("kernel", uniform_at, bound, self.form)
        else:
            init = nn.initializers.glorot_uniform() if glorot else fan_in
            self.param("kernel", init, self.form, jnp.float32)
        init = nn.initializers.zeros if glorot else fan_in
        self.param("bias", init, (outputs,), jnp.float32)


class _Layers(nn.Module):
    forms: Sequence[Form]
    initialisation: str

    @nn.compact
    def __call__(self) -> None:
        for number, form in enumerate(self.forms):
            _Layer(form, self.initialisation, name=f"layer_{number}")()


def init_connected(key: Array, forms: Sequence[Form], initialisation: str) -> PyTree:
    """Parameters as those of :class:`fsjax.nets.Feedforward`, with kernels ``(n,)``.

    Args:
      key: PRNG key.
      forms: of every layer.
      initialisation: ``fan_in`` or ``glorot``; fans are those of the matrix.
    """
    return _Layers(tuple(forms), initialisation).init(key)["params"]


def connected_activations(
    params: Mapping[str, Mapping[str, Array]],
    masks: Mapping[str, Mapping[str, Array | Connections]],
    x: Array,
    activation: str,
    probes: Sequence[Array] | None = None,
) -> list[Array]:
    """:meth:`fsjax.nets.Feedforward.activations`, where kernels ``(n,)`` have connections.

    Args:
      params: as :func:`init_connected` makes them.
      masks: the connections of a layer, or the mask of its matrix, which is not applied.
      x: ``(B, D)``.
      activation: of the hidden layers, a name in :data:`ACTIVATIONS`.
      probes: ``(O, B)`` for each layer, added to what its neurons get; for derivatives.
    """
    # Neurons first, so that a connection moves one contiguous row of the batch.
    values = [x.T]
    for number in range(len(params)):
        own = params[f"layer_{number}"]
        where = masks[f"layer_{number}"]["kernel"]
        if is_connections(where):
            y = connected_dot(own["kernel"], where, values[-1])
        else:
            y = product(own["kernel"].T, values[-1])
        y = y + own["bias"][:, None]
        if probes is not None:
            y = y + probes[number]
        values.append(y if number == len(params) - 1 else ACTIVATIONS[activation](y))
    return [value.T for value in values]
