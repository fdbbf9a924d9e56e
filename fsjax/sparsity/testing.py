"""The contract of a drop or a grow rule, for ours and for yours: ``check_rule(rule)``."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.topology import (
    DropRule,
    GrowRule,
    Layer,
    choose_dropped,
    choose_grown,
    is_active_only,
    may_shrink,
    needs_of,
    rewire,
    rule_name,
    shrinks,
)

Kind = Literal["drop", "grow"]

#: Fields of a layer by name; the others are ``None``.
Fields = dict[str, Any]

#: The second parameter of a rule, by which its kind is known.
SECOND: dict[str, Kind] = {"fraction": "drop", "dropped": "grow"}

#: How the values of a layer are drawn.
DRAWS = ("continuous", "tied", "zero")

FRACTIONS = (0.0, 0.2, 0.5, 0.8, 1.0)

#: Fewest connections of a layer, so that numbers of them tell rules apart.
SMALLEST = 20

#: Changes of the topology in a row.
CHANGES = 3

#: Layers of which vectors and matrices of connections are compared.
VECTORS = 6

#: Between scores of which some sums are in another order.
RTOL = 1e-4


@dataclass(frozen=True)
class _Subject:
    """The rule that is checked, and the layers that it is checked on.

    Attributes:
      rule: drop or grow rule.
      kind: which of both.
      shape: of the weights.
      importance: the shape of the importance of neurons.
      state: of the layers.
    """

    rule: DropRule | GrowRule
    kind: Kind
    shape: tuple[int, ...]
    importance: tuple[int, ...]
    state: Any

    def __str__(self) -> str:
        return f"the {self.kind} rule {rule_name(self.rule)}"

    @property
    def fields(self) -> set[str]:
        """What the rule gets of a layer."""
        return {"weight", "mask"} | needs_of(self.rule) - {"state"}

    def answer(self, fields: Fields, second: Array, key: Array) -> tuple[Array, Array]:
        """What the rule returns for a layer, and the connections that are chosen by it."""
        # The number of the layer stays a Python number, also inside vmap.
        layer = Layer(**fields, state=self.state)
        picks = self.rule(layer, second, key)

        def returned(*_: Any) -> Array:
            return picks

        returned.__name__ = rule_name(self.rule)
        if self.kind == "drop":
            return picks, choose_dropped(returned, layer, second, key)
        if shrinks(self.rule):
            returned = may_shrink(returned)
        return picks, choose_grown(returned, layer, second, key)


@dataclass(frozen=True)
class _Cases:
    """Layers, stacked along axis 0, and what the rule is called with.

    Attributes:
      fields: of the layers.
      second: fractions, or bool the connections that were dropped.
      fractions: shares of the active connections that are dropped.
      draws: names of :data:`DRAWS`.
    """

    fields: Fields
    second: np.ndarray
    fractions: np.ndarray
    draws: np.ndarray

    def keys(self, seed: int) -> Array:
        """A key for each case."""
        return jax.random.split(jax.random.key(seed), len(self.draws))

    @property
    def candidates(self) -> np.ndarray:
        """Connections that may be chosen."""
        mask = self.fields["mask"]
        return ~mask | self.second if self.second.dtype == bool else mask


def check_rule(
    rule: DropRule | GrowRule,
    kind: Kind | None = None,
    *,
    shape: Sequence[int] = (6, 5),
    importance: Literal["inputs", "outputs"] = "inputs",
    equivariant: bool = True,
    state: Any = None,
) -> None:
    """Checks that a rule keeps the contract of :mod:`fsjax.sparsity.topology`.

    It is called on layers with continuous, tied and all-zero values, with one connection up to all
    of them, for fractions from 0 to 1. It has to

    - return scores or a choice in the shape of the weights, of float32 and of bfloat16;
    - say which optional fields of the layer it reads;
    - return finite scores, or a choice that marks allowed connections alone, in the right number;
    - drop more connections when the fraction is larger;
    - keep the number of connections in changes inside ``jit``, ``vmap`` and ``scan``;
    - answer the same to the same key, and use each key once;
    - give permuted neurons their permuted scores, unless it draws at random;
    - choose the same of a vector of connections as of a matrix, if it is marked by
      :func:`fsjax.sparsity.active_only`.

    Args:
      rule: drop rule or grow rule.
      kind: ``"drop"`` or ``"grow"``; by default by the name of the second parameter of the rule,
        ``fraction`` or ``dropped``.
      shape: of the layers, two axes or more and at least 20 connections; ``(3, 3, 2, 4)`` for
        kernels of convolutions.
      importance: whose importance a rule that needs it gets: ``(I, 1)`` or ``(1, O)``.
      equivariant: whether the position of a neuron must not matter.
      state: the train state, for rules that need it.

    Raises:
      AssertionError: with what is wrong, in one sentence.
      ConfigError: for an argument of this function.
    """
    subject = _subject(rule, kind, shape, importance, state)
    with jax.debug_key_reuse(True):
        _check_types(subject)
        cases = _cases(subject)
        answers = _batched(subject)
        picks, chosen = answers(cases, 1)
        if picks.dtype == bool:
            _check_choice(subject, cases, picks)
        else:
            _check_finite(subject, cases, picks)
        _check_again(subject, cases, picks)
        if subject.kind == "drop":
            _check_fraction(subject, cases, chosen)
        _check_counts(subject, cases)
        random = not np.array_equal(answers(cases, 2)[1], chosen)
        if equivariant and not random:
            _check_order(subject, cases, answers)
        if subject.kind == "drop" and is_active_only(rule):
            _check_vectors(subject, cases, chosen, random)


def _subject(
    rule: DropRule | GrowRule,
    kind: Kind | None,
    shape: Sequence[int],
    importance: Literal["inputs", "outputs"],
    state: Any,
) -> _Subject:
    check(Literal["drop", "grow"], kind=kind or "drop")
    check(Literal["inputs", "outputs"], importance=importance)
    if len(shape) < 2 or math.prod(shape) < SMALLEST:
        raise ConfigError(
            f"shape={tuple(shape)}; choose two axes or more, with at least {SMALLEST} connections"
        )
    if kind is None:
        parameters = list(inspect.signature(rule).parameters)
        second = parameters[1] if len(parameters) > 1 else ""
        if second not in SECOND:
            raise ConfigError(
                f"{rule_name(rule)}({', '.join(parameters)}) may be a drop or a grow rule; call "
                "its second parameter fraction or dropped, or pass kind='drop' or kind='grow'"
            )
        kind = SECOND[second]
    if "state" in needs_of(rule) and state is None:
        raise ConfigError(f"{rule_name(rule)} needs the state; pass state=")
    widths = [1] * len(shape)
    axis = -2 if importance == "inputs" else -1
    widths[axis] = shape[axis]
    return _Subject(rule, kind, tuple(shape), tuple(widths), state)


def _require(holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise AssertionError(message)


@contextlib.contextmanager
def _as_assertions(subject: _Subject) -> Iterator[None]:
    """Turns errors of a rule into an AssertionError of one sentence."""
    try:
        yield
    except jax.errors.KeyReuseError as error:
        raise AssertionError(f"{subject} uses its key twice; split it") from error
    except ConfigError as error:
        raise AssertionError(str(error)) from error
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise AssertionError(
            f"{subject} fails inside JAX with {type(error).__name__}: {first}"
        ) from error


def _all_fields(
    shape: tuple[int, ...],
    importance: tuple[int, ...],
    rng: np.random.Generator,
    number: int,
    draw: str,
) -> Fields:
    """A layer with a number of active connections."""
    mask = (rng.permutation(math.prod(shape)) < number).reshape(shape)

    def values(shape: tuple[int, ...]) -> np.ndarray:
        drawn = {
            "continuous": rng.normal(size=shape),
            "tied": rng.integers(-2, 3, shape),
            "zero": np.zeros(shape),
        }
        return drawn[draw].astype(np.float32)

    return {
        "weight": np.where(mask, values(shape), np.float32(0)),
        "mask": mask,
        "gradient": values(shape),
        "similarity": np.abs(values(shape)),
        "importance": np.abs(values(importance)),
        "search": np.asarray(rng.random() < 0.5),
        "hessian_gradient": values(shape),
        "momentum": values(shape),
    }


def _cases(subject: _Subject) -> _Cases:
    """Every draw and fraction with numbers of connections from one to all of them."""
    rng, size = np.random.default_rng(0), math.prod(subject.shape)
    numbers = (1, 2, size // 3, size // 2, size - 1, size)
    drawn = [(n, draw, fraction) for n in numbers for draw in DRAWS for fraction in FRACTIONS]
    layers = [
        _all_fields(subject.shape, subject.importance, rng, number, draw)
        for number, draw, _ in drawn
    ]
    fractions = np.asarray([fraction for *_, fraction in drawn], np.float32)
    second = fractions
    if subject.kind == "grow":
        second = np.stack([_smallest(*pair) for pair in zip(layers, fractions, strict=True)])
    fields = {name: np.stack([layer[name] for layer in layers]) for name in subject.fields}
    return _Cases(fields, second, fractions, np.asarray([draw for _, draw, _ in drawn]))


def _smallest(fields: Fields, fraction: float) -> np.ndarray:
    """A fraction of the active connections, those of the smallest weights."""
    mask = fields["mask"]
    order = np.argsort(np.where(mask, np.abs(fields["weight"]), np.inf), axis=None)
    dropped = np.zeros(mask.size, bool)
    dropped[order[: int(fraction * mask.sum() + 1e-3)]] = True
    return dropped.reshape(mask.shape)


def _batched(subject: _Subject) -> Callable[[_Cases, int], tuple[np.ndarray, np.ndarray]]:
    """``(cases, seed) -> (picks, chosen)``, compiled once."""
    run = jax.jit(jax.vmap(subject.answer))

    def answers(cases: _Cases, seed: int) -> tuple[np.ndarray, np.ndarray]:
        with _as_assertions(subject):
            picks, chosen = run(cases.fields, cases.second, cases.keys(seed))
        return np.asarray(picks), np.asarray(chosen)

    return answers


def _check_types(subject: _Subject) -> None:
    """Shape and type of what the rule returns, and what it reads; nothing is computed."""
    rng, half = np.random.default_rng(0), math.prod(subject.shape) // 2
    every = _all_fields(subject.shape, subject.importance, rng, half, "continuous")
    second = np.float32(0.5) if subject.kind == "drop" else _smallest(every, 0.5)

    def trace(fields: Fields) -> None:
        jax.eval_shape(subject.answer, fields, second, jax.random.key(0))

    def fails(fields: Fields) -> bool:
        try:
            trace(fields)
        except Exception:
            return True
        return False

    def without(*names: str) -> Fields:
        return {name: leaf for name, leaf in every.items() if name not in names}

    others = sorted(set(every) - subject.fields)
    if fails(without(*others)) and not fails(every):
        read = [name for name in others if fails(without(name))]
        names = ", ".join(map(repr, read))
        raise AssertionError(
            f"{subject} reads {names} of the layer without saying so; decorate it with "
            f"@fsjax.sparsity.needs({names})"
        )
    with _as_assertions(subject):
        trace(without(*others))
        trace({**without(*others), "weight": every["weight"].astype(jnp.bfloat16)})


def _check_choice(subject: _Subject, cases: _Cases, picks: np.ndarray) -> None:
    """A choice marks candidates alone, and of these as many as were dropped."""
    outside = int((picks & ~cases.candidates).sum(axis=tuple(range(1, picks.ndim))).max())
    if subject.kind == "drop":
        _require(not outside, f"{subject} marks {outside} connections that are not active")
        return
    _require(not outside, f"{subject} marks {outside} connections that are already there")
    axes = tuple(range(1, picks.ndim))
    marked, wanted = picks.sum(axes), cases.second.sum(axes)
    right = marked <= wanted if shrinks(subject.rule) else marked == wanted
    if not right.all():
        worst = int(np.argmax(np.abs(marked - wanted)))
        raise AssertionError(
            f"{subject} marks {marked[worst]} connections where {wanted[worst]} were dropped; mark "
            "as many, or return scores"
        )


def _check_finite(subject: _Subject, cases: _Cases, picks: np.ndarray) -> None:
    """Scores of candidates are finite."""
    bad = (~np.isfinite(picks) & cases.candidates).reshape(len(picks), -1).any(axis=1)
    draws = sorted(set(cases.draws[bad]), key=DRAWS.index)
    _require(
        not bad.any(),
        f"{subject} returns scores that are NaN or infinite for layers of {' or '.join(draws)} "
        "values; return finite numbers",
    )


def _check_again(subject: _Subject, cases: _Cases, picks: np.ndarray) -> None:
    """A rule that is traced again, for one layer alone, answers the same."""
    number = len(picks) // 2 + len(FRACTIONS) - 2
    fields = {name: leaf[number] for name, leaf in cases.fields.items()}
    with _as_assertions(subject):
        # A new function, so that JAX traces it.
        alone = jax.jit(lambda *args: subject.answer(*args))
        again = np.asarray(alone(fields, cases.second[number], cases.keys(1)[number])[0])
    _require(
        _close(again, picks[number]),
        f"{subject} answers otherwise when it is traced again; draw random numbers from its key "
        "alone",
    )


def _check_fraction(subject: _Subject, cases: _Cases, chosen: np.ndarray) -> None:
    """More connections go where the fraction is larger."""
    numbers = chosen.reshape(len(chosen), -1).sum(axis=1)
    drawn = cases.draws == "continuous"
    few, many = (
        int(numbers[drawn & (cases.fractions == f)].sum()) for f in map(np.float32, (0.2, 0.8))
    )
    _require(
        few < many,
        f"{subject} does not follow the fraction: it drops {few} connections at 0.2 and {many} at "
        "0.8",
    )


def _check_counts(subject: _Subject, cases: _Cases) -> None:
    """Changes in a row keep the number of connections, in a scan that is vmapped."""

    def one(fields: Fields, fraction: Array, key: Array) -> Array:
        def change(carry: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], Array]:
            weight, mask = carry
            layer = Layer(**{**fields, "weight": weight, "mask": mask}, state=subject.state)
            rules: tuple[DropRule, GrowRule] = (drop_rules.magnitude, subject.rule)
            if subject.kind == "drop":
                rules = (subject.rule, grow_rules.random)
            done = rewire(layer, *rules, fraction, jax.random.fold_in(key, i))
            weight = jnp.where(done.new, 0.5, jnp.where(done.mask, weight, 0))
            return (weight, done.mask), jnp.sum(done.mask, dtype=jnp.int32)

        start = (fields["weight"], fields["mask"])
        return jax.lax.scan(change, start, jnp.arange(CHANGES))[1]

    with _as_assertions(subject):
        counts = np.asarray(jax.jit(jax.vmap(one))(cases.fields, cases.fractions, cases.keys(3)))
    before = cases.fields["mask"].reshape(len(counts), -1).sum(axis=1)
    falls = subject.kind == "grow" and shrinks(subject.rule)
    kept = counts <= before[:, None] if falls else counts == before[:, None]
    _require(kept.all(), f"{subject} changes the number of connections")


def _check_order(
    subject: _Subject,
    cases: _Cases,
    answers: Callable[[_Cases, int], tuple[np.ndarray, np.ndarray]],
) -> None:
    """Permuted neurons have permuted scores, or as many connections that are chosen."""
    rng = np.random.default_rng(1)
    rows, columns = (rng.permutation(size) for size in subject.shape[-2:])

    def permuted(leaf: np.ndarray) -> np.ndarray:
        if leaf.ndim <= 2:
            return leaf
        moved = leaf if leaf.shape[-2] == 1 else leaf[..., rows, :]
        return moved if leaf.shape[-1] == 1 else moved[..., columns]

    moved = _Cases(
        {name: permuted(leaf) for name, leaf in cases.fields.items()},
        permuted(cases.second),
        cases.fractions,
        cases.draws,
    )
    untied = cases.draws == "continuous"
    before, after = permuted(answers(cases, 1)[0])[untied], answers(moved, 1)[0][untied]
    if before.dtype == bool:
        # Within a neuron position may decide, where neurons are what is ranked.
        same = any(np.array_equal(before.sum(axis), after.sum(axis)) for axis in (-1, -2))
    else:
        candidates = moved.candidates[untied]
        same = _close(after[candidates], before[candidates])
    _require(
        same,
        f"{subject} goes by the position of neurons, as permuted ones are treated otherwise; draw "
        "random numbers from its key, or pass equivariant=False",
    )


def _check_vectors(subject: _Subject, cases: _Cases, chosen: np.ndarray, random: bool) -> None:
    """Of the active connections as a vector the same are chosen as of a matrix."""
    answer = jax.jit(subject.answer)
    several = cases.fields["mask"].reshape(len(chosen), -1).sum(1) > 2
    some = (cases.draws == "continuous") & (cases.second > 0) & (cases.second < 1)
    for number in np.flatnonzero(several & some)[:VECTORS]:
        mask = cases.fields["mask"][number]
        fields = {
            name: leaf[number] if leaf.ndim == 1 else leaf[number][mask]
            for name, leaf in cases.fields.items()
            if name != "importance"
        }
        with _as_assertions(subject):
            answers = answer(fields, cases.second[number], cases.keys(1)[number])[1]
        expected = chosen[number][mask]
        same = answers.sum() == expected.sum() if random else np.array_equal(answers, expected)
        _require(
            same,
            f"{subject} is marked by active_only and chooses otherwise of a vector of connections "
            "than of their matrix; take the mark away",
        )


def _close(values: np.ndarray, others: np.ndarray) -> bool:
    if values.dtype == bool:
        return np.array_equal(values, others)
    scale = float(np.max(np.abs(others), initial=0.0, where=np.isfinite(others)))
    return np.allclose(values, others, rtol=RTOL, atol=RTOL * scale, equal_nan=True)
