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

from fsjax.methods.shared.layers import places
from fsjax.methods.shared.layers.free import (
    DRAWN_AS_MASKS,
    FreePairs,
    Taken,
    best_free,
    random_free,
)
from fsjax.methods.shared.layers.places import Keys
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.connections import Connections, connected, dense
from fsjax.sparsity.topology import (
    Layer,
    Rule,
    choose_dropped,
    cond_with_key,
)

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
    """The layer before the change: keys of its connections, which are dropped, and its shape."""

    keys: Keys
    dropped: Array
    shape: tuple[int, int]

    @property
    def kept(self) -> Taken:
        return Taken(self.keys, ~self.dropped)

    @property
    def wanted(self) -> Array:
        return jnp.sum(self.dropped, dtype=jnp.int32)

    @property
    def most(self) -> int:
        return self.dropped.size


def draw_connections(key: Array, count: int, shape: tuple[int, int]) -> Connections:
    """Draws ``count`` random connections; in small layers, a mask gets the same from this key."""
    drawn = random_free(key, (), jnp.int32(count), count, shape)
    return connected(*places.rows_and_columns(_first(drawn, count), shape), shape)


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
    if drop is drop_rules.random and connections.size <= DRAWN_AS_MASKS:
        mask = dense(layer.mask, connections)
        matrix = Layer(dense(layer.weight, connections), mask)
        dropped = choose_dropped(drop, matrix, fraction, key_drop)
        dropped = dropped[connections.rows, connections.columns]
    else:
        dropped = choose_dropped(drop, layer, fraction, key_drop)
    shape = connections.shape
    old = _Old(places.keys_of(connections.rows, connections.columns, shape), dropped, shape)
    return _merged(connections, old, _grown(grow, old, key_grow, layer, scores or {}))


def drops_connections(drop: Rule) -> bool:
    """Whether a drop rule works on layers that are stored by their connections."""
    return drop.active_only and drop.needs <= {"similarity", "gradient", "search", "state"}


def grows_connections(grow: Rule) -> bool:
    """Whether a grow rule works on layers that are stored by their connections."""
    return all(rule in GROW for rule in grow.between or (grow,))


def _grown(
    grow: Rule, old: _Old, key: Array, layer: Layer, scores: Mapping[str, RowScores]
) -> FreePairs:
    def by(rule: Rule) -> Callable[[Array], FreePairs]:
        ranked = next((scores[field] for field in rule.needs if field in scores), _unranked)
        return lambda key: GROW[rule](old, key, ranked)

    if layer.search is None or grow.between is None:
        return by(grow)(key)
    first, then = grow.between
    return cond_with_key(layer.search, by(then), by(first), key)


def _unranked(rows: Array) -> Array:
    raise TypeError("scores are missing for a rule that ranks connections")


def _random(old: _Old, key: Array, scores: RowScores) -> FreePairs:
    drawn = random_free(key, (old.kept,), old.wanted, old.most, old.shape)
    return _filled(drawn, old.most)


def _best(old: _Old, key: Array, scores: RowScores) -> FreePairs:
    return best_free(scores, old.kept, old.wanted, old.most, old.shape)


def _largest(old: _Old, key: Array, scores: RowScores) -> FreePairs:
    return _best(old, key, lambda rows: jnp.abs(scores(rows)))


def _best_or_random(old: _Old, key: Array, scores: RowScores) -> FreePairs:
    picks = _best(old, key, scores)
    back = places.marked_keys(
        old.keys, old.dropped, places.find_keys(old.keys, picks.keys), picks.keys
    )
    picks = picks._replace(chosen=picks.chosen & ~back)
    left = old.wanted - jnp.sum(picks.chosen, dtype=jnp.int32)
    taken = (old.kept, Taken(*picks))
    return _both(picks, random_free(key, taken, left, old.most, old.shape), old.most)


def _worst_or_random(old: _Old, key: Array, scores: RowScores) -> FreePairs:
    return _best_or_random(old, key, lambda rows: -scores(rows))


#: Implementations of grow rules for lists of connections, by the rule for masks.
GROW: dict[Rule, Callable[[_Old, Array, RowScores], FreePairs]] = {
    grow_rules.random: _random,
    grow_rules.gradient: _largest,
    grow_rules.similar: _best,
    grow_rules.similar_or_random: _best_or_random,
    grow_rules.dissimilar_or_random: _worst_or_random,
}


def _first(picks: FreePairs, count: int) -> Keys:
    """The chosen keys ``(count,)`` in order, padded with ``LAST``."""
    slots = jnp.cumsum(picks.chosen, dtype=jnp.int32) - 1
    slots = jnp.where(picks.chosen, slots, count)
    empty = jnp.full(count, places.LAST)
    return tuple(empty.at[slots].set(key, mode="drop") for key in picks.keys)


def _filled(picks: FreePairs, count: int) -> FreePairs:
    number = jnp.sum(picks.chosen, dtype=jnp.int32)
    return FreePairs(_first(picks, count), jnp.arange(count) < number)


def _both(first: FreePairs, second: FreePairs, count: int) -> FreePairs:
    parts = (places.where(picks.chosen, picks.keys) for picks in (first, second))
    keys = places.ordered(tuple(jnp.concatenate(pair) for pair in zip(*parts, strict=True)))
    number = jnp.sum(first.chosen, dtype=jnp.int32) + jnp.sum(second.chosen, dtype=jnp.int32)
    return FreePairs(tuple(key[:count] for key in keys), jnp.arange(count) < number)


def _merged(connections: Connections, old: _Old, new: FreePairs) -> Change:
    """Merges kept and grown connections in order; positions are computed without sorting."""
    number = old.most
    positions = places.find_keys(old.keys, new.keys)
    back = new.chosen & places.marked_keys(old.keys, old.dropped, positions, new.keys)
    kept_before = jnp.concatenate(
        [jnp.zeros(1, jnp.int32), jnp.cumsum(~old.dropped, dtype=jnp.int32)]
    )
    new_before = jnp.zeros(number + 1, jnp.int32).at[positions].add(new.chosen.astype(jnp.int32))
    new_before = jnp.cumsum(new_before)[:number]
    slots = jnp.where(old.dropped, number, kept_before[:-1] + new_before)
    new_slots = jnp.cumsum(new.chosen, dtype=jnp.int32) - 1 + kept_before[positions]
    new_slots = jnp.where(new.chosen, new_slots, number)
    numbers = jnp.arange(number, dtype=jnp.int32)
    source = jnp.full(number, -1, jnp.int32).at[slots].set(numbers, mode="drop")
    source = source.at[new_slots].set(jnp.where(back, positions, -1), mode="drop")
    kept = source >= 0
    source = jnp.maximum(source, 0)
    keys = tuple(
        before[source].at[new_slots].set(after, mode="drop")
        for before, after in zip(old.keys, new.keys, strict=True)
    )
    rows, columns = places.rows_and_columns(keys, old.shape)
    grown = connections.grown + jnp.sum(~kept, dtype=jnp.int32)
    changed = Connections(rows, columns, grown, (), old.shape)
    return Change(changed, source, kept)
