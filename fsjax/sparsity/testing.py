"""Checks of the contract of drop and grow rules: ``check_rule(rule)``, for your own rules too."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules
from fsjax.sparsity.rule_cases import (
    DRAWS,
    FRACTIONS,
    Cases,
    Fields,
    RuleKind,
    Subject,
    cases_of,
    random_fields,
    weakest,
)
from fsjax.sparsity.topology import (
    DropRule,
    GrowRule,
    Layer,
    Rule,
    as_rule,
    rewire,
)

#: The kind of a rule, by the name of its second parameter.
KIND_OF: dict[str, RuleKind] = {"fraction": "drop", "dropped": "grow"}


#: Fewest pairs of neurons in a test layer. In smaller ones a wrong count could pass unnoticed.
SMALLEST = 20

#: Successive changes of the topology after which the connections are counted.
CHANGES = 3

#: Number of layers on which the choices for the vector and for the matrix are compared.
VECTORS = 6

#: Relative tolerance of scores, because sums may be computed in another order.
RTOL = 1e-4


def check_rule(
    rule: DropRule | GrowRule,
    kind: RuleKind | None = None,
    *,
    shape: Sequence[int] = (6, 5),
    importance: Literal["inputs", "outputs"] = "inputs",
    equivariant: bool = True,
    state: Any = None,
) -> None:
    """Checks that a rule keeps the contract of :mod:`fsjax.sparsity.topology`.

    The rule is called on layers with continuous, tied and all-zero values, with one to all of the
    connections active, for fractions from 0 to 1. It must

    - return scores or a choice in the shape of the weights, which may be float32 or bfloat16;
    - declare which optional fields of the layer it reads (:func:`fsjax.sparsity.needs`);
    - return finite scores, or a choice that marks only allowed connections, in the right number;
    - drop more connections when the fraction is larger;
    - keep the number of connections over several changes inside ``jit``, ``vmap`` and ``scan``;
    - return the same result for the same key, and use each key only once;
    - return permuted scores if the neurons are permuted, unless it is random;
    - if it is marked by :func:`fsjax.sparsity.active_only`, choose the same connections from their
      vector as from the matrix.

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
    with jax.debug_key_reuse(True):
        _check_types(subject)
        cases = cases_of(subject)
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
        if subject.kind == "drop" and subject.rule.active_only:
            _check_vectors(subject, cases, chosen, random)


def _subject(
    rule: Rule,
    kind: RuleKind | None,
    shape: Sequence[int],
    importance: Literal["inputs", "outputs"],
    state: Any,
) -> Subject:
    check(Literal["drop", "grow"], kind=kind or "drop")
    check(Literal["inputs", "outputs"], importance=importance)
    if len(shape) < 2 or math.prod(shape) < SMALLEST:
        raise ConfigError(f"shape={tuple(shape)}; choose at least two axes and {SMALLEST} entries")
    if kind is None:
        parameters = list(inspect.signature(rule.function).parameters)
        second = parameters[1] if len(parameters) > 1 else ""
        if second not in KIND_OF:
            raise ConfigError(
                f"{rule.name}({', '.join(parameters)}) could be a drop or a grow rule; call "
                "its second parameter fraction or dropped, or pass kind='drop' or kind='grow'"
            )
        kind = KIND_OF[second]
    if "state" in rule.needs and state is None:
        raise ConfigError(f"{rule.name} needs the state; pass state=")
    widths = [1] * len(shape)
    axis = -2 if importance == "inputs" else -1
    widths[axis] = shape[axis]
    return Subject(rule, kind, tuple(shape), tuple(widths), state)


def _require(holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise AssertionError(message)


@contextlib.contextmanager
def _as_assertions(subject: Subject) -> Iterator[None]:
    """Turns errors of a rule into an AssertionError with a message of one sentence."""
    try:
        yield
    except jax.errors.KeyReuseError as error:
        raise AssertionError(f"{subject} uses its key twice; split the key") from error
    except ConfigError as error:
        raise AssertionError(str(error)) from error
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise AssertionError(
            f"{subject} raises {type(error).__name__} under jax.jit and vmap: {first}"
        ) from error


def _batched(subject: Subject) -> Callable[[Cases, int], tuple[np.ndarray, np.ndarray]]:
    """``(cases, seed) -> (picks, chosen)``, compiled once."""
    run = jax.jit(jax.vmap(subject.answer))

    def answers(cases: Cases, seed: int) -> tuple[np.ndarray, np.ndarray]:
        with _as_assertions(subject):
            picks, chosen = run(cases.fields, cases.second, cases.keys(seed))
        return np.asarray(picks), np.asarray(chosen)

    return answers


def _check_types(subject: Subject) -> None:
    """Checks the shape and type of the result and the fields that are read, by tracing alone."""
    rng, half = np.random.default_rng(0), math.prod(subject.shape) // 2
    layer = random_fields(subject.shape, subject.importance, rng, half, "continuous")
    second = np.float32(0.5) if subject.kind == "drop" else weakest(layer, 0.5)

    def trace(fields: Fields) -> None:
        jax.eval_shape(subject.answer, fields, second, jax.random.key(0))

    def fails(fields: Fields) -> bool:
        try:
            trace(fields)
        except Exception:
            return True
        return False

    def without(*names: str) -> Fields:
        return {name: leaf for name, leaf in layer.items() if name not in names}

    undeclared = sorted(set(layer) - subject.fields)
    if fails(without(*undeclared)) and not fails(layer):
        read = [name for name in undeclared if fails(without(name))]
        names = ", ".join(map(repr, read))
        raise AssertionError(
            f"{subject} reads {names} of the layer without declaring it; decorate the rule with "
            f"@fsjax.sparsity.needs({names})"
        )
    with _as_assertions(subject):
        trace(without(*undeclared))
        trace({**without(*undeclared), "weight": layer["weight"].astype(jnp.bfloat16)})


def _check_choice(subject: Subject, cases: Cases, picks: np.ndarray) -> None:
    """Checks that a choice marks only candidates, and as many as were dropped."""
    axes = tuple(range(1, picks.ndim))
    outside = int((picks & ~cases.candidates).sum(axes).max())
    if subject.kind == "drop":
        _require(not outside, f"{subject} marks {outside} connections that are not active")
        return
    _require(not outside, f"{subject} marks {outside} connections that are already active")
    marked, wanted = picks.sum(axes), cases.second.sum(axes)
    correct = marked <= wanted if subject.rule.may_shrink else marked == wanted
    if not correct.all():
        worst = int(np.argmax(np.abs(marked - wanted)))
        raise AssertionError(
            f"{subject} marks {marked[worst]} connections where {wanted[worst]} were dropped; mark "
            "that many, or return scores"
        )


def _check_finite(subject: Subject, cases: Cases, picks: np.ndarray) -> None:
    """Checks that the scores of all candidates are finite."""
    bad = (~np.isfinite(picks) & cases.candidates).reshape(len(picks), -1).any(axis=1)
    draws = sorted(set(cases.draws[bad]), key=DRAWS.index)
    _require(
        not bad.any(),
        f"{subject} returns scores that are NaN or infinite for layers with {' or '.join(draws)} "
        "values; return finite numbers",
    )


def _check_again(subject: Subject, cases: Cases, picks: np.ndarray) -> None:
    """Checks that the rule returns the same result when it is traced again, for a single layer."""
    number = len(picks) // 2 + len(FRACTIONS) - 2
    fields = {name: leaf[number] for name, leaf in cases.fields.items()}
    with _as_assertions(subject):
        # A new function, so that JAX traces it again.
        alone = jax.jit(lambda *args: subject.answer(*args))
        again = np.asarray(alone(fields, cases.second[number], cases.keys(1)[number])[0])
    _require(
        _close(again, picks[number]),
        f"{subject} returns another result when it is traced again; draw random numbers only from "
        "the key that it is given",
    )


def _check_fraction(subject: Subject, cases: Cases, chosen: np.ndarray) -> None:
    """Checks that a larger fraction drops more connections."""
    numbers = chosen.reshape(len(chosen), -1).sum(axis=1)
    drawn = cases.draws == "continuous"
    few, many = (
        int(numbers[drawn & (cases.fractions == f)].sum()) for f in map(np.float32, (0.2, 0.8))
    )
    _require(
        few < many,
        f"{subject} ignores the fraction: it drops {few} connections at 0.2 and {many} at 0.8; "
        "return scores, or choose that share of the active connections",
    )


def _check_counts(subject: Subject, cases: Cases) -> None:
    """Checks that successive changes keep the number of connections, in a vmapped scan."""

    def count(fields: Fields, fraction: Array, key: Array) -> Array:
        def change(carry: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], Array]:
            weight, mask = carry
            layer = Layer(**{**fields, "weight": weight, "mask": mask}, state=subject.state)
            rules: tuple[DropRule, GrowRule] = (drop_rules.magnitude, subject.rule)
            if subject.kind == "drop":
                rules = (subject.rule, grow_rules.random)
            rewired = rewire(layer, *rules, fraction, jax.random.fold_in(key, i))
            weight = jnp.where(rewired.new, 0.5, jnp.where(rewired.mask, weight, 0))
            return (weight, rewired.mask), jnp.sum(rewired.mask, dtype=jnp.int32)

        start = (fields["weight"], fields["mask"])
        return jax.lax.scan(change, start, jnp.arange(CHANGES))[1]

    with _as_assertions(subject):
        counts = np.asarray(jax.jit(jax.vmap(count))(cases.fields, cases.fractions, cases.keys(3)))
    before = cases.fields["mask"].reshape(len(counts), -1).sum(axis=1)
    may_fall = subject.kind == "grow" and subject.rule.may_shrink
    kept = counts <= before[:, None] if may_fall else counts == before[:, None]
    _require(kept.all(), f"{subject} changes the number of connections")


def _check_order(
    subject: Subject,
    cases: Cases,
    answers: Callable[[Cases, int], tuple[np.ndarray, np.ndarray]],
) -> None:
    """Checks that permuted neurons get permuted scores, or the same number of connections."""
    rng = np.random.default_rng(1)
    rows, columns = (rng.permutation(size) for size in subject.shape[-2:])

    def permuted(leaf: np.ndarray) -> np.ndarray:
        if leaf.ndim <= 2:
            return leaf
        moved = leaf if leaf.shape[-2] == 1 else leaf[..., rows, :]
        return moved if leaf.shape[-1] == 1 else moved[..., columns]

    moved = Cases(
        {name: permuted(leaf) for name, leaf in cases.fields.items()},
        permuted(cases.second),
        cases.fractions,
        cases.draws,
    )
    untied = cases.draws == "continuous"
    before, after = permuted(answers(cases, 1)[0])[untied], answers(moved, 1)[0][untied]
    if before.dtype == bool:
        # A rule that ranks neurons may choose among the connections of a neuron by position.
        same = any(np.array_equal(before.sum(axis), after.sum(axis)) for axis in (-1, -2))
    else:
        candidates = moved.candidates[untied]
        same = _close(after[candidates], before[candidates])
    _require(
        same,
        f"{subject} depends on the position of neurons: its result changes if they are permuted; "
        "draw random numbers from the key, or pass equivariant=False",
    )


def _check_vectors(subject: Subject, cases: Cases, chosen: np.ndarray, random: bool) -> None:
    """Checks that the rule chooses the same connections from their vector as from the matrix."""
    answer = jax.jit(subject.answer)
    several = cases.fields["mask"].reshape(len(chosen), -1).sum(1) > 2
    partial = (cases.draws == "continuous") & (cases.second > 0) & (cases.second < 1)
    for number in np.flatnonzero(several & partial)[:VECTORS]:
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
            f"{subject} is marked by active_only, but chooses other connections from their vector "
            "than from the matrix; remove the decorator",
        )


def _close(values: np.ndarray, others: np.ndarray) -> bool:
    if values.dtype == bool:
        return np.array_equal(values, others)
    scale = float(np.max(np.abs(others), initial=0.0, where=np.isfinite(others)))
    return np.allclose(values, others, rtol=RTOL, atol=RTOL * scale, equal_nan=True)
