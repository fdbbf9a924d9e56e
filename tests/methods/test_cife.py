"""CIFE and ICAP, which share their counting, against loops over pairs of columns.

Covers ``fsjax.methods.cife``.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial

import numpy as np
import pytest

from fsjax.methods.icap import MERGES
from fsjax.methods.shared import greedy_information
from fsjax.methods.shared.greedy_information import greedy_scores


def bits(*columns: np.ndarray, weight: np.ndarray) -> float:
    """``-sum p log2 p`` over the tuples of symbols."""
    counts: Counter = Counter()
    for symbols, row_weight in zip(zip(*columns, strict=True), weight, strict=True):
        counts[symbols] += row_weight
    shares = [count / weight.sum() for count in counts.values()]
    return -sum(share * np.log2(share) for share in shares)


def reference(x: np.ndarray, y: np.ndarray, weight: np.ndarray, depth: int, rule: str) -> list:
    """The chosen columns, pair by pair from the papers' equations."""

    def relevance(column: int) -> float:
        return (
            bits(x[:, f], weight=weight) + bits(y, weight=weight) - bits(x[:, f], y, weight=weight)
        )

    def shared(g: int, f: int) -> float:
        a, b = x[:, g], x[:, f]
        information = bits(a, weight=weight) + bits(b, weight=weight) - bits(a, b, weight=weight)
        conditional = (
            bits(a, y, weight=weight)
            + bits(b, y, weight=weight)
            - bits(a, b, y, weight=weight)
            - bits(y, weight=weight)
        )
        return information - conditional

    chosen: list[int] = []
    while len(chosen) < depth:
        values = {}
        for f in set(range(x.shape[1])) - set(chosen):
            terms = [shared(g, f) for g in chosen]
            penalty = {
                "cife": sum(terms),
                "max": max([0.0, *terms]),
                "sum": sum(max(0.0, term) for term in terms),
            }[rule]
            values[f] = relevance(f) - penalty
        chosen.append(max(values, key=values.__getitem__))
    return chosen


@cache
def expected_ranking(rule: str, weighted: bool) -> list[int]:
    """The chosen columns of the table, which take most of the time."""
    return reference(*table(), row_weights(weighted), 7, rule)


def row_weights(weighted: bool) -> np.ndarray:
    return np.random.default_rng(5).uniform(0.5, 2.0, 300) if weighted else np.ones(300)


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns 0 to 3 are informative, 4 nearly repeats 0, and 5 and 6 inform only jointly."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 300)
    x = rng.integers(0, 4, (300, 10)).astype(float)
    for column in range(4):
        follows = rng.random(300) < 0.75 - 0.12 * column
        x[follows, column] = ((y + column) % 3)[follows]
    x[:, 4] = np.where(rng.random(300) < 0.95, x[:, 0], x[:, 4])
    x[:, 6] = (x[:, 5] + y) % 4
    return x * [1, 7, -2, 0.5, 1, 1, 1, 3, 1, 1] + 0.25, y


METHODS = {
    name: partial(greedy_scores, bins=None, merge=merge)
    for name, merge in {"cife": np.add, **MERGES}.items()
}


@pytest.mark.parametrize("counted", ["histogram", "sorting", "difference"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", METHODS)
def test_the_ranking_is_that_of_a_loop_over_pairs(
    rule: str, weighted: bool, counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greedy_information, "FILLED", 1e9 if counted == "histogram" else 0)
    monkeypatch.setattr(greedy_information, "RARE", 2 if counted == "difference" else 0)
    monkeypatch.setattr(greedy_information, "BLOCK", 900)  # three columns at a time
    x, y = table()
    weight, expected = row_weights(weighted), expected_ranking(rule, weighted)
    scores = METHODS[rule](x, y, weight, depth=7)
    assert np.argsort(-scores)[:7].tolist() == expected
    assert scores[expected].tolist() == [7, 6, 5, 4, 3, 2, 1]
    for column in set(range(10)) - set(expected):
        relevance = (
            bits(x[:, column], weight=weight)
            + bits(y, weight=weight)
            - bits(x[:, column], y, weight=weight)
        )
        np.testing.assert_allclose(scores[column], relevance / (1 + np.log2(3)), atol=1e-12)
    order = np.random.default_rng(1).permutation(10)
    np.testing.assert_allclose(METHODS[rule](x[:, order], y, weight, depth=7), scores[order])


def test_whole_weights_are_repeated_rows() -> None:
    x, y = table()
    weight = np.where(np.arange(300) < 80, 2.0, 1.0)
    twice = np.concatenate([x, x[:80]]), np.concatenate([y, y[:80]]), np.ones(380)
    for scores in METHODS.values():
        np.testing.assert_allclose(scores(x, y, weight, depth=6), scores(*twice, depth=6))


@pytest.mark.parametrize("bins", [2, 5, 11])
def test_weights_fill_the_bins(bins: int) -> None:
    rng = np.random.default_rng(2)
    x, y, weight = rng.normal(size=(77, 6)), rng.integers(0, 3, 77), rng.integers(1, 4, 77)
    twice = (np.repeat(of, weight, axis=0) for of in (x, y, np.ones(77)))
    scores = partial(greedy_scores, depth=3, bins=bins, merge=np.add)
    np.testing.assert_allclose(scores(x, y, weight * 1.0), scores(*twice))


def test_cife_takes_columns_that_inform_jointly_and_icap_does_not() -> None:
    x, y = table()
    ones = np.ones(300)
    first = {rule: np.argsort(-METHODS[rule](x, y, ones, depth=10)).tolist() for rule in METHODS}
    # The copy of column 0 is redundant to both; 5 and 6 are worth nothing alone.
    assert all(order.index(4) > order.index(1) for order in first.values())
    assert min(first["cife"].index(5), first["cife"].index(6)) < first["cife"].index(4)


def test_bins_hold_equal_shares_and_keep_equal_values_together() -> None:
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(999, 2))
    x[:500, 1] = 7.0
    symbols = greedy_information.count_table(x, np.zeros(999, int), np.ones(999), 4)
    counts = np.bincount(symbols.codes[0])
    assert len(counts) == 4 and counts.min() >= 249 and counts.max() <= 250
    assert len(np.unique(symbols.codes[1][:500])) == 1
    ordered = np.sort(x[:, 0])
    ranked = greedy_information.count_table(ordered[:, None], np.zeros(999, int), np.ones(999), 4)
    assert (np.diff(ranked.codes[0]) >= 0).all()


@pytest.mark.parametrize(("rows", "bins"), [(77, 11), (108, 12), (98, 14)])
def test_bins_hold_equal_shares_if_they_divide_the_rows(rows: int, bins: int) -> None:
    ranks, ones = np.arange(rows)[:, None], np.ones(rows)
    symbols = greedy_information.count_table(ranks, np.zeros(rows, int), ones, bins)
    assert np.bincount(symbols.codes[0]).tolist() == [rows // bins] * bins


def test_all_ways_of_counting_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x = np.where(rng.random((500, 12)) < 0.8, 0, rng.integers(0, 9, (500, 12))).astype(float)
    x[:, 3] = 1.0
    x[:, 5] = rng.integers(0, 40, 500)
    y = rng.integers(0, 3, 500)
    for chosen in (None, 0, 3, 5):
        results = []
        for rare in (2, 0):
            monkeypatch.setattr(greedy_information, "RARE", rare)
            symbols = greedy_information.count_table(x, y, np.ones(500), None)
            results.append(greedy_information.entropies(symbols, chosen))
        for by_difference, otherwise in zip(*results, strict=True):
            np.testing.assert_allclose(by_difference, otherwise, rtol=0, atol=1e-12)


def test_constant_columns_are_not_chosen() -> None:
    x, y = table()
    x[:, 9] = 5.0
    scores = METHODS["cife"](x, y, np.ones(300), depth=100)
    assert scores.max() == 9 and 0 <= scores[9] < 1e-9
