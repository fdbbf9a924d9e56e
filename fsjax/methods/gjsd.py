"""GJSD: the concrete autoencoder with a diversity term (IP-CAE, section 2.5)."""

from __future__ import annotations

from typing import Annotated, Any

from fsjax.arguments import TERM, Count, NonNegative
from fsjax.method import Method
from fsjax.methods.cae import cae
from fsjax.registry import register


@register(
    estimator="GJSD",
    paper="Nilsson et al., ICML 2024, 2.5",
    optimises="the loss of CAE minus a reward for selectors that differ",
    num_epochs=200,
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.03},
    options=cae,
)
def gjsd(
    num_features: Count = 50, *, gjsd_weight: Annotated[NonNegative, TERM] = 0.05, **options: Any
) -> Method:
    """CAE with a loss that rewards distinct selectors: minus lambda times their GJSD (eq. 11).

    Args:
      num_features: K, the number of columns to select.
      gjsd_weight: lambda, at least 0. The paper (Table 5) uses 0.05 for every classification and
        for the reconstruction of MNIST, Fashion-MNIST and COIL-20, and 0.005 for the
        reconstruction of HAR, ISOLET and Mice.
      **options: as for :func:`fsjax.methods.cae`.

    Returns:
      The method. To combine the term with indirect parametrisation, pass ``gjsd_weight`` to
      :func:`fsjax.methods.ip_cae`.
    """
    return cae(num_features, gjsd_weight=gjsd_weight, **options)
