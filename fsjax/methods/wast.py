"""WAST: sparse autoencoders that attend to important neurons (Sokar et al., NeurIPS 2022)."""

from __future__ import annotations

from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import (
    STATIC,
    Fraction,
    Layers,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    Share,
)
from fsjax.engine.kernels.noise import normal
from fsjax.errors import ConfigError
from fsjax.method import (
    About,
    Batch,
    Method,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.sparse_network import rewired
from fsjax.nets import Feedforward, outputs_of
from fsjax.registry import register
from fsjax.sparsity import Layer, Recipe, apply_masks, init_masks, needs
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.updates import layers_of

#: Drop rules by name; ``magnitude`` is the ablation "w/o I_i" of Table 4.
DROPS = {
    "importance": drop_rules.magnitude_times_importance,
    "magnitude": drop_rules.magnitude,
    "per_sign": drop_rules.per_sign,
}

#: Sensitivities of a neuron by name, as factors of the mean absolute residual.
SENSITIVITIES = {"residual": 1.0, "gradient": 2.0}


@needs("importance")
def important_neurons(layer: Layer, dropped: Array, key: Array) -> Array:
    """Grows at the most important input neurons (encoder) or output neurons (decoder)."""
    is_encoder = layer.number == 0
    rule = grow_rules.important_inputs if is_encoder else grow_rules.important_outputs
    return rule(layer, dropped, key)


# The scaling is the authors', without which WAST loses much accuracy on their data sets. Columns of
# different units need another one.
@register(
    estimator="WAST",
    paper="Sokar et al., NeurIPS 2022",
    optimises="the reconstruction error of a sparse network that grows at important neurons",
    num_epochs=10,
    batch_size=128,
    scaling="scalar",
    small={"hidden": (6,), "density": 0.4},
)
def wast(
    *,
    hidden: Layers = (200,),
    density: Annotated[Fraction, STATIC] = 0.2,
    drop_fraction: Share = 0.3,
    sensitivity_weight: Share = 0.9,
    sensitivity: Literal["residual", "gradient"] = "residual",
    accumulate: bool = True,
    drop: Literal["importance", "magnitude", "per_sign"] = "importance",
    update: Literal["step", "epoch"] = "step",
    input_noise: NonNegative = 0.2,
    optimizer: Literal["sgd"] | Optimizer = "sgd",
    learning_rate: Positive | Schedule = 0.1,
    momentum: Rate = 0.9,
) -> Method:
    """A sparse denoising autoencoder that moves its connections to the important features.

    After each step the importance of every input and output neuron grows by a weighted sum of its
    sensitivity and its strength, ``I_i <- I_i + lambda |dL/dx_i| + (1 - lambda) sum_j |w_ij|``
    (eq. 3). Then the connections with the smallest ``|w_ij| I_i`` are dropped (eq. 4), and as many
    are grown at the most important neurons.

    The weights of dropped connections become 0 at once. Momentum is dense and never reset, as in
    the authors' code: a new connection starts at 0, with the momentum that was accumulated while it
    was inactive.

    Args:
      hidden: width of the single hidden layer, as a tuple.
      density: share of active connections in both layers, in (0, 1].
      drop_fraction: alpha, the share of the connections that is replaced at each change, in [0, 1].
      sensitivity_weight: lambda of eq. 3, in [0, 1]. The paper uses 0.4 for images, 0.01 and 0.001
        for its gene expression sets, and 0.9 otherwise; 0 and 1 are ablations 1 and 2 of Table 4.
      sensitivity: ``residual``, the mean over the batch of the absolute residual, as in the
        authors' code; or ``gradient``, twice that, as in eq. 3.
      accumulate: whether importance accumulates over the steps; ``False`` is the ablation "w/o
        momentum".
      drop: ``importance`` (eq. 4); ``magnitude`` (ablation "w/o I_i"); or ``per_sign``, eq. 4 for
        positive and negative weights separately, as in the authors' code.
      update: whether the topology changes after every ``step`` or every ``epoch`` (appendix E).
      input_noise: standard deviation of the Gaussian noise on the inputs, at least 0.
      optimizer: ``sgd``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of gradient descent with Nesterov's momentum; or an Optax schedule.
      momentum: of gradient descent, in [0, 1).

    Returns:
      The method; the score of a column is the importance of its input neuron. It needs no labels.
    """
    _check_one_layer(hidden)
    recipe = Recipe(
        density=density,
        distribution="uniform",
        drop=DROPS[drop],
        grow=important_neurons,
        fraction=drop_fraction,
    )

    def network(spec: Spec) -> Feedforward:
        return Feedforward(spec.num_outputs, hidden, "sigmoid", "fan_in")

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        _check_reconstruction(spec.task)
        key_network, key_masks = jax.random.split(key)
        params = network(spec).init(key_network, jnp.zeros((1, spec.num_columns)))["params"]
        masks = init_masks(key_masks, params, recipe.counts)
        zeros = jnp.zeros(spec.num_columns)
        importance = {"input_importance": zeros, "output_importance": zeros}
        return create_state(spec, apply_masks(params, masks), masks=masks, extra=importance)

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        # Inactive weights are 0 but not masked: the dense momentum needs their gradients.
        noise = input_noise * normal(key, batch.x.shape)
        outputs = outputs_of(network(state.spec), {"params": params}, batch.x + noise)
        share = batch.weight / jnp.sum(batch.weight)
        residual = share @ jnp.abs(outputs - batch.y)
        return state.spec.loss_of(outputs, batch.y, batch.weight), {"residual": residual}

    def after_step(
        state: TrainState, grads: PyTree, aux: dict[str, Array], batch: Batch[Array], key: Array
    ) -> TrainState:
        state = state.replace(params=apply_masks(state.params, state.masks))
        # I_i <- I_i + lambda |dL/dx_i| + (1 - lambda) sum_j |w_ij| (eq. 3).
        sensitive = sensitivity_weight * SENSITIVITIES[sensitivity] * aux["residual"]
        importance = {}
        for name, strength in strengths(state.params).items():
            gain = sensitive + (1.0 - sensitivity_weight) * strength
            importance[name] = state.extra[name] + gain if accumulate else gain
        state = state.replace(extra=importance)
        return rewire(recipe, state, key) if update == "step" else state

    if optimizer == "sgd":
        optimizer = optax.sgd(learning_rate, momentum, nesterov=True)
    method = Method(
        About(tasks=("reconstruction",), sparse=True),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: outputs_of(network(state.spec), {"params": state.params}, x),
        select=lambda state: Selection(state.extra["input_importance"]),
        after_step=after_step,
    )
    if update == "epoch":
        method = method._replace(
            after_epoch=lambda state, data, key: rewire(recipe, state, key),
            phases=rewired(drop_fraction),
        )
    return method


def strengths(params: PyTree) -> dict[str, Array]:
    """``sum_j |w_ij|`` of the input and output neurons, ``(D,)`` each, by name of importance."""
    kernel_in, kernel_out = (params[layer]["kernel"] for layer in ("layer_0", "layer_1"))
    ones = jnp.ones(kernel_in.shape[1])
    return {
        "input_importance": jnp.abs(kernel_in) @ ones,
        "output_importance": ones @ jnp.abs(kernel_out),
    }


def rewire(recipe: Recipe, state: TrainState, key: Array) -> TrainState:
    """Drops and grows connections by the rules of the recipe, which see the importances ``I_i``."""
    importance = {
        "layer_0": {"kernel": state.extra["input_importance"][:, None]},
        "layer_1": {"kernel": state.extra["output_importance"][None]},
    }
    layers = layers_of(state.params, state.masks, importance=importance)
    changed = recipe.change(state.params, state.masks, layers, key)
    return state.replace(params=changed.params, masks=changed.masks)


def _check_one_layer(hidden: Layers) -> None:
    if len(hidden) != 1:
        raise ConfigError(
            f"hidden={hidden}; wast has one hidden layer; give one width, for example (200,)"
        )


def _check_reconstruction(task: str) -> None:
    if task != "reconstruction":
        raise ConfigError(
            f"task={task!r}, but wast's importance of a column is the derivative of the "
            "squared error (eq. 3); choose task='reconstruction'"
        )
