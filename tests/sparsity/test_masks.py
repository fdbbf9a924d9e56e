"""How many connections each layer gets, where they are, and which parameters are masked.

Covers ``fsjax.sparsity.trees``.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats
from bad_calls import bad_calls, refuses

from fsjax import sparsity
from fsjax.sparsity import masks

MLP_SHAPES = [(500, 1000), (1000, 1000), (1000, 1000), (1000, 2)]
CNN_SHAPES = [(3, 3, 1, 8), (3, 3, 8, 16), (256, 64), (64, 10)]
TINY_SHAPES = [(2, 2), (50, 40), (3, 4), (100, 7)]


def rigl_counts(shapes: list[tuple[int, ...]], density: float, kernel: bool) -> list[float]:
    """RigL's loop: the layer with the highest density above 1 becomes dense, one at a time."""
    dense: set[int] = set()
    while True:
        right, divisor, raw = 0.0, 0.0, {}
        for i, shape in enumerate(shapes):
            size = math.prod(shape)
            if i in dense:
                right -= size * (1 - density)
                continue
            right += size * density
            if kernel:
                raw[i] = sum(shape) / math.prod(shape)
            else:
                raw[i] = (shape[-2] + shape[-1]) / (shape[-2] * shape[-1])
            divisor += raw[i] * size
        if not raw:
            break
        epsilon = right / divisor
        worst = max(raw.values())
        if worst * epsilon <= 1 + 1e-9:
            break
        dense |= {i for i in raw if raw[i] == worst}
    return [
        math.prod(shape) * (1.0 if i in dense else epsilon * raw[i])
        for i, shape in enumerate(shapes)
    ]


@pytest.mark.parametrize("shapes", [MLP_SHAPES, CNN_SHAPES, TINY_SHAPES])
@pytest.mark.parametrize("density", [0.01, 0.05, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("kernel", [True, False])
def test_erdos_renyi_by_density_is_rigls_formula(shapes, density: float, kernel: bool) -> None:
    counts = sparsity.erdos_renyi_density_counts(shapes, density, kernel)
    expected = rigl_counts(shapes, density, kernel)
    np.testing.assert_allclose(counts, np.maximum(expected, 1), atol=0.5 + 1e-6)
    budget = density * sum(math.prod(shape) for shape in shapes)
    assert abs(sum(counts) - budget) <= len(shapes)


def test_a_layer_that_would_be_more_than_dense_gives_its_surplus_to_the_others() -> None:
    shapes = [(100, 100), (2, 2)]
    counts = sparsity.erdos_renyi_density_counts(shapes, 0.5)
    assert counts == [round(0.5 * 10_004) - 4, 4]


def test_kernels_count_by_all_dimensions_or_by_channels() -> None:
    shapes = [(3, 3, 64, 64), (64, 64)]
    with_kernel = sparsity.erdos_renyi_density_counts(shapes, 0.1, kernel=True)
    without = sparsity.erdos_renyi_density_counts(shapes, 0.1, kernel=False)
    # ERK: in the ratio of the sums of dimensions; ER: the same density for these two layers.
    assert with_kernel[0] / with_kernel[1] == pytest.approx(134 / 128, rel=0.01)
    assert without[0] / without[1] == pytest.approx(9, rel=0.01)


def test_epsilon_for_convolutions_counts_positions_as_inputs() -> None:
    # The dense layer would have more connections than places.
    assert sparsity.erdos_renyi_counts([(3, 3, 8, 16), (9, 2)], 2) == [2 * (72 + 16), 18]


@bad_calls(
    *((sparsity.uniform_counts, density, "density=") for density in (0.0, 1.1, float("nan"))),
    *((sparsity.erdos_renyi_density_counts, density, "density=") for density in (-0.1, 1.1)),
    *((sparsity.erdos_renyi_counts, epsilon, "epsilon=") for epsilon in (0, -1, float("nan"))),
)
def test_numbers_out_of_range(bad: tuple) -> None:
    refuses(lambda: bad[0](MLP_SHAPES, bad[1]), bad[2])


def test_every_random_mask_is_equally_likely() -> None:
    keys = jax.random.split(jax.random.key(1), 15_000)
    drawn = jax.jit(jax.vmap(lambda key: sparsity.random_mask(key, (2, 3), 2)))(keys)
    drawn = np.asarray(drawn).reshape(-1, 6)
    assert (drawn.sum(axis=1) == 2).all()
    pairs = itertools.combinations(range(6), 2)
    counts = [int((drawn[:, a] & drawn[:, b]).sum()) for a, b in pairs]
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_random_masks_have_the_exact_number(key: jax.Array, count: int) -> None:
    mask = sparsity.random_mask(key, (2, 3), count)
    assert mask.shape == (2, 3) and mask.dtype == bool and int(mask.sum()) == count


def tree() -> dict:
    """Parameters of a small network."""
    return {
        "Conv_0": {"bias": jnp.ones(4), "kernel": jnp.ones((3, 3, 1, 4))},
        "Dense_0": {"bias": jnp.ones(5), "kernel": jnp.ones((20, 5))},
        "head": [jnp.ones((5, 2))],
    }


def half(shapes: list[tuple[int, ...]]) -> list[int]:
    return sparsity.uniform_counts(shapes, 0.5)


def test_masks_have_exact_counts_and_biases_stay(key: jax.Array) -> None:
    params = tree()
    masks = sparsity.init_masks(key, params, half)
    chex.assert_trees_all_equal_shapes(masks, params)
    assert [int(n) for n in sparsity.count_active(masks)] == [4, 18, 5, 50, 5]
    assert float(sparsity.sparsity(masks)) == pytest.approx(0.5)
    masked = sparsity.apply_masks(params, masks)
    chex.assert_trees_all_equal(masked, jax.tree.map(lambda m: m.astype(jnp.float32), masks))


@pytest.mark.parametrize("dtype", [bool, jnp.int8, jnp.bfloat16, jnp.float8_e4m3fn])
def test_masked_parameters_keep_their_types(dtype: Any) -> None:
    params = {"w": jnp.ones((4, 6)), "more": jnp.ones((3, 2), dtype)}
    tx = sparsity.sparse(optax.sgd(0.1), sparsity.static(0.5), jax.random.key(0), "w")
    state = tx.init(params)
    closed = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), params)
    trees = (
        sparsity.apply_masks(params, closed),
        sparsity.mask_params(params, state),
        sparsity.forward_params(params, state),
        sparsity.to_numpy(params, closed),
    )
    chex.assert_trees_all_equal_shapes_and_dtypes(*trees, params)
    assert not trees[0]["more"].any() and trees[1]["more"].all()


def test_layers_and_keys_have_their_own_masks() -> None:
    params = {"a": jnp.ones((10, 10)), "b": jnp.ones((10, 10))}
    draw = jax.jit(jax.vmap(lambda key: sparsity.init_masks(key, params, half)))
    masks = draw(jax.random.split(jax.random.key(0), 2))
    flat = {np.asarray(m).tobytes() for leaf in masks.values() for m in leaf}
    assert len(flat) == 4


def test_path_filter_chooses_leaves(key: jax.Array) -> None:
    seen = []

    def where(path: tuple[str, ...], leaf: jax.Array) -> bool:
        seen.append(path)
        return path[0] == "Dense_0" and leaf.ndim == 2

    masks = sparsity.init_masks(key, tree(), half, where)
    assert [int(n) for n in sparsity.count_active(masks)] == [4, 36, 5, 50, 10]
    assert ("Conv_0", "kernel") in seen and ("head", "0") in seen
    assert float(sparsity.sparsity(masks, where)) == pytest.approx(0.5)
    refuses(lambda: sparsity.sparsity(masks, "Conv_0/kernel"), "Dense_0/kernel", "where=")


def test_a_filter_that_chooses_nothing_names_what_there_is(key: jax.Array) -> None:
    nothing = partial(sparsity.init_masks, key, tree(), half, lambda path, leaf: False)
    refuses(nothing, "Conv_0/bias, Conv_0/kernel", "head/0")
    refuses(lambda: masks.masked_leaves({"bias": jnp.ones(3)}), "chooses no parameter")
