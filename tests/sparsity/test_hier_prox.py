"""The hierarchical proximal step: compared with the paper's algorithm, a solver, properties."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fsjax.sparsity.hier_prox import MANY, hier_prox

D, C, H = 7, 3, 5
prox = jax.jit(hier_prox)
#: Round numbers, so that many draws have ties and entries that sit on the bound.
WEIGHTS = st.one_of(
    st.integers(-4, 4).map(lambda n: np.float32(n / 4)),
    st.floats(-3, 3, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3),
)
SKIPS, KERNELS = (
    hnp.arrays(np.float32, (D, C), elements=WEIGHTS),
    hnp.arrays(np.float32, (D, H), elements=WEIGHTS),
)
STRENGTHS = st.sampled_from([0.0, 0.01, 0.5, 1.0, 7.0])
HIERARCHIES = st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e4])
few = settings(max_examples=60, deadline=None, derandomize=True)


def by_sorting(
    v: np.ndarray, u: np.ndarray, strength: float, hierarchy: float
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 2 of the paper for new feature: v (C,) and u (H,), in float64."""
    v, u = v.astype(np.float64), u.astype(np.float64)
    norm = np.sqrt((v**2).sum())
    if norm == 0:
        return 0 * v, 0 * u
    falling = np.append(np.sort(np.abs(u))[::-1], 0.0)
    for s in range(len(u) + 1):
        shrunk = 1 - (strength - hierarchy * falling[:s].sum()) / norm
        factor = max(shrunk, 0.0) / (1 + s * hierarchy**2)
        bound = hierarchy * factor * norm
        if falling[s] <= bound:
            break
    return factor * v, np.sign(u) * np.minimum(np.abs(u), bound)


def objective(
    new: tuple[np.ndarray, np.ndarray], v: np.ndarray, u: np.ndarray, strength: float
) -> float:
    to_v, to_u = (np.asarray(a, np.float64) for a in new)
    distances = ((to_v - v) ** 2).sum() + ((to_u - u) ** 2).sum()
    return 0.5 * distances + strength * np.sqrt((to_v**2).sum())


def check_all(
    skip: np.ndarray, kernel: np.ndarray, strength: float, hierarchy: float, rtol: float = 2e-6
) -> None:
    result = prox(skip, kernel, strength, hierarchy)
    expected = [by_sorting(v, u, strength, hierarchy) for v, u in zip(skip, kernel, strict=True)]
    scale = max(np.abs(skip).max(), np.abs(kernel).max(), 1e-30)
    for new, rows in zip(result, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(new, np.stack(rows), rtol=rtol, atol=rtol * scale)


@few
@given(SKIPS, KERNELS, STRENGTHS, HIERARCHIES)
def test_equals_the_sort_of_the_paper(
    skip: np.ndarray, kernel: np.ndarray, strength: float, hierarchy: float
) -> None:
    check_all(skip, kernel, strength, hierarchy, rtol=1e-5)


@pytest.mark.parametrize("hierarchy", [0.3, 10.0])
@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0])
def test_equals_the_sort_on_a_layer(scale: float, hierarchy: float) -> None:
    rng = np.random.default_rng(0)
    skip = rng.normal(size=(300, 10)) * np.geomspace(1e-3, 1, 300)[:, None] * scale
    kernel = rng.normal(size=(300, 60)) * np.geomspace(1e-3, 1, 60) * scale
    check_all(skip.astype(np.float32), kernel.astype(np.float32), 0.5 * scale, hierarchy)


@pytest.mark.parametrize("strength", [0.0, 0.2, 40.0])
def test_many_features_have_the_results_of_few(strength: float) -> None:
    rng = np.random.default_rng(0)
    # Of most features the length is reached in the first steps, of the others in many.
    kernel = rng.normal(size=(MANY, 9)) * np.geomspace(1e-6, 1, 9)
    kernel[MANY // 8 :] *= 1e-9
    skip, kernel = (np.float32(a) for a in (rng.normal(size=(MANY, 2)), kernel))
    halves = (slice(0, MANY // 2), slice(MANY // 2, MANY))
    parts = [prox(skip[half], kernel[half], strength, 10.0) for half in halves]
    together = prox(skip, kernel, strength, 10.0)
    chex.assert_trees_all_equal(together, tuple(map(jnp.concatenate, zip(*parts, strict=True))))


@pytest.mark.parametrize(("outputs", "hidden"), [(1, 2), (2, 2), (1, 1), (2, 1)])
@pytest.mark.parametrize("strength", [0.0, 0.4, 2.0])
def test_nothing_feasible_is_better(outputs: int, hidden: int, strength: float) -> None:
    rng = np.random.default_rng(outputs + 7 * hidden)
    hierarchy = 0.8
    skip = rng.normal(size=(4, outputs)).astype(np.float32)
    kernel = 1.5 * rng.normal(size=(4, hidden)).astype(np.float32)
    result = [np.asarray(a) for a in prox(skip, kernel, strength, hierarchy)]
    for row in range(len(skip)):
        v, u = skip[row].astype(np.float64), kernel[row].astype(np.float64)
        reached = objective((result[0][row], result[1][row]), v, u, strength)
        # A grid over v' with the best u' for each, then local search; directions are not used.
        axis = np.linspace(-3.5, 3.5, 57)
        points = np.stack(np.meshgrid(*[axis] * outputs), axis=-1).reshape(-1, outputs)

        def value(point: np.ndarray, v=v, u=u) -> float:
            bound = hierarchy * np.sqrt((point**2).sum())
            return objective((point, np.clip(u, -bound, bound)), v, u, strength)

        best = min(points, key=value)
        polished = scipy.optimize.minimize(value, best, method="Nelder-Mead", tol=1e-10)
        assert reached <= min(polished.fun, value(0 * v)) + 1e-6
        assert reached == pytest.approx(min(polished.fun, value(0 * v)), abs=1e-5)
        for size in (1e-3, 0.1, 1.0):
            for noise in rng.normal(size=(40, outputs + hidden)) * size:
                to_v = result[0][row] + noise[:outputs]
                bound = hierarchy * np.sqrt((to_v**2).sum())
                to_u = np.clip(result[1][row] + noise[outputs:], -bound, bound)
                assert objective((to_v, to_u), v, u, strength) >= reached - 1e-6


@few
@given(SKIPS, KERNELS, STRENGTHS, HIERARCHIES)
def test_result_is_feasible_and_zero_together(
    skip: np.ndarray, kernel: np.ndarray, strength: float, hierarchy: float
) -> None:
    new_skip, new_kernel = (
        np.asarray(a, np.float64) for a in prox(skip, kernel, strength, hierarchy)
    )
    norms, largest = np.sqrt((new_skip**2).sum(1)), np.abs(new_kernel).max(1)
    assert np.isfinite(norms).all() and np.isfinite(largest).all()
    assert (largest <= hierarchy * norms * (1 + 1e-6)).all()
    assert (largest[norms == 0] == 0).all()
    assert (norms[~skip.any(1)] == 0).all()
    # Signs are kept, and no weight of the first layer grows.
    assert (np.sign(new_kernel) * np.sign(kernel) >= 0).all()
    assert (np.abs(new_kernel) <= np.abs(kernel)).all()


@pytest.mark.slow
@few
@given(SKIPS, KERNELS)
def test_no_strength_leaves_a_feasible_point(skip: np.ndarray, kernel: np.ndarray) -> None:
    norms = np.sqrt((skip**2).sum(1))
    bound = 2.0 * norms[:, None] * np.float32(1 - 1e-6)
    feasible = np.clip(kernel, -bound, bound).astype(np.float32)
    chex.assert_trees_all_equal(prox(skip, feasible, 0.0, 2.0), (skip, feasible))


@pytest.mark.slow
@few
@given(SKIPS, KERNELS, STRENGTHS, HIERARCHIES, st.randoms(use_true_random=False))
def test_order_of_features_and_hidden_units_does_not_matter(
    skip: np.ndarray, kernel: np.ndarray, strength: float, hierarchy: float, random
) -> None:
    rows, columns = random.sample(range(D), D), random.sample(range(H), H)
    new_skip, new_kernel = prox(skip, kernel, strength, hierarchy)
    result = prox(skip[rows], kernel[rows][:, columns], strength, hierarchy)
    chex.assert_trees_all_close(
        result, (new_skip[jnp.array(rows)], new_kernel[jnp.array(rows)][:, jnp.array(columns)]),
        rtol=1e-5, atol=1e-6,
    )  # fmt: skip


@pytest.mark.slow
@few
@given(SKIPS, KERNELS, HIERARCHIES)
def test_more_strength_means_smaller_weights(
    skip: np.ndarray, kernel: np.ndarray, hierarchy: float
) -> None:
    before = [np.inf, np.inf]
    for strength in (0.0, 0.01, 0.3, 1.0, 4.0, 1e4, 1e9):
        after = [np.abs(np.asarray(a)) for a in prox(skip, kernel, strength, hierarchy)]
        for small, large in zip(after, before, strict=True):
            assert (small <= large + 1e-6).all()
        before = [a * (1 + 1e-5) for a in after]
    assert not before[0].any() and not before[1].any()


def test_no_hierarchy_is_the_group_lasso() -> None:
    rng = np.random.default_rng(3)
    skip, kernel = rng.normal(size=(D, C)), rng.normal(size=(D, H))
    norms = np.sqrt((skip**2).sum(1, keepdims=True))
    new_skip, new_kernel = prox(np.float32(skip), np.float32(kernel), 1.2, 0.0)
    np.testing.assert_allclose(new_skip, skip * np.maximum(1 - 1.2 / norms, 0), rtol=1e-5)
    assert not np.any(new_kernel)


def test_tiny_and_large_rows() -> None:
    """Rows of any size have finite results; they are 0 only if the direction is lost."""
    sizes = np.array([0.0, 1e-45, 1e-30, 1e-16, 1e-14, 1e-6, 1.0, 1e6, 1e12], np.float32)
    skip, kernel = sizes[:, None], np.ones((len(sizes), H), np.float32)
    new_skip, new_kernel = map(np.asarray, prox(skip, kernel, 0.0, 10.0))
    assert np.isfinite(new_skip).all() and np.isfinite(new_kernel).all()
    assert not new_skip[:4].any() and not new_kernel[:4].any()
    # 5 weights of 1: b = (|v| + M 5) / (1 + 5 M^2), where that is above |v|.
    np.testing.assert_allclose(new_skip[4:7, 0], [50 / 501, 50 / 501, 1.0], rtol=1e-5)
    np.testing.assert_array_equal(new_skip[7:], skip[7:])
    np.testing.assert_allclose(new_kernel[4:6], 500 / 501, rtol=1e-5)


def test_nan_stays_in_its_row() -> None:
    skip, kernel = np.ones((3, C), np.float32), np.ones((3, H), np.float32)
    skip[1, 0] = np.nan
    new_skip, new_kernel = prox(skip, kernel, 0.1, 0.5)
    assert np.isnan(new_skip).any(axis=1).tolist() == [False, True, False]
    assert np.isnan(new_kernel).any(axis=1).tolist() == [False, True, False]


def test_vmapped_equals_alone_and_one_compilation_serves_all_strengths() -> None:
    rng = np.random.default_rng(4)
    skips = rng.normal(size=(4, D, C)).astype(np.float32)
    kernels = rng.normal(size=(4, D, H)).astype(np.float32)
    strengths = np.float32([0.0, 0.1, 1.0, 5.0])
    together = jax.jit(jax.vmap(hier_prox, in_axes=(0, 0, 0, None)))(skips, kernels, strengths, 3.0)
    chex.clear_trace_counter()
    counted = jax.jit(chex.assert_max_traces(lambda *args: hier_prox(*args), n=1))
    for row in range(4):
        alone = counted(skips[row], kernels[row], strengths[row], np.float32(3.0))
        result = jax.tree.map(lambda leaf, row=row: leaf[row], together)
        chex.assert_trees_all_close(result, alone, rtol=1e-6, atol=1e-7)
