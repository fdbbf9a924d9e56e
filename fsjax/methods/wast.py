"""WAST: where to pay attention in sparse training (Sokar et al., NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from fsjax import tasks
from fsjax.errors import ConfigError
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import (
    check_at_least_0,
    check_choice,
    check_hidden,
    check_share,
    input_connections,
)
from fsjax.nets import Feedforward
from fsjax.optimizers import sgd
from fsjax.sparsity import Layer, apply_masks, init_masks, rewire, uniform_counts
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

#: Drop rules by name; ``magnitude`` is the ablation "w/o I_i" of Table 4.
DROPS = {
    "importance": drop_rules.magnitude_times_importance,
    "magnitude": drop_rules.magnitude,
    "per_sign": drop_rules.per_sign,
}

#: What the sensitivity of a neuron is, and its factor on the mean absolute residual.
SENSITIVITIES = {"residual": 1.0, "gradient": 2.0}

#: When the topology changes (appendix E).
UPDATES = ("step", "epoch")


@cached_method
def wast(
    *,
    hidden: Sequence[int] = (200,),
    density: float = 0.2,
    drop_fraction: float = 0.3,
    sensitivity_weight: float = 0.9,
    sensitivity: str = "residual",
    accumulate: bool = True,
    drop: str = "importance",
    update: str = "step",
    input_noise: float = 0.2,
    learning_rate: float = 0.1,
    momentum: float = 0.9,
) -> Method:
    """A sparse denoising autoencoder that moves its connections to the important features.

    After each step, the importance of the input and output neurons grows by their sensitivity
    and their strength (eq. 3); connections with a small product of absolute weight and importance
    of their neuron are dropped (eq. 4), and as many are grown at the most important neurons.

    Weights of dropped connections become 0 at once. Momentum is dense and never reset, as in the
    authors' code: a new connection starts at 0 and moves by what gathered while it was inactive.

    Args:
      hidden: width of the one hidden layer, as a tuple.
      density: share of active connections in both layers, in (0, 1].
      drop_fraction: alpha, share of the connections that is replaced at each change, in [0, 1].
      sensitivity_weight: lambda of eq. 3, in [0, 1]. The paper has 0.4 for images, 0.01 and 0.001
        for its gene expression sets, 0.9 otherwise; 0 and 1 are ablations 1 and 2 of Table 4.
      sensitivity: ``residual``, the mean over the batch of the absolute residual, as in the
        authors' code, or ``gradient``, twice that, as in eq. 3.
      accumulate: whether importance sums over the steps; ``False`` is the ablation "w/o momentum".
      drop: ``importance`` (eq. 4), ``magnitude`` (ablation "w/o I_i") or ``per_sign``, which is
        eq. 4 for positive and negative weights each by themselves, as in the authors' code.
      update: change the topology after every ``step`` or every ``epoch`` (appendix E).
      input_noise: standard deviation of Gaussian noise on the inputs.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).

    Returns:
      The method; its score of a column is the importance of its input neuron. It needs no labels.

    Raises:
      ConfigError: for a value outside its range.
    """
    hidden = check_hidden(hidden)
    if len(hidden) != 1:
        raise ConfigError(f"hidden={hidden}; wast has one hidden layer, such as (200,)")
    uniform_counts([], density)
    check_choice("drop", drop, DROPS)
    check_choice("sensitivity", sensitivity, SENSITIVITIES)
    check_choice("update", update, UPDATES)
    check_share("drop_fraction", drop_fraction)
    check_share("sensitivity_weight", sensitivity_weight)
    check_at_least_0("input_noise", input_noise)
    optimizer = sgd(learning_rate, momentum)
    hyper = {
        "drop_fraction": drop_fraction,
        "sensitivity_weight": sensitivity_weight,
        "input_noise": input_noise,
    }

    def network(spec: Spec) -> Feedforward:
        return Feedforward(spec.num_outputs, hidden, "sigmoid", "fan_in")

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_network, key_masks = jax.random.split(key, 3)
        params = network(spec).init(key_network, jnp.zeros((1, spec.num_features)))["params"]
        masks = init_masks(key_masks, params, lambda shapes: uniform_counts(shapes, density))
        nothing = jnp.zeros(spec.num_features)
        return create_state(
            key_train,
            spec,
            apply_masks(params, masks),
            optimizer,
            hyper=hyper,
            masks=masks,
            extra={"input_importance": nothing, "output_importance": nothing},
        )

    def predict(state: TrainState, x: Array) -> Array:
        return network(state.spec).apply({"params": state.params}, x)

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        # Inactive weights are 0, so the gradient is that of the dense network, as momentum needs.
        noise = state.hyper["input_noise"] * jax.random.normal(key, batch.x.shape)
        outputs = network(state.spec).apply({"params": params}, batch.x + noise)
        share = batch.weight / jnp.sum(batch.weight)
        residual = share @ jnp.abs(outputs - batch.y)
        return tasks.loss(state.spec.task, outputs, batch.y, batch.weight), {"residual": residual}

    def after_step(
        state: TrainState, grads: PyTree, aux: dict[str, Array], batch: Batch, key: Array
    ) -> TrainState:
        del grads, batch
        state = attend(state.replace(params=apply_masks(state.params, state.masks)), aux)
        return change(state, key) if update == "step" else state

    def attend(state: TrainState, aux: dict[str, Array]) -> TrainState:
        """Equation 3."""
        weight = state.hyper["sensitivity_weight"]
        felt = weight * SENSITIVITIES[sensitivity] * aux["residual"]
        kernel_in, kernel_out = (state.params[layer]["kernel"] for layer in ("layer_0", "layer_1"))
        ones = jnp.ones(hidden[0])
        importance = {}
        for name, strength in (
            ("input_importance", jnp.abs(kernel_in) @ ones),
            ("output_importance", ones @ jnp.abs(kernel_out)),
        ):
            now = felt + (1.0 - weight) * strength
            importance[name] = state.extra[name] + now if accumulate else now
        return state.replace(extra=importance)

    def change(state: TrainState, key: Array) -> TrainState:
        params, masks = dict(state.params), dict(state.masks)
        for name, importance, grow, layer_key in zip(
            ("layer_0", "layer_1"),
            (state.extra["input_importance"][:, None], state.extra["output_importance"][None]),
            (grow_rules.important_inputs, grow_rules.important_outputs),
            jax.random.split(key),
            strict=True,
        ):
            kernel, mask = params[name]["kernel"], masks[name]["kernel"]
            layer = Layer(kernel, mask, importance=importance)
            changed = rewire(layer, DROPS[drop], grow, state.hyper["drop_fraction"], layer_key)
            params[name] = {**params[name], "kernel": jnp.where(changed.mask, kernel, 0.0)}
            masks[name] = {**masks[name], "kernel": changed.mask}
        return state.replace(params=params, masks=masks)

    method = Method(
        name="wast",
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        score=lambda state: state.extra["input_importance"],
        after_step=after_step,
        input_connections=input_connections,
        tasks=("reconstruction",),
    )
    if update == "epoch":
        method = method._replace(after_epoch=lambda state, data, key: change(state, key))
    return method
