"""CAE: the concrete autoencoder (Balin et al. 2019), as the baseline of IP-CAE runs it."""

from __future__ import annotations

from typing import Any, Literal

from fsjax.arguments import Count
from fsjax.concrete import parametrisation
from fsjax.method import Method
from fsjax.methods.shared.concrete import ConcreteOptions, concrete_selector
from fsjax.registry import register


@register(
    estimator="CAE",
    paper="Balın et al., ICML 2019",
    optimises="the loss of a network behind K relaxed selectors",
    num_epochs=200,
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.03},
    options=ConcreteOptions(),
)
def cae(
    num_features: Count = 50,
    *,
    logits_init: Literal["near_zero", "glorot_normal", "glorot_uniform"] = "near_zero",
    **options: Any,
) -> Method:
    """The concrete autoencoder: K selectors whose logits are parameters (IP-CAE, section 2.1).

    The defaults are those with which the IP-CAE paper ran its CAE baseline. The original package
    uses ``noise="batch", anneal="step", temperature_end=0.1, logits_init="glorot_normal",
    layer_norm=False, adam_epsilon=1e-7``.

    Args:
      num_features: K, the number of columns to select.
      logits_init: initial logits, ``near_zero``, ``glorot_normal`` or ``glorot_uniform``.
      **options: those of :class:`fsjax.methods.shared.concrete.ConcreteOptions`.
    """
    return concrete_selector(
        parametrisation("direct", logits_init=logits_init), num_features, **options
    )
