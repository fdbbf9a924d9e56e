"""The concrete selector: CAE, IP-CAE and GJSD differ only in its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.arguments import (
    STATIC,
    TERM,
    Count,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    Widths,
    is_used,
    known,
)
from fsjax.concrete import Parametrisation, exponential_temperature, gjsd, select, select_discrete
from fsjax.engine.kernels.distinct_columns import unique_percentage
from fsjax.errors import ConfigError
from fsjax.method import (
    About,
    Batch,
    Method,
    Phase,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.nets import MLP, outputs_of
from fsjax.tables.groups import gather

#: Logit of columns that may not be selected; finite, so that gradients are.
RULED_OUT = -1e9


@dataclass(frozen=True)
class ConcreteOptions:
    """Arguments of every concrete selector; the defaults are those of the published CAE baseline.

    Attributes:
      hidden: widths of the decoder's hidden layers, as a tuple; ``()`` is a linear decoder.
      layer_norm: LayerNorm before each activation of the decoder; it is in the authors' code, not
        in the paper.
      dropout: rate in [0, 1) after each activation of the decoder.
      noise: ``row`` draws one noise matrix for each row (published tables); ``batch`` draws one per
        batch (the original CAE), which is several times cheaper but lowers the accuracy of CAE.
      anneal: whether the temperature falls once per ``epoch`` or at every ``step``.
      temperature_start: T_0 of eq. 3, above 0.
      temperature_end: T_B of eq. 3, above 0 and at most T_0.
      gjsd_weight: lambda of eq. 11, at least 0; 0 omits the term.
      optimizer: ``adam``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of Adam, above 0; or an Optax schedule.
      adam_epsilon: what Adam adds to the root of the squared gradients, above 0. It matters if the
        gradients are as small, as on inputs that hardly vary: selectors then move more slowly.

    Examples:
      >>> method = fsjax.methods.ip_cae(2, hidden=(), noise="batch")
    """

    hidden: Widths = (200,)
    layer_norm: bool = True
    dropout: Annotated[Rate, STATIC] = 0.0
    noise: Literal["row", "batch"] = "row"
    anneal: Literal["epoch", "step"] = "epoch"
    temperature_start: Positive = 10.0
    temperature_end: Positive = 0.01
    gjsd_weight: Annotated[NonNegative, TERM] = 0.0
    optimizer: Literal["adam"] | Optimizer = "adam"
    learning_rate: Positive | Schedule = 1e-3
    adam_epsilon: Annotated[Positive, STATIC] = 1e-8


def concrete_selector(logits: Parametrisation, num_features: Count, **options: Any) -> Method:
    """A concrete selector layer with an MLP behind it (Balin et al. 2019; IP-CAE, section 2).

    The score of a column is the largest probability that any selector assigns to it.

    Args:
      logits: how the logits of the selectors are parametrised.
      num_features: K, the number of selectors.
      **options: those of :class:`ConcreteOptions`.

    Raises:
      ConfigError: if the final temperature is above the initial one.
    """
    o = ConcreteOptions(**options)
    start, end = o.temperature_start, o.temperature_end
    _check_falls(start, end)

    def decoder(spec: Spec) -> MLP:
        return MLP(spec.num_outputs, o.hidden, layer_norm=o.layer_norm, dropout=o.dropout)

    def allowed_logits(params: PyTree, state: TrainState) -> Array:
        return jnp.where(state.feature_mask, logits.apply(params["selector"]), RULED_OUT)

    def temperature(state: TrainState) -> Array:
        spec = state.spec
        progress = state.epoch / spec.num_epochs
        if o.anneal == "step":
            progress = state.step / (spec.num_epochs * spec.steps_per_epoch)
        return exponential_temperature(progress, start, end)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_selector, key_decoder = jax.random.split(key)
        largest_group = 1 if spec.groups is None else np.bincount(spec.groups).max()
        inputs = jnp.zeros((1, num_features * largest_group))
        params = {
            "selector": logits.init(key_selector, num_features, spec.num_units),
            "decoder": decoder(spec).init(key_decoder, inputs)["params"],
        }
        return create_state(spec, params)

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        key_noise, key_dropout = jax.random.split(key)
        selector_logits = allowed_logits(params, state)
        selected = by_group(
            lambda x: select(key_noise, selector_logits, x, temperature(state), o.noise),
            batch.x,
            state.spec,
        )
        outputs = outputs_of(
            decoder(state.spec),
            {"params": params["decoder"]},
            selected,
            train=True,
            rngs={"dropout": key_dropout},
        )
        value = state.spec.loss_of(outputs, batch.y, batch.weight)
        if is_used(o.gjsd_weight):
            # L_lambda = L - lambda D_GJS (eq. 11).
            value = value - o.gjsd_weight * gjsd(selector_logits)
        return value, {}

    def predict(state: TrainState, x: Array) -> Array:
        chosen = allowed_logits(state.params, state)
        selected = by_group(lambda rows: select_discrete(chosen, rows), x, state.spec)
        return outputs_of(decoder(state.spec), {"params": state.params["decoder"]}, selected)

    def select_columns(state: TrainState) -> Selection:
        chosen = allowed_logits(state.params, state)
        scores = jnp.max(jax.nn.softmax(chosen, axis=-1), axis=0)
        return Selection(scores, picks=jnp.argmax(chosen, axis=-1))

    def monitor(state: TrainState) -> dict[str, Array]:
        picks = jnp.argmax(allowed_logits(state.params, state), axis=-1)
        return {
            "unique_percentage": unique_percentage(picks, state.spec.num_units),
            "temperature": temperature(state),
        }

    return Method(
        About(num_features=num_features, takes_groups=True, sparse=True),
        init=init,
        loss=loss,
        optimizer=optax.adam(o.learning_rate, eps=o.adam_epsilon)
        if o.optimizer == "adam"
        else o.optimizer,
        predict=predict,
        select=select_columns,
        monitor=monitor,
        phases=lambda spec: phases(o),
    )


def _check_falls(start: Any, end: Any) -> None:
    if known(start, end) and end > start:
        raise ConfigError(
            f"temperature_end={end} is above temperature_start={start}; choose a temperature "
            "that falls, so that each selector ends with one column"
        )


def phases(options: ConcreteOptions) -> tuple[Phase, ...]:
    """The fall of the temperature, if it falls between epochs only."""
    start, end = options.temperature_start, options.temperature_end
    if options.anneal == "step" or end == start:
        return ()
    falls = Phase(
        name="the temperature falls (anneal='epoch': after each epoch)",
        epochs=2,
        without=f"selectors mix columns as at the beginning (temperature_start={start})",
        instead="anneal='step'",
        kept=False,
    )
    return (falls,)


def by_group(choose: Callable[[Array], Array], x: Array, spec: Spec) -> Array:
    """Applies a choice of K among G groups to all columns of the groups.

    Args:
      choose: ``(B, G) -> (B, K)``.
      x: ``(B, D)``.
      spec: its ``groups`` have at most L columns each.

    Returns:
      ``(B, K L)``, with zeros for groups of fewer columns; ``(B, K)`` without groups.
    """
    if spec.groups is None:
        return choose(x)
    # (L, B, G): the first column of every group, then the second of every group, ...
    parts = jnp.transpose(gather(x.T, spec.groups), (1, 2, 0))
    return jnp.concatenate(list(jax.vmap(choose)(parts)), axis=1)
