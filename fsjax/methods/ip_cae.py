"""IP-CAE: indirectly parameterized concrete autoencoders (Nilsson et al., ICML 2024)."""

from __future__ import annotations

from typing import Any, Literal

from fsjax.arguments import Count
from fsjax.concrete import parametrisation
from fsjax.method import Method
from fsjax.methods.shared.concrete import ConcreteOptions, concrete_selector
from fsjax.registry import register


@register(
    estimator="IPCAE",
    paper="Nilsson et al., ICML 2024",
    optimises="the loss of a network behind K relaxed selectors with indirectly learnt logits",
    num_epochs=200,
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.03, "embedding_dim": 5},
    options=ConcreteOptions(),
)
def ip_cae(
    num_features: Count = 50,
    *,
    weights: Literal["full", "diagonal", "scalar"] = "full",
    embedding_dim: Count | None = None,
    bias: bool = True,
    noise: Literal["row", "batch"] = "batch",
    **options: Any,
) -> Method:
    """A concrete selector that learns its logits indirectly (section 2.3).

    The logits are ``psi W + b``: an embedding psi ``(K, P)`` of each selector, and a linear map
    that all selectors share. All three are learnt.

    Args:
      num_features: K, the number of columns to select.
      weights: form of W: ``full`` (eq. 6), ``diagonal`` or ``scalar`` (section 4.2).
      embedding_dim: P, for ``full`` only. ``None`` takes P = D as the paper does, but at most 1024.
      bias: whether the map has a bias b.
      noise: ``batch`` draws one noise matrix per step; ``row`` draws one for each row, as for the
        published tables, at several times the cost.
      **options: those of :class:`fsjax.methods.shared.concrete.ConcreteOptions`; the paper finds
        that the GJSD term adds nothing here.
    """
    return concrete_selector(
        parametrisation(weights, embedding_dim=embedding_dim, bias=bias),
        num_features,
        noise=noise,
        **options,
    )
