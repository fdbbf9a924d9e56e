"""One change of a layer that is stored by its connections, with the same rules as for masks.

Drop rules that are marked by :func:`fsjax.sparsity.active_only` are applied to vectors. For grow
rules, :data:`GROW` has implementations without an array of all pairs of neurons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.methods.shared.layers.free_positions import best_free, random_free
from fsjax.methods.shared.layers.position_keys import (
    LAST,
    Keys,
    compress,
    contains,
    count_keys,
    index_in,
    joined,
    keys_of,
    order_of_union,
    rows_and_columns,
)
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.connections import Connections, connected
from fsjax.sparsity.rules import Layer, Rule
from fsjax.sparsity.topology import choose_dropped, cond_with_key

#: Function from int32 numbers of input neurons ``(b,)`` to the scores ``(b, O)`` of a rule.
RowScores = Callable[[Array], Array]


class Change(NamedTuple):
    """Outcome of :func:`rewire_connections`.

    Attributes:
      connections: the new connections, as many as before, without an index.
      source: ``(n,)`` int32, the position of each kept connection among the old ones.
      kept: bool ``(n,)``, false for new connections.
    """

    connections: Connections
    source: Array
    kept: Array


class _Old(NamedTuple):
    """The layer before the change.

    Attributes:
      shape: ``(I, O)``.
      keys: of all connections, ``(n,)``.
      kept: the list of those that stay, ``(n,)``.
      wanted: the number of the others, which are dropped.
    """

    shape: tuple[int, int]
    keys: Keys
    kept: Keys
    wanted: Array

    @property
    def number(self) -> int:
        """Number of connections, before and after the change."""
        return self.keys[0].size


def draw_connections(key: Array, count: int, shape: tuple[int, int]) -> Connections:
    """Draws ``count`` random connections."""
    drawn = random_free(key, (), jnp.int32(count), count, shape)
    return connected(*rows_and_columns(drawn, shape), shape)


def rewire_connections(
    connections: Connections,
    layer: Layer,
    drop: Rule,
    grow: Rule,
    fraction: Array | float,
    key: Array,
    scores: Mapping[str, RowScores] | None = None,
) -> Change:
    """Drops a fraction of the connections of a layer and grows as many.

    Args:
      connections: connections of the layer.
      layer: what the drop rule sees: vectors ``(n,)`` over the connections; the mask is all true.
      drop: drop rule for which :func:`drops_connections` is true.
      grow: a key of :data:`GROW`, or :func:`fsjax.sparsity.grow.switched` between two of them.
      fraction: share of the connections to drop, in [0, 1]; may be traced.
      key: PRNG key.
      scores: scores of any positions for grow rules, by field: ``similarity``, ``gradient``.
    """
    key_drop, key_grow = jax.random.split(key)
    dropped = choose_dropped(drop, layer, fraction, key_drop)
    shape, number = connections.shape, dropped.size
    keys = keys_of(connections.rows, connections.columns, shape)
    kept = compress(keys, ~dropped, number)
    old = _Old(shape, keys, kept, jnp.sum(dropped, dtype=jnp.int32))
    new = _grown(grow, old, key_grow, layer, scores or {})
    order = order_of_union(kept, new, number)
    # Kept connections come from where they were, and so do new ones that were just dropped.
    stayed = compress((jnp.arange(number, dtype=jnp.int32),), ~dropped, number)
    (source,) = joined(stayed, (index_in(keys, new),), order)
    is_kept = source < LAST
    rows, columns = rows_and_columns(joined(kept, new, order), shape)
    grown = connections.grown + jnp.sum(~is_kept, dtype=jnp.int32)
    changed = Connections(rows, columns, grown, (), shape)
    return Change(changed, jnp.where(is_kept, source, 0), is_kept)


def drops_connections(drop: Rule) -> bool:
    """Whether a drop rule works on layers that are stored by their connections."""
    return drop.active_only and drop.needs <= {"similarity", "gradient", "search", "state"}


def grows_connections(grow: Rule) -> bool:
    """Whether a grow rule works on layers that are stored by their connections."""
    return all(rule in GROW for rule in grow.between or (grow,))


def _grown(
    grow: Rule, old: _Old, key: Array, layer: Layer, scores: Mapping[str, RowScores]
) -> Keys:
    def by(rule: Rule) -> Callable[[Array], Keys]:
        ranked = next((scores[field] for field in rule.needs if field in scores), _unranked)
        return lambda key: GROW[rule](old, key, ranked)

    if layer.search is None or grow.between is None:
        return by(grow)(key)
    first, then = grow.between
    return cond_with_key(layer.search, by(then), by(first), key)


def _unranked(rows: Array) -> Array:
    raise TypeError("scores are missing for a rule that ranks connections")


def _random(old: _Old, key: Array, scores: RowScores) -> Keys:
    return random_free(key, (old.kept,), old.wanted, old.number, old.shape)


def _best(old: _Old, key: Array, scores: RowScores) -> Keys:
    return best_free(scores, old.kept, old.wanted, old.number, old.shape)


def _largest(old: _Old, key: Array, scores: RowScores) -> Keys:
    return _best(old, key, lambda rows: jnp.abs(scores(rows)))


def _best_or_random(old: _Old, key: Array, scores: RowScores) -> Keys:
    best = _best(old, key, scores)
    new = compress(best, (best[0] < LAST) & ~contains(old.keys, best), old.number)
    left = old.wanted - count_keys(new)
    others = random_free(key, (old.kept, new), left, old.number, old.shape)
    return joined(new, others, order_of_union(new, others, old.number))


def _worst_or_random(old: _Old, key: Array, scores: RowScores) -> Keys:
    return _best_or_random(old, key, lambda rows: -scores(rows))


#: Implementations of grow rules for lists of connections, by the rule for masks.
GROW: dict[Rule, Callable[[_Old, Array, RowScores], Keys]] = {
    grow_rules.random: _random,
    grow_rules.gradient: _largest,
    grow_rules.similar: _best,
    grow_rules.similar_or_random: _best_or_random,
    grow_rules.dissimilar_or_random: _worst_or_random,
}
