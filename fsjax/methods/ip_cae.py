"""IP-CAE: indirectly parameterized concrete autoencoders (Nilsson et al., ICML 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.concrete import parametrisation
from fsjax.method import Method
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_choice
from fsjax.methods.concrete import concrete_selector

#: Of the map from embeddings to logits.
WEIGHTS = ("full", "diagonal", "scalar")


@cached_method
def ip_cae(
    num_features: int = 50,
    *,
    weights: str = "full",
    embedding_dim: int | None = None,
    bias: bool = True,
    hidden: Sequence[int] = (200,),
    layer_norm: bool = True,
    dropout: float = 0.0,
    noise: str = "batch",
    anneal: str = "epoch",
    temperature_start: float = 10.0,
    temperature_end: float = 0.01,
    gjsd_weight: float = 0.0,
    learning_rate: float = 1e-3,
) -> Method:
    """A concrete selector whose logits are a learnt map of a learnt embedding (section 2.3).

    Args:
      num_features: K, columns to select.
      weights: ``full`` (eq. 6), ``diagonal`` or ``scalar`` (section 4.2).
      embedding_dim: P. ``None`` takes P = D as the paper does, but at most 1024.
      bias: whether the map has a bias b.
      hidden: widths of the decoder's hidden layers, as a tuple.
      layer_norm: LayerNorm in the decoder: in the authors' code, not in the paper.
      dropout: rate in [0, 1) in the decoder.
      noise: ``batch`` draws one noise matrix per step; ``row`` one for each row, as behind the
        published tables, at several times the cost.
      anneal: lower the temperature once an ``epoch`` or at every ``step``.
      temperature_start: T_0 of eq. 3.
      temperature_end: T_B of eq. 3.
      gjsd_weight: lambda of eq. 11; the paper finds that it adds nothing here.
      learning_rate: of Adam.

    Returns:
      The method; equal arguments return the same object, so nothing is compiled twice.

    Raises:
      ConfigError: for a value outside its range.
    """
    check_choice("weights", weights, WEIGHTS)
    return concrete_selector(
        "ip_cae",
        parametrisation(weights, embedding_dim=embedding_dim, bias=bias),
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
