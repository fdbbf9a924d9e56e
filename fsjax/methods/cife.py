"""CIFE (Lin and Tang, ECCV 2006): conditional infomax feature extraction, as a greedy filter."""

from __future__ import annotations

import numpy as np
from jax import Array

from fsjax.arguments import Count
from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method
from fsjax.methods.shared.greedy_information import greedy_scores
from fsjax.methods.shared.on_host import on_host
from fsjax.registry import register


def cife_scores(
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    *,
    depth: int = 200,
    bins: int | None = None,
) -> np.ndarray:
    """Greedy ranking by ``J(f) = I(f; y) - sum_j (I(f_j; f) - I(f_j; f | y))``.

    The sum is over the columns that were chosen before. Entropies are plug-in estimates in bits.

    Args:
      x: ``(N, D)``.
      y: ``(N,)`` classes.
      weight: ``(N,)`` positive weights of the rows.
      depth, bins: as :func:`cife` has them.

    Returns:
      ``(D,)``, as :func:`cife` has them.
    """
    return greedy_scores(x, y, weight, depth=depth, bins=bins, merge=np.add)


@register(
    estimator="CIFE",
    paper="Lin and Tang, ECCV 2006",
    optimises="nothing: information on the labels, given the columns chosen before",
    small={"bins": 4},
)
def cife(*, depth: Count = 200, bins: Count | None = 5) -> Method:
    """Conditional infomax: what a column tells of the class beside those chosen before it.

    Columns are chosen one after another by their information on the class, minus what they share
    with each chosen column, plus what they share with it within the classes. Each bin, or each
    distinct value, is a symbol.

    On Madelon with K = 20 and the values as they are, a support vector machine has 54.50 %, as
    published (WAST, Table 2).

    Args:
      depth: columns that are chosen so; the rest follows by its own information on the class.
      bins: equally filled bins of each column; ``None`` takes the values as they are, as the
        papers do, where continuous columns all tell everything.

    Returns:
      The method, for classification. Scores are ``depth`` for the first column to 1 for the last
      one chosen, and from 0 to below 1 for the rest.

    Raises:
      ConfigError: for a value outside its range.
    """

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del key, spec
        return on_host(lambda *rows: cife_scores(*rows, depth=depth, bins=bins), data)

    return filter_method(scores, ("classification",))
