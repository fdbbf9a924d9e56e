"""BinMask and STG as feature selectors: equations, searches, and small real trainings.

Covers ``fsjax.sparsity.binmask``.
"""

from __future__ import annotations

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import fsjax
from fsjax.data import load
from fsjax.engine.loop import init_state, train_step
from fsjax.engine.search import threshold_for
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.sparsity import masked_weights

D, B = 5, 6


def start(method: Method, seed: int = 0, **changes) -> tuple[TrainState, Batch]:
    spec = Spec(D, 2, "classification", B, B, num_epochs=10, steps_per_epoch=1)._replace(**changes)
    rng = np.random.default_rng(seed)
    batch = Batch(
        jnp.asarray(rng.normal(size=(B, D)), jnp.float32),
        jnp.asarray(rng.integers(0, 2, B), jnp.int32),
        jnp.ones(B),
    )
    initialise = jax.jit(functools.partial(init_state, method, spec))
    return initialise(np.uint32(seed), batch, jnp.ones(D, bool)), batch


def softmax_loss(weights, x: np.ndarray, y: np.ndarray) -> float:
    (hidden, output) = (weights[f"FanInDense_{i}"]["Dense_0"] for i in (0, 1))
    z = np.tanh(x @ hidden["kernel"] + hidden["bias"]) @ output["kernel"] + output["bias"]
    z = z - z.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]))


@pytest.mark.slow
def test_binmask_loss_and_its_gradient() -> None:
    method = fsjax.methods.binmask(hidden=(4,), strength=0.2, search=False)
    state, batch = start(method)
    latents = jnp.array([0.3, -0.2, 0.0, -0.4, 0.9])
    params = state.params._replace(latents={"inputs": latents})
    (loss, aux), grads = jax.value_and_grad(method.loss, has_aux=True)(
        params, state, batch, jax.random.key(1)
    )
    x, y = np.asarray(batch.x, np.float64), np.asarray(batch.y)
    mask = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params.weights)
    expected = softmax_loss(weights, x * mask, y)
    np.testing.assert_allclose(loss, expected + 0.5 * 0.2 * 3, rtol=1e-5)
    chex.assert_trees_all_equal(aux["mask"], mask.astype(np.float32))

    # Straight through: the slope along the mask itself, and lambda where it is open.
    step = 1e-5
    for j in range(D):
        up, down = mask.copy(), mask.copy()
        up[j], down[j] = mask[j] + step, mask[j] - step
        slope = softmax_loss(weights, x * up, y) - softmax_loss(weights, x * down, y)
        expected_slope = slope / (2 * step) + 0.2 * mask[j]
        np.testing.assert_allclose(grads.latents["inputs"][j], expected_slope, rtol=1e-3, atol=1e-5)


def test_smoothed_mask_is_equation_6() -> None:
    method = fsjax.methods.binmask(
        hidden=(4,), warmup=0.0, strength=3.0, mask_learning_rate=5e-3, search=False
    )
    state, batch = start(method, num_epochs=30)
    smoothed, latents = np.zeros(D), np.full(D, 0.02)
    step = jax.jit(lambda s, k: train_step(method, s, batch, k)[0])
    for number in range(25):
        smoothed = 0.9 * smoothed + 0.1 * (latents >= 0)
        state = step(state, jax.random.key(number))
        latents = np.asarray(state.params.latents["inputs"])
        np.testing.assert_allclose(state.extra["smoothed"], smoothed, atol=1e-6)
    assert (latents < 0).any(), "a strong penalty closes columns"
    kept = smoothed >= 0.5
    changed = batch.x.at[:, ~kept].set(9.0)
    chex.assert_trees_all_equal(method.predict(state, batch.x), method.predict(state, changed))


def test_columns_of_equal_masks_are_ranked_by_their_latent_values() -> None:
    method = fsjax.methods.binmask(hidden=(4,), search=False)
    state, _ = start(method)
    params = state.params._replace(latents={"inputs": jnp.array([0.3, -0.2, 0.9, 0.1, 0.5])})
    smoothed = jnp.array([1.0, 1.0, 0.5, 0.5, 1.0])
    state = state.replace(params=params, extra={**state.extra, "smoothed": smoothed})
    scores = np.asarray(method.select(state).scores)
    assert np.argsort(-scores).tolist() == [4, 0, 1, 2, 3]


def test_masks_rest_during_the_warm_up() -> None:
    method = fsjax.methods.binmask(hidden=(4,), warmup=0.4, strength=3.0, search=False)
    state, batch = start(method)
    step = jax.jit(lambda s, k: train_step(method, s, batch, k)[0])
    for number in range(4):
        before, state = state, step(state, jax.random.key(number))
        chex.assert_trees_all_equal(before.params.latents, state.params.latents)
        assert not np.allclose(
            *(s.params.weights["FanInDense_0"]["Dense_0"]["kernel"] for s in (before, state))
        )
    state = step(state, jax.random.key(9))
    assert np.all(state.params.latents["inputs"] < 0.02)


def test_stg_loss_is_that_of_the_paper() -> None:
    method = fsjax.methods.stg(hidden=(4,), activation="tanh", strength=0.7, search=False)
    summed = fsjax.methods.stg(
        hidden=(4,), activation="tanh", strength=0.7 / D, search=False, penalty="sum"
    )
    state, batch = start(method)
    mu = np.array([0.4, -0.3, 0.0, -1.2, 0.7])
    params = {**state.params, "mu": jnp.asarray(mu, jnp.float32)}
    key = jax.random.key(3)
    loss, _ = method.loss(params, state, batch, jax.random.clone(key))
    halves = jax.random.split(jax.random.clone(key))
    noise = 0.5 * np.asarray(jax.random.normal(halves[0], (D,)))
    gates = np.clip(mu + 0.5 + noise, 0, 1)
    weights = jax.tree.map(np.asarray, params["weights"])
    data = softmax_loss(weights, np.asarray(batch.x) * gates, np.asarray(batch.y))
    expected = data + 0.7 * norm.cdf((mu + 0.5) / 0.5).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    same, _ = summed.loss(params, state, batch, jax.random.clone(key))
    np.testing.assert_allclose(same, loss, rtol=1e-5)
    chex.assert_trees_all_close(
        method.select(state.replace(params=params)).gates, np.clip(mu + 0.5, 0, 1), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["stg", "binmask", "auto_nfs", "sequential_attention"])
def test_l1_shrinks_weights_and_does_not_close_gates(name: str) -> None:
    """The L1 term is that of the weights; it has no gradient with respect to gates."""
    build = fsjax.methods.METHODS[name]
    plain, shrunk = (build(**{**build.registration.small, "l1": l1}) for l1 in (0.0, 0.5))
    state, batch = start(plain)
    state = state.replace(step=jnp.int32(5))  # after the warm-up

    def l1_term(params) -> jax.Array:
        with_l1, without = (
            method.loss(params, state, batch, jax.random.key(0))[0] for method in (shrunk, plain)
        )
        return with_l1 - without

    value, slopes = jax.jit(jax.value_and_grad(l1_term))(state.params)
    weights = state.params.weights if name == "binmask" else state.params["weights"]
    total = sum(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(weights) if leaf.ndim == 2)
    np.testing.assert_allclose(value, 0.5 * total, rtol=1e-4)
    for path, slope in jax.tree_util.tree_leaves_with_path(slopes):
        if "weights" not in str(path):
            np.testing.assert_allclose(slope, 0.0, atol=1e-5, err_msg=str(path))


@pytest.mark.parametrize("name", ["binmask", "auto_nfs"])
def test_networks_do_not_see_constant_columns(name: str) -> None:
    """Their gates may be open, and without scaling their values may be far from 0."""
    build = fsjax.methods.METHODS[name]
    method = build(**build.registration.small)
    state, batch = start(method)
    state = state.replace(feature_mask=jnp.arange(D) != 2)
    if name == "binmask":
        state = state.replace(extra={**state.extra, "smoothed": jnp.ones(D)})
    assert np.all(method.select(state).gates >= 0.5)

    @jax.jit
    def outputs_and_loss(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        loss, _ = method.loss(state.params, state, batch._replace(x=x), jax.random.key(0))
        return method.predict(state, x), loss

    chex.assert_trees_all_close(
        outputs_and_loss(batch.x), outputs_and_loss(batch.x.at[:, 2].add(9.0))
    )


def table(shuffled: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """300 rows, 30 columns, the classes by the signs of two of the first four."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 30)).astype(np.float32)
    y = ((x[:, 0] + x[:, 1] > 0).astype(int) * 2 + (x[:, 2] - x[:, 3] > 0)).astype(int)
    return x, rng.permutation(y) if shuffled else y


OPTIONS = dict(
    seeds=(0, 1, 2), num_epochs=40, batch_size=60, best_by="last", split="random", seed_axis="map"
)
METHODS = {
    "binmask": fsjax.methods.binmask(hidden=(16,), strength=5e-3, mask_learning_rate=4e-3),
    "stg": fsjax.methods.stg(hidden=(16,), strength=0.5, learning_rate=2e-2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_search_finds_the_columns_that_matter(name: str) -> None:
    results = fsjax.fit_sizes(METHODS[name], table(), (4, 8), **OPTIONS)
    for k, result in results.items():
        assert result.selected.shape == (3, k)
        assert all(len(set(row)) == k for row in result.selected.tolist())
        is_selected = np.isin(np.arange(4), result.selected)
        assert is_selected.all(), f"{name} at K = {k}: {result.selected}"
        closed = np.asarray(jax.vmap(METHODS[name].select)(result.states).gates)
        assert (result.metrics["exact_selection"] == 100.0).any()
        for row in range(3):
            if result.metrics["exact_selection"][row] == 100.0:
                assert threshold_for(result.gates[row], k) is not None
                threshold = result.states.extra["threshold"][row]
                chosen = np.flatnonzero(result.gates[row] >= threshold)
                assert sorted(chosen) == sorted(result.selected[row])
                np.testing.assert_array_equal(np.flatnonzero(closed[row]), chosen)
        assert np.all(result.metrics["search_steps"] >= 1)
    wrong = fsjax.fit(METHODS[name], table(shuffled=True), num_features=4, **OPTIONS)
    assert np.isin(wrong.selected, np.arange(4)).mean() < 0.7


@pytest.mark.slow
def test_a_search_is_the_same_alone_in_a_sweep_and_for_several_sizes() -> None:
    method = METHODS["binmask"]
    several = fsjax.fit_sizes(method, table(), (4, 8), **OPTIONS)[8]
    alone = fsjax.fit(method, table(), num_features=8, **{**OPTIONS, "seeds": (1,)})
    np.testing.assert_array_equal(several.metrics["strength"][1], alone.metrics["strength"][0])
    np.testing.assert_array_equal(several.metrics["search_steps"][1], alone.metrics["search_steps"])
    np.testing.assert_array_equal(several.selected[1], alone.selected[0])
    batched = fsjax.fit(method, table(), num_features=8, **{**OPTIONS, "seed_axis": "vmap"})
    np.testing.assert_allclose(batched.metrics["strength"], several.metrics["strength"], rtol=1e-3)


@pytest.mark.slow
def test_a_killed_search_continues(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, options = METHODS["binmask"], {**OPTIONS, "num_features": 4, "num_epochs": 20}
    uninterrupted = fsjax.fit(method, table(), **options)
    calls, train = [], fsjax.Plan.train

    def train_once(plan: fsjax.Plan, **arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(plan, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fsjax.Plan, "train", train_once)
        with pytest.raises(KeyboardInterrupt):
            fsjax.fit(method, table(), checkpoint_dir=tmp_path, **options)
    resumed = fsjax.fit(method, table(), checkpoint_dir=tmp_path, **options)
    chex.assert_trees_all_equal(resumed.selected, uninterrupted.selected)
    chex.assert_trees_all_equal(dict(resumed.metrics), dict(uninterrupted.metrics))
    assert resumed.cost["trained_epochs"] < uninterrupted.cost["trained_epochs"]


@pytest.mark.slow
def test_no_exact_selection_is_told() -> None:
    x, y = table()
    method = METHODS["binmask"]
    constant = np.concatenate([x[:, :3], np.ones((len(x), 5), np.float32)], axis=1)
    result = fsjax.fit(method, (constant, y), num_features=6, **{**OPTIONS, "num_epochs": 5})
    assert np.all(result.metrics["exact_selection"] == 0)
    assert all(set(row[:3]) == {0, 1, 2} for row in result.selected.tolist())


@pytest.mark.slow
def test_masked_weights_become_sparse_and_still_predict() -> None:
    data = load("digits")
    options = dict(seeds=(0,), num_features=10, num_epochs=12, batch_size=64, best_by="last")
    sparse = fsjax.methods.binmask(
        masked="weights",
        strength=1e-4,
        hidden=(32,),
        initial=0.05,
        mask_learning_rate=3e-3,
        finetune_epochs=4,
    )
    result = fsjax.fit(sparse, data, scaling="minmax", record_test=True, **options)
    sparsity = result.history["train/sparsity"][0]
    assert sparsity[0] < 0.4 < sparsity[-1] < 1
    np.testing.assert_array_equal(sparsity[8:], sparsity[8])
    assert result.metrics["embedded_accuracy"][0] > 85
    assert result.cost["params"] == 64 * 32 + 32 * 10
    kernels = masked_weights(jax.tree.map(lambda x: x[0], result.states.params))
    values = np.concatenate([np.ravel(k) for k in jax.tree.leaves(kernels) if k.ndim > 1])
    assert np.mean(values == 0) == pytest.approx(sparsity[-1], abs=1e-3)
