"""The shared body of the concrete selectors: CAE, IP-CAE and GJSD differ in its arguments only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from fsjax import tasks
from fsjax.concrete import (
    Parametrisation,
    exponential_temperature,
    gjsd,
    select,
    select_discrete,
)
from fsjax.concrete.sampling import NOISE
from fsjax.concrete.temperature import ANNEAL
from fsjax.errors import ConfigError, check_whole
from fsjax.groups import gather
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.checks import check_choice
from fsjax.nets import MLP
from fsjax.optimizers import adam
from fsjax.selection import unique_percentage

#: Stands for minus infinity in the logits of columns that may not be selected.
RULED_OUT = -1e9


def concrete_selector(
    name: str,
    logits: Parametrisation,
    num_features: int,
    *,
    hidden: Sequence[int],
    layer_norm: bool,
    dropout: float,
    noise: str,
    anneal: str,
    temperature_start: float,
    temperature_end: float,
    gjsd_weight: float,
    learning_rate: float,
) -> Method:
    """A concrete selector layer with an MLP behind it (Balin et al. 2019; IP-CAE, section 2).

    Args:
      name: the name of the method.
      logits: how the (K, D) logits are held.
      num_features: K, number of selectors.
      hidden: widths of the decoder's hidden layers; empty for a linear decoder.
      layer_norm: LayerNorm before each activation of the decoder.
      dropout: rate in [0, 1) after each activation of the decoder.
      noise: ``row`` or ``batch``: one noise matrix for each row or each batch.
      anneal: ``epoch`` holds the temperature within an epoch, ``step`` lowers it at each step.
      temperature_start: T_0 of eq. 3, positive.
      temperature_end: T_B of eq. 3, positive.
      gjsd_weight: lambda of eq. 11, at least 0; 0 leaves the term out of the program.
      learning_rate: of Adam, positive.

    Returns:
      The method. Its score of a column is the largest probability that any selector gives it.

    Raises:
      ConfigError: for a value outside these ranges.
    """
    check_choice("noise", noise, NOISE)
    check_choice("anneal", anneal, ANNEAL)
    for label, value in (
        ("temperature_start", temperature_start),
        ("temperature_end", temperature_end),
    ):
        if not value > 0:
            raise ConfigError(f"{label}={value}; choose a value above 0")
    if temperature_end > temperature_start:
        raise ConfigError(
            f"temperature_end={temperature_end} is above temperature_start={temperature_start}; "
            "selectors become sharp as the temperature falls"
        )
    if gjsd_weight < 0:
        raise ConfigError(f"gjsd_weight={gjsd_weight}; choose 0 or more")
    if not 0 <= dropout < 1:
        raise ConfigError(f"dropout={dropout}; choose a rate in [0, 1)")
    num_features = check_whole("num_features", num_features)
    for width in hidden:
        check_whole("a width of hidden", width)

    optimizer = adam(learning_rate)
    hyper = {"temperature_start": temperature_start, "temperature_end": temperature_end}
    if gjsd_weight:
        hyper["gjsd_weight"] = gjsd_weight

    def decoder(spec: Spec) -> MLP:
        return MLP(spec.num_outputs, tuple(hidden), layer_norm=layer_norm, dropout=dropout)

    def logits_of(params: PyTree, state: TrainState) -> Array:
        return jnp.where(state.feature_mask, logits.apply(params["selector"]), RULED_OUT)

    def temperature(state: TrainState) -> Array:
        spec = state.spec
        if anneal == "epoch":
            progress = state.epoch / spec.num_epochs
        else:
            progress = state.step / (spec.num_epochs * spec.steps_per_epoch)
        return exponential_temperature(
            progress, state.hyper["temperature_start"], state.hyper["temperature_end"]
        )

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_selector, key_decoder = jax.random.split(key, 3)
        params = {
            "selector": logits.init(key_selector, num_features, spec.num_units),
            "decoder": decoder(spec).init(
                key_decoder, jnp.zeros((1, num_features * largest_group(spec)))
            )["params"],
        }
        return create_state(key_train, spec, params, optimizer, hyper=hyper)

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        key_noise, key_dropout = jax.random.split(key)
        selector_logits = logits_of(params, state)
        selected = by_group(
            lambda x: select(key_noise, selector_logits, x, temperature(state), noise),
            batch.x,
            state.spec,
        )
        outputs = decoder(state.spec).apply(
            {"params": params["decoder"]}, selected, train=True, rngs={"dropout": key_dropout}
        )
        value = tasks.loss(state.spec.task, outputs, batch.y, batch.weight)
        if gjsd_weight:
            # L_lambda = L - lambda D_GJS (eq. 11).
            value = value - state.hyper["gjsd_weight"] * gjsd(selector_logits)
        return value, {}

    def predict(state: TrainState, x: Array) -> Array:
        chosen = logits_of(state.params, state)
        selected = by_group(lambda one: select_discrete(chosen, one), x, state.spec)
        return decoder(state.spec).apply({"params": state.params["decoder"]}, selected)

    def score(state: TrainState) -> Array:
        return jnp.max(jax.nn.softmax(logits_of(state.params, state), axis=-1), axis=0)

    def picks(state: TrainState) -> Array:
        return jnp.argmax(logits_of(state.params, state), axis=-1)

    def monitor(state: TrainState) -> dict[str, Array]:
        return {
            "unique_percentage": unique_percentage(picks(state), state.spec.num_units),
            "temperature": temperature(state),
        }

    return Method(
        name=name,
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        score=score,
        picks=picks,
        monitor=monitor,
        num_features=num_features,
        takes_groups=True,
    )


def largest_group(spec: Spec) -> int:
    """Columns of the largest group; 1 without groups."""
    return 1 if spec.groups is None else max(Counter(spec.groups).values())


def by_group(choose: Callable[[Array], Array], x: Array, spec: Spec) -> Array:
    """What a choice of K gives for the columns of every group.

    Args:
      choose: ``(B, G) -> (B, K)``, the same choice for each of the L columns of a group.
      x: ``(B, D)``.
      spec: with groups or without.

    Returns:
      ``(B, K L)``, with zeros for groups of fewer columns; ``(B, K)`` without groups.
    """
    if spec.groups is None:
        return choose(x)
    # (L, B, G): the first columns of all groups, the second ones, ...
    parts = jnp.transpose(gather(x.T, spec.groups), (1, 2, 0))
    return jnp.concatenate(list(jax.vmap(choose)(parts)), axis=1)
