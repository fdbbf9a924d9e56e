"""Rules that drop and grow connections, as values, and what they may look at.

Every method of dynamic sparse training is a pair of rules (``drop.py``, ``grow.py``). A rule ranks
or chooses connections; :func:`fsjax.sparsity.rewire` decides how many change. A rule returns, in
the shape of the weights, either

- **scores**, floating point or uint32: the active connections with the lowest scores go, the
  missing ones with the highest come; or
- **a choice**, bool: the connections to drop, or to grow, for rules that choose in another way.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from fsjax.errors import ConfigError, check_choice


class Layer(NamedTuple):
    """What the rules may look at; :func:`needs` says which of the optional fields one needs.

    To a type checker an optional field may be ``None``; :meth:`needed` gives it to rules that
    declare it.

    Attributes:
      weight: ``(..., O)`` weights, 0 where inactive.
      mask: bool of the same shape, the active connections.
      number: of the layer among those with masks, from 0 in the order of their names.
      gradient: the dense gradient of the loss, also at inactive connections.
      similarity: similarity of the two neurons of every connection, in the shape of the weight.
      importance: importance of neurons, broadcastable to the weight: ``(I, 1)`` or ``(1, O)``.
      search: scalar bool, whether :func:`fsjax.sparsity.grow.switched` searches at random.
      state: what else a rule of one's own looks at: the train state of a method, or ``None``.
      hessian_gradient: the Hessian of the loss times its gradient, in the shape of the weight.
      momentum: running mean of the gradients, of missing connections too, in the same shape.
      movement: sum of ``-weight x gradient`` over the steps so far, in the same shape.

    Examples:
      >>> keys = jax.random.split(jax.random.key(0), 5)
      >>> mask = sparsity.random_mask(keys[0], (20, 10), 40)
      >>> layer = sparsity.Layer(jax.random.normal(keys[1], (20, 10)) * mask, mask)
      >>> rewired = sparsity.rewire(
      ...     layer, sparsity.drop.magnitude, sparsity.grow.random, 0.3, keys[2]
      ... )  # a sparsity.Rewired
      >>> print(rewired.mask.sum(), rewired.new.sum())  # 40 connections, 12 of them new
      >>> # the two halves
      >>> dropped = sparsity.choose_dropped(sparsity.drop.magnitude, layer, 0.3, keys[3])
      >>> grown = sparsity.choose_grown(sparsity.grow.random, layer, dropped, keys[4])
    """

    weight: Array
    mask: Array
    number: int = 0
    gradient: Array | None = None
    similarity: Array | None = None
    importance: Array | None = None
    search: Array | None = None
    state: Any = None
    hessian_gradient: Array | None = None
    momentum: Array | None = None
    movement: Array | None = None

    def needed(self, field: str) -> Array:
        """An optional field that the rule needs, as :func:`needs` says.

        Raises:
          ConfigError: where the layer has none.
        """
        values = getattr(self, field)
        if values is None:
            raise ConfigError(f"the layer has no {field}, which its rule needs")
        return values


#: ``(layer, fraction, key) -> array``: scores, of which the lowest fraction of the active
#: connections goes, or a choice of connections to drop. A choice may have any number.
DropRule = Callable[[Layer, Array, Array], Array]

#: ``(layer, dropped, key) -> array``: scores, of which the highest missing connections come, or a
#: choice of as many as were dropped. ``dropped`` is bool; these connections may come back at once.
GrowRule = Callable[[Layer, Array, Array], Array]

#: What :func:`needs` may name.
OPTIONAL_FIELDS = (
    "gradient",
    "similarity",
    "importance",
    "hessian_gradient",
    "momentum",
    "movement",
    "search",
    "state",
)

#: What a rule takes over from its function, for documentation tools and for pickle.
_FUNCTION_ATTRIBUTES = ("__module__", "__name__", "__qualname__", "__doc__")


@dataclasses.dataclass(frozen=True)
class Rule:
    """A drop or grow rule as a value: a function, and what the library has to know about it.

    A rule is called like its function. :func:`as_rule` makes one of a plain function.

    Attributes:
      function: ``(layer, fraction, key)`` or ``(layer, dropped, key)`` to scores or a choice.
      name: what messages call the rule.
      needs: the optional fields of :class:`Layer` that it reads.
      active_only: whether a drop rule looks at active connections alone, see :func:`active_only`.
      may_shrink: whether the choice of a grow rule may be too small, see :func:`may_shrink`.
      between: the rules that :func:`fsjax.sparsity.grow.switched` switches between.
    """

    function: Callable[[Layer, Any, Array], Array]
    name: str
    needs: frozenset[str] = frozenset()
    active_only: bool = False
    may_shrink: bool = False
    between: tuple[Rule, Rule] | None = None

    def __post_init__(self) -> None:
        function = inspect.unwrap(self.function)
        if inspect.isfunction(function):
            # As functools.update_wrapper, which cannot set attributes of a frozen instance.
            vars(self).update({name: getattr(function, name) for name in _FUNCTION_ATTRIBUTES})
            vars(self).update(__wrapped__=function)

    def __call__(self, layer: Layer, fraction_or_dropped: Array | float, key: Array, /) -> Array:
        """Calls the function."""
        return self.function(layer, fraction_or_dropped, key)

    def __reduce__(self) -> str:
        """A decorated function is pickled by its name, like any function."""
        return vars(self).get("__qualname__", self.name)


def as_rule(function: DropRule | GrowRule | Rule) -> Rule:
    """The rule that a function is: rules are returned as they are, plain functions need nothing.

    Whatever takes a rule from users calls this, so that all other code handles a :class:`Rule`. It
    is also the decorator of rules that need nothing.
    """
    if isinstance(function, Rule):
        return function
    if isinstance(function, functools.partial):
        rule = as_rule(function.func)
        partial = functools.partial(rule.function, *function.args, **function.keywords)
        return dataclasses.replace(rule, function=partial)
    named = inspect.unwrap(function)
    is_function = inspect.isroutine(named)
    return Rule(function, named.__name__ if is_function else type(function).__name__)


def needs(*fields: str) -> Callable[[DropRule | GrowRule], Rule]:
    """Decorates a rule with the optional fields of :class:`Layer` that it needs.

    Raises:
      ConfigError: for a name that is not such a field.
    """
    for field in fields:
        check_choice("needs", field, OPTIONAL_FIELDS)

    def decorate(rule: DropRule | GrowRule) -> Rule:
        return dataclasses.replace(as_rule(rule), needs=frozenset(fields))

    return decorate


def may_shrink(rule: GrowRule) -> Rule:
    """Decorates a grow rule whose choice may be smaller than the number that was dropped.

    The layer then has fewer connections from there on (NeuroFS). Without this decorator a choice
    that is too small is filled up.
    """
    return dataclasses.replace(as_rule(rule), may_shrink=True)


def active_only(rule: DropRule) -> Rule:
    """Decorates a drop rule that looks at active connections alone, whatever their arrangement.

    Such a rule also works on a vector of the values of all connections, so it can rewire layers
    that store no matrix. A rule that sums the weights of each neuron needs the matrix.
    """
    return dataclasses.replace(as_rule(rule), active_only=True)


class Rules(NamedTuple):
    """The drop and the grow rule of a change; ``None`` as in :func:`rewire`."""

    drop: Rule | None
    grow: Rule | None

    @property
    def needs(self) -> frozenset[str]:
        """The optional fields of :class:`Layer` that either of them needs."""
        return frozenset[str]().union(*(rule.needs for rule in self if rule is not None))

    @property
    def keep_counts(self) -> bool:
        """Whether a change leaves the number of connections of a layer as it is."""
        return self.drop is None or (self.grow is not None and not self.grow.may_shrink)


def as_rules(drop: DropRule | None, grow: GrowRule | None) -> Rules:
    """The rules that two functions are."""
    return Rules(*(rule if rule is None else as_rule(rule) for rule in (drop, grow)))
