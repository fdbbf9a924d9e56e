"""Generated tables of two benchmarks: informative and extraneous columns.

Covers ``fsjax.tables.datasets.extraneous``.
"""

from itertools import permutations

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from scipy.sparse import csr_array

from fsjax import data
from fsjax.tables.datasets.nonlinear import BOUNDS

MANY = 200_000


def truth(X: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The authors' rule for the classes, except for the sum, whose noise is not known."""
    a, b, c, d = X[:, order[:4]].astype(np.float64).T
    ring = np.abs(np.sqrt((a - 0.5) ** 2 + (b - 0.5) ** 2) - 0.35) <= 0.0479
    return ring | ((c - 0.5) * (0.5 - d) >= 0.0598)


@pytest.mark.parametrize("rule", sorted(BOUNDS))
def test_classes_are_balanced_and_columns_uniform(rule: str) -> None:
    table = data.load("ring_xor_sum", num_samples=MANY, num_features=8, rule=rule, seed=3)
    assert table.y.mean() == pytest.approx(0.5, abs=0.02)
    assert len(table.informative) == 2 * len(rule.split("+"))
    assert table.X.min() >= 0 and table.X.max() <= 1
    np.testing.assert_allclose(table.X.mean(axis=0), 0.5, atol=0.01)
    np.testing.assert_allclose(table.X.std(axis=0), np.sqrt(1 / 12), atol=0.01)


def test_the_ring_and_the_exclusive_or_are_those_of_the_paper() -> None:
    ring = data.ring_xor_sum(2000, 10, "ring", seed=1)
    a, b = ring.X[:, ring.informative].T
    distance = np.abs(np.hypot(a - 0.5, b - 0.5) - 0.35)
    np.testing.assert_array_equal(ring.y, distance <= 0.1151)
    xor = data.ring_xor_sum(2000, 10, "xor", seed=1)
    a, b = xor.X[:, xor.informative].T
    np.testing.assert_array_equal(xor.y, (a > 0.5) != (b > 0.5))


def test_one_part_of_the_union_is_enough() -> None:
    table = data.ring_xor_sum(20_000, 6, seed=2)
    matching = [
        order
        for order in permutations(range(6), 4)
        if order[0] < order[1] and order[2] < order[3] and table.y[truth(table.X, order)].all()
    ]
    # Both parts are symmetric in their columns, so that one order remains; the sum has the rest.
    assert len(matching) == 1
    rest = [column for column in range(6) if column not in matching[0]]
    negative = ~truth(table.X, matching[0])
    total = table.X[:, rest].sum(axis=1)
    assert table.y[negative & (total > 1.8)].mean() > 0.9
    assert table.y[negative & (total < 1.0)].mean() < 0.1


@bad_calls(
    (lambda: data.load("ring_xor_sum", rule="rings"), "rule"),
    (lambda: data.load("ring_xor_sum", num_features=5), "num_features"),
    (lambda: data.load("ring_xor_sum", num_samples=1), "num_samples"),
    (lambda: data.load("ring_xor_sum", parts=2), "parts"),
    (lambda: data.add_columns(standard_table(), "corupted"), "did you mean 'corrupted'"),
    (lambda: data.add_columns(standard_table(), "random", share=1.0), "above 0 and below 1"),
    (lambda: data.add_columns(data.Dataset("s", csr_array(np.eye(3)), None), "random"), "sparse"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(*bad)


def standard_table() -> data.Dataset:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20_000, 4)) * [1.0, 2.0, 3.0, 4.0]).astype(np.float32)
    return data.Dataset("four", X, np.zeros(20_000, np.int32), feature_names=tuple("abcd"))


def test_extra_columns_can_be_added_twice() -> None:
    marks = np.array([0, 1], np.uint8)
    table = data.Dataset("two", np.eye(2), None, ("a", "random 1"), official_split=marks)
    twice = data.add_columns(data.add_columns(table, "random"), "random")
    assert twice.feature_names[2:] == tuple(f"random {number}" for number in (0, 2, 3, 4, 5, 6))
    assert twice.official_split is marks


def test_extra_columns_are_what_the_benchmark_says() -> None:
    table = standard_table()
    random = data.add_columns(table, "random", 0.75).X[:, 4:]
    np.testing.assert_allclose(random.std(axis=0), 1.0, atol=0.03)
    assert np.abs(np.corrcoef(np.hstack([table.X, random]).T)[:4, 4:]).max() < 0.05
    for column in data.add_columns(table, "corrupted", 0.75).X[:, 4:].T:
        correlation = np.corrcoef(column, table.X.T)[0, 1:]
        # x / 2 plus noise of half its deviation: the correlation with x is 1 / sqrt(2).
        source = int(np.argmax(correlation))
        assert correlation[source] == pytest.approx(np.sqrt(0.5), abs=0.02)
        assert column.std() == pytest.approx(table.X[:, source].std() * np.sqrt(0.5), rel=0.03)
    products = [a * b for a in table.X.T for b in table.X.T]
    for column in data.add_columns(table, "second_order", 0.75).X[:, 4:].T:
        assert min(np.abs(column - product).max() for product in products) < 1e-4
