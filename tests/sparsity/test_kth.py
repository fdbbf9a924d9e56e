"""The k smallest, the k largest and random subsets, compared with a stable sort in NumPy."""

from __future__ import annotations

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from marks import slow_ids
from sparsity_reference import first_of_sort

from fsjax.sparsity import kth

SHAPE = (2, 3, 4)
SIZE = 24
# Few distinct values, so that most draws have ties, next to any float there is.
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38]
FLOATS = st.one_of(
    st.sampled_from(SPECIAL).map(np.float32), st.floats(width=32, allow_subnormal=False)
)
VALUES = hnp.arrays(np.float32, SHAPE, elements=FLOATS)
AMONG = st.one_of(
    st.just(np.ones(SHAPE, bool)),
    st.just(np.zeros(SHAPE, bool)),
    hnp.arrays(bool, SHAPE),
)
K = st.one_of(st.integers(0, SIZE + 3), st.sampled_from([0, 1, SIZE - 1, SIZE, 10**6]))
few = settings(max_examples=80, deadline=None, derandomize=True)

smallest, largest = jax.jit(kth.smallest), jax.jit(kth.largest)
kth_smallest, random_subset = jax.jit(kth.kth_smallest), jax.jit(kth.random_subset)
preferred = jax.jit(kth.preferred)


@pytest.mark.slow
@few
@given(VALUES, K, AMONG)
def test_marks_are_the_first_of_a_stable_sort(
    values: np.ndarray, k: int, among: np.ndarray
) -> None:
    marks = smallest(values, k, among)
    assert marks.dtype == bool and int(marks.sum()) == min(k, among.sum())
    np.testing.assert_array_equal(marks, first_of_sort(values, k, among))
    marks = largest(values, k, among)
    assert int(marks.sum()) == min(k, among.sum())
    np.testing.assert_array_equal(marks, first_of_sort(values, k, among, descending=True))


@few
@given(AMONG, K, AMONG)
def test_preferred_are_the_chosen_first_and_then_the_others(
    choice: np.ndarray, k: int, among: np.ndarray
) -> None:
    expected = first_of_sort(~choice, k, among)
    np.testing.assert_array_equal(preferred(choice, k, among), expected)


@few
@given(VALUES, st.integers(1, SIZE))
def test_kth_smallest_is_numpys_partition(values: np.ndarray, k: int) -> None:
    clean = np.where(np.isnan(values), -np.inf, values).ravel()
    np.testing.assert_array_equal(kth_smallest(values, k), np.partition(clean, k - 1)[k - 1])


def test_kth_smallest_among_few_candidates() -> None:
    values = jnp.array([5.0, 1.0, jnp.nan, 3.0])
    among = jnp.array([True, False, False, True])
    assert kth_smallest(values, 2, among) == 5.0
    assert kth_smallest(values, 3, among) == jnp.inf
    assert kth_smallest(values, 1) == -jnp.inf


@slow_ids(*(f"{dtype}-shape{n}" for dtype in ("bfloat16", "int32", "bool") for n in (0, 1, 3, 5)))
@pytest.mark.parametrize("shape", [(1,), (7,), (0,), (), (3, 5), (2, 1, 3, 2)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int32, bool])
def test_shapes_and_types(shape: tuple[int, ...], dtype: type) -> None:
    values = jnp.asarray(np.random.default_rng(0).integers(-3, 4, shape), dtype)
    size = int(np.prod(shape))
    for k in (0, 1, size // 2, size, size + 2):
        marks = smallest(values, k)
        assert marks.shape == shape
        np.testing.assert_array_equal(marks, first_of_sort(np.asarray(values, np.float32), k))


def test_order_of_large_arrays_with_many_ties() -> None:
    values = np.random.default_rng(1).integers(0, 40, 30_000).astype(np.float32)
    for k in (1, 700, 15_000, 29_999):
        np.testing.assert_array_equal(smallest(values, k), first_of_sort(values, k))
        assert kth_smallest(values, k) == np.sort(values)[k - 1]


@slow_ids("shape2", "shape3", "shape4")
@pytest.mark.parametrize("shape", [(64, 5), (37, 5), (45, 2), (31, 31), (121,), (997,)])
def test_matrices_with_and_without_padding(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 20, shape).astype(np.float32)
    among = rng.random(shape) < 0.8
    for k in (0, 1, 30, 80, int(among.sum()), 10**4):
        np.testing.assert_array_equal(smallest(values, k, among), first_of_sort(values, k, among))
        expected = first_of_sort(~among, k)
        np.testing.assert_array_equal(preferred(among, k, np.ones(shape, bool)), expected)


def test_one_compilation_for_every_k() -> None:
    counted = jax.jit(lambda values, k: kth.smallest(values, k))
    values = jnp.arange(9.0)
    for k in (0, 4, 9):
        assert int(counted(values, jnp.int32(k)).sum()) == k
    assert counted._cache_size() == 1


def test_vmap_equals_a_loop() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(-2, 3, (6, SIZE)).astype(np.float32)
    k = np.array([0, 1, 5, 12, 23, 24])
    among = rng.random((6, SIZE)) < 0.7
    together = jax.jit(jax.vmap(kth.smallest))(values, k, among)
    alone = [first_of_sort(v, int(n), a) for v, n, a in zip(values, k, among, strict=True)]
    np.testing.assert_array_equal(together, alone)
    values_of = jax.jit(jax.vmap(kth.kth_smallest, in_axes=(0, None)))(values, 3)
    np.testing.assert_array_equal(values_of, np.sort(values, axis=1)[:, 2])


@few
@given(st.integers(0, 2**31), K, AMONG)
def test_random_subset_has_the_exact_number(seed: int, k: int, among: np.ndarray) -> None:
    chosen = np.asarray(random_subset(jax.random.key(seed), k, among))
    assert chosen.sum() == min(k, among.sum())
    assert not (chosen & ~among).any()


def test_every_random_subset_is_equally_likely() -> None:
    draws = 20_000
    among = jnp.array([True, False, True, True, True, False, True])
    keys = jax.random.split(jax.random.key(5), draws)
    chosen = np.asarray(jax.jit(jax.vmap(lambda key: kth.random_subset(key, 2, among)))(keys))
    pairs = itertools.combinations(np.flatnonzero(among), 2)
    counts = [int((chosen[:, a] & chosen[:, b]).sum()) for a, b in pairs]
    assert sum(counts) == draws
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_random_subsets_differ_between_keys_and_repeat_for_one(key: jax.Array) -> None:
    among = jnp.ones(200, bool)
    first = random_subset(key, 100, among)
    again = random_subset(jax.random.clone(key), 100, among)
    other = random_subset(jax.random.key(8), 100, among)
    chex.assert_trees_all_equal(first, again)
    assert 20 < int((first & ~other).sum()) < 80


def test_the_lowest_integers_are_as_exact_as_others() -> None:
    for k in (0, 2, 5, 9, 2**31 - 1):
        marks = kth.smallest(jnp.zeros(9, jnp.uint32), k, jnp.arange(9) != 1)
        assert int(marks.sum()) == min(k, 8) and not marks[1]


@jax.jit
def by_sorting(values: jax.Array, k: jax.Array, among: jax.Array) -> jax.Array:
    bits = jnp.minimum(kth.ordered_bits(values), kth._LAST - 1)
    bits = jnp.where(among, bits, kth._LAST).reshape(2, 12)
    return kth._by_sorting(bits, k) & (k > 0)


@pytest.mark.slow
@few
@given(VALUES, K, AMONG)
def test_accelerators_mark_the_same(values: np.ndarray, k: int, among: np.ndarray) -> None:
    marks = by_sorting(values, k, among).reshape(SHAPE)
    np.testing.assert_array_equal(marks, first_of_sort(values, k, among))


def test_accelerators_prefer_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # A program of its own, traced as on a GPU; its parts are not programs that others find.
    there = jax.jit(lambda *arguments: kth.preferred.__wrapped__(*arguments))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    rng = np.random.default_rng(0)
    for k, share in itertools.product((0, 3, 9, 50), (0.2, 0.9)):
        choice, among = rng.random((7, 6)) < share, rng.random((7, 6)) < 0.8
        np.testing.assert_array_equal(there(choice, k, among), first_of_sort(~choice, k, among))
