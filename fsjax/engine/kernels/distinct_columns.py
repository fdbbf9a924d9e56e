"""The selection of exactly K distinct columns, and the percentage of unique picks."""

import jax
import jax.numpy as jnp

Array = jax.Array


def unique_percentage(picks: Array, num_features: int) -> Array:
    """Percentage of distinct columns among the picks (IP-CAE, definition 2.1).

    Args:
      picks: ``(K,)`` selected columns, possibly with duplicates.
      num_features: D.

    Returns:
      Scalar in percent, in (0, 100].
    """
    chosen = jnp.zeros((num_features,), jnp.float32).at[picks].set(1.0)
    # Exactly 100 without duplicates: compilers multiply by 1 / K, which is rounded.
    return 100.0 - 100.0 * (picks.shape[0] - jnp.sum(chosen)) / picks.shape[0]


def distinct_top_k(
    scores: Array, k: int, picks: Array | None = None, feature_mask: Array | None = None
) -> Array:
    """Exactly k distinct columns in order of importance.

    The method's own picks come first, ordered by score; duplicates among them are replaced by the
    next best columns by score. Columns that ``feature_mask`` excludes (constant ones) come last,
    so they are selected only if there are fewer than k others.

    Args:
      scores: ``(D,)``; NaN counts as the lowest.
      k: number of columns, 1 to D.
      picks: ``(K,)`` columns selected by the method, or ``None`` to use the scores only.
      feature_mask: ``(D,)`` bool, true where a column may be selected; ``None`` allows all.

    Returns:
      ``(k,)`` int32, distinct. Ties go to the lower index.
    """
    scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
    tier = jnp.zeros(scores.shape, jnp.int32)
    if picks is not None:
        tier = tier.at[picks].set(1)
    if feature_mask is not None:
        tier = jnp.where(feature_mask, tier, -1)
    # Sorted by tier, then by score; lexsort is stable, so equal scores keep the column order.
    order = jnp.lexsort((-scores, -tier))
    return order[:k].astype(jnp.int32)
