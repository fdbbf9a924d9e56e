"""CAE: the concrete autoencoder (Balin et al. 2019), as the baseline of IP-CAE runs it."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.concrete import parametrisation
from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.concrete import concrete_selector


@cached_method
def cae(
    num_features: int = 50,
    *,
    hidden: Sequence[int] = (200,),
    layer_norm: bool = True,
    dropout: float = 0.0,
    noise: str = "row",
    anneal: str = "epoch",
    temperature_start: float = 10.0,
    temperature_end: float = 0.01,
    logits_init: str = "near_zero",
    gjsd_weight: float = 0.0,
    learning_rate: float = 1e-3,
) -> Method:
    """The concrete autoencoder: logits learnt directly (IP-CAE, section 2.1).

    The defaults are those behind the published CAE rows of the IP-CAE paper. The original
    package differs: ``noise="batch", anneal="step", temperature_end=0.1,
    logits_init="glorot_normal", layer_norm=False``.

    Args:
      num_features: K, columns to select.
      hidden: widths of the decoder's hidden layers, as a tuple.
      layer_norm: LayerNorm in the decoder: in the authors' code, not in the paper.
      dropout: rate in [0, 1) in the decoder.
      noise: ``row`` or ``batch``: one noise matrix for each row (published tables) or each batch
        (the original CAE; several times cheaper, but it costs CAE accuracy).
      anneal: lower the temperature once an ``epoch`` or at every ``step``.
      temperature_start: T_0 of eq. 3.
      temperature_end: T_B of eq. 3.
      logits_init: ``near_zero``, ``glorot_normal`` or ``glorot_uniform``.
      gjsd_weight: lambda of eq. 11.
      learning_rate: of Adam.

    Returns:
      The method; equal arguments return the same object, so nothing is compiled twice.

    Raises:
      ConfigError: for a value outside its range.
    """
    return concrete_selector(
        "cae",
        parametrisation("direct", logits_init=logits_init),
        num_features,
        hidden=hidden,
        layer_norm=layer_norm,
        dropout=dropout,
        noise=noise,
        anneal=anneal,
        temperature_start=temperature_start,
        temperature_end=temperature_end,
        gjsd_weight=gjsd_weight,
        learning_rate=learning_rate,
    )
