"""Checks of the contract of drop and grow rules: ``check_rule(rule)``, for your own rules too."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError
from fsjax.sparsity.rules import DropRule, GrowRule, Layer, Rule, as_rule
from fsjax.sparsity.topology import choose_dropped, choose_grown

#: The kind of a rule, by the name of its second parameter.
_KINDS = {"fraction": "drop", "dropped": "grow"}

#: Smallest test layer, in pairs of neurons. In smaller ones a wrong count could pass unnoticed.
_MIN_SIZE = 20

#: How the values of a layer are drawn.
_DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "continuous": lambda rng, shape: rng.normal(size=shape),
    "tied": lambda rng, shape: rng.integers(-2, 3, shape),
    "zero": lambda rng, shape: np.zeros(shape),
}

_FRACTIONS = (0.0, 0.2, 0.5, 0.8, 1.0)

#: Relative tolerance of scores, because sums may be computed in another order.
_RTOL = 1e-4


class _Cases(NamedTuple):
    """Test layers, stacked along axis 0.

    Attributes:
      fields: fields of the layers by name, those that the rule declares.
      second: the second argument of the rule: fractions, or bool arrays of dropped connections.
      candidates: bool, the connections that the rule may choose.
      untied: which of the layers have values without ties.
    """

    fields: dict[str, np.ndarray]
    second: np.ndarray
    candidates: np.ndarray
    untied: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Subject:
    """The rule that is checked, and what its test layers look like."""

    rule: Rule
    kind: str
    shape: tuple[int, ...]
    importance: tuple[int, ...]
    state: Any

    def __str__(self) -> str:
        return f"the {self.kind} rule {self.rule.name}"

    def answer(self, fields: dict[str, Any], second: Array, key: Array) -> Array:
        """What the rule returns, if it is a result that a change accepts."""
        layer = Layer(**fields, state=self.state)
        picks = self.rule(layer, second, key)
        choose = choose_dropped if self.kind == "drop" else choose_grown
        choose(dataclasses.replace(self.rule, function=lambda *_: picks), layer, second, key)
        return picks

    def answers(self, run: Callable[..., Any], cases: _Cases, seed: int = 1) -> np.ndarray:
        """``run``, an :meth:`answer` of all layers; errors become sentences."""
        keys = jax.random.split(jax.random.key(seed), len(cases.untied))
        try:
            return np.asarray(run(cases.fields, cases.second, keys))
        except jax.errors.KeyReuseError as error:
            raise AssertionError(f"{self} uses its key twice; split the key") from error
        except ConfigError as error:
            raise AssertionError(str(error)) from error
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            raise AssertionError(
                f"{self} raises {type(error).__name__} under jax.jit and vmap: {first} (fields of "
                "the layer that a rule does not declare with @fsjax.sparsity.needs are None)"
            ) from error


def check_rule(
    rule: DropRule | GrowRule,
    kind: Literal["drop", "grow"] | None = None,
    *,
    shape: Sequence[int] = (6, 5),
    importance: Literal["inputs", "outputs"] = "inputs",
    equivariant: bool = True,
    state: Any = None,
) -> None:
    """Checks that a rule keeps the contract of :mod:`fsjax.sparsity.rules`.

    The rule is called inside ``jit`` and ``vmap`` on layers with continuous, tied and all-zero
    values, with one to all of the connections active, for fractions from 0 to 1. It must

    - return scores, not NaN, or a choice in the shape of the weights, which may be float32 or
      bfloat16;
    - read only fields of the layer that it declares (:func:`fsjax.sparsity.needs`);
    - mark only allowed connections in a choice, and to grow exactly as many as were dropped;
    - return the same result for the same key, and use each key only once;
    - return permuted scores if the neurons are permuted, unless it is random.

    Args:
      rule: drop rule or grow rule.
      kind: ``"drop"`` or ``"grow"``; by default, the name of the rule's second parameter decides,
        ``fraction`` or ``dropped``.
      shape: shape of the layers, at least two axes and 20 entries; ``(3, 3, 2, 4)``, for example,
        checks the rule on kernels of convolutions.
      importance: whether a rule that needs the importance of neurons gets that of the
        ``"inputs"``, ``(I, 1)``, or of the ``"outputs"``, ``(1, O)``.
      equivariant: whether the result must not depend on the positions of neurons.
      state: the train state, for rules that need it.

    Raises:
      AssertionError: if the rule breaks the contract; the message says in one sentence how.
      ConfigError: if an argument of this function is invalid.

    Examples:
      >>> @sparsity.active_only
      ... @sparsity.needs("gradient")
      ... def least_felt(layer, fraction, key):
      ...     return jnp.abs(layer.weight * layer.gradient)
      >>> @sparsity.may_shrink
      ... def few(layer, dropped, key):
      ...     return sparsity.grow.random(layer, dropped, key)
      >>> sparsity.testing.check_rule(least_felt)
    """
    subject = _subject(as_rule(rule), kind, shape, importance, state)
    cases = _random_cases(subject)

    def traced_anew() -> Callable[..., Any]:
        return jax.jit(jax.vmap(lambda *args: subject.answer(*args)))

    with jax.debug_key_reuse(True):
        run = traced_anew()
        picks = subject.answers(run, cases)
        half = {"weight": cases.fields["weight"].astype(jnp.bfloat16)}
        subject.answers(run, cases._replace(fields=cases.fields | half))
        if picks.dtype == bool:
            _check_choice(subject, cases, picks)
        elif np.isnan(picks[cases.candidates]).any():
            raise AssertionError(f"{subject} returns NaN as the score of connections it may choose")
        if not _close(subject.answers(traced_anew(), cases), picks):
            raise AssertionError(
                f"{subject} returns another result when it is traced again; draw random numbers "
                "only from the key that it is given"
            )
        if equivariant and np.array_equal(subject.answers(run, cases, seed=2), picks):
            moved = _permuted(cases)
            _check_order(subject, moved, _permuted_leaf(picks), subject.answers(run, moved))


def _subject(
    rule: Rule, kind: str | None, shape: Sequence[int], importance: str, state: Any
) -> _Subject:
    check(Literal["drop", "grow"], kind=kind or "drop")
    check(Literal["inputs", "outputs"], importance=importance)
    if len(shape) < 2 or math.prod(shape) < _MIN_SIZE:
        raise ConfigError(f"shape={tuple(shape)}; choose at least two axes and {_MIN_SIZE} entries")
    if kind is None:
        parameters = [*inspect.signature(rule.function).parameters]
        kind = _KINDS.get(parameters[1] if len(parameters) > 1 else "")
        if kind is None:
            raise ConfigError(
                f"{rule.name}({', '.join(parameters)}) could be a drop or a grow rule; call its "
                "second parameter fraction or dropped, or pass kind='drop' or kind='grow'"
            )
    if "state" in rule.needs and state is None:
        raise ConfigError(f"{rule.name} needs the state; pass state=")
    axis = len(shape) - (2 if importance == "inputs" else 1)
    widths = tuple(size if number == axis else 1 for number, size in enumerate(shape))
    return _Subject(rule, kind, tuple(shape), widths, state)


def _random_cases(subject: _Subject) -> _Cases:
    """Every draw and fraction, with one to all of the connections active, and all fields."""
    rng, shape, size = np.random.default_rng(0), subject.shape, math.prod(subject.shape)
    numbers = (1, 2, size // 3, size // 2, size - 1, size)
    settings = list(itertools.product(numbers, _DRAWS, _FRACTIONS))

    def values(shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([_DRAWS[draw](rng, shape) for _, draw, _ in settings]).astype(np.float32)

    mask = np.stack([(rng.permutation(size) < n).reshape(shape) for n, _, _ in settings])
    fields = {
        "weight": np.where(mask, values(shape), np.float32(0)),
        "mask": mask,
        "similarity": np.abs(values(shape)),
        "importance": np.abs(values(subject.importance)),
        "search": rng.random(len(settings)) < 0.5,
        **{
            name: values(shape) for name in ("gradient", "hessian_gradient", "momentum", "movement")
        },
    }
    declared = {"weight", "mask"} | subject.rule.needs
    second, candidates = np.asarray([fraction for *_, fraction in settings], np.float32), mask
    if subject.kind == "grow":
        number = np.floor(second * mask.reshape(len(mask), -1).sum(1) + 1e-3)
        strength = np.where(mask, np.abs(fields["weight"]), np.inf).reshape(len(mask), -1)
        ranks = strength.argsort(axis=1, kind="stable").argsort(axis=1)
        second = (ranks < number[:, None]).reshape(mask.shape)
        candidates = ~mask | second
    return _Cases(
        {name: leaf for name, leaf in fields.items() if name in declared},
        second,
        candidates,
        np.asarray([draw == "continuous" for _, draw, _ in settings]),
    )


def _permuted_leaf(leaf: np.ndarray) -> np.ndarray:
    """An array of all layers with their neurons in another order; numbers as they are."""
    if leaf.ndim <= 2:
        return leaf
    rows, columns = (
        np.random.default_rng(3 + axis).permutation(leaf.shape[axis]) for axis in (-2, -1)
    )
    return leaf[..., rows, :][..., columns]


def _permuted(cases: _Cases) -> _Cases:
    """The layers with their neurons in another order."""
    return jax.tree.map(_permuted_leaf, cases)


def _check_choice(subject: _Subject, cases: _Cases, picks: np.ndarray) -> None:
    """Checks that a choice marks only candidates, and as many as were dropped."""
    axes = tuple(range(1, picks.ndim))
    outside = int((picks & ~cases.candidates).sum(axes).max())
    if outside:
        state = "not active" if subject.kind == "drop" else "already active"
        raise AssertionError(f"{subject} marks {outside} connections that are {state}")
    if subject.kind == "drop":
        return
    marked, wanted = picks.sum(axes), cases.second.sum(axes)
    correct = marked <= wanted if subject.rule.may_shrink else marked == wanted
    if not correct.all():
        worst = int(np.argmax(np.abs(marked - wanted)))
        raise AssertionError(
            f"{subject} marks {marked[worst]} connections where {wanted[worst]} were dropped; mark "
            "that many, or return scores"
        )


def _check_order(subject: _Subject, moved: _Cases, before: np.ndarray, after: np.ndarray) -> None:
    """Checks that moved neurons get moved scores, or the same number of connections."""
    untied, candidates = moved.untied, moved.candidates[moved.untied]
    before, after = before[untied], after[untied]
    if before.dtype == bool:
        # A rule that ranks neurons may choose among the connections of a neuron by position.
        same = any(np.array_equal(before.sum(axis), after.sum(axis)) for axis in (-1, -2))
    else:
        same = _close(after[candidates], before[candidates])
    if not same:
        raise AssertionError(
            f"{subject} depends on the position of neurons: its result changes if they are "
            "permuted; draw random numbers from the key, or pass equivariant=False"
        )


def _close(values: np.ndarray, others: np.ndarray) -> bool:
    if values.dtype == bool:
        return np.array_equal(values, others)
    scale = float(np.max(np.abs(others), initial=0.0, where=np.isfinite(others)))
    return np.allclose(values, others, rtol=_RTOL, atol=_RTOL * scale, equal_nan=True)
