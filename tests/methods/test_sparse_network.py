"""The networks that rewire themselves: rules and gradients against NumPy, and what they learn."""

from __future__ import annotations

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.test_util import check_grads

import fsjax
from fsjax.data import load
from fsjax.engine.loop import Arrays, train_epoch
from fsjax.errors import ConfigError
from fsjax.method import CONNECTION_EPOCHS, Batch, Method, Spec, TrainState
from fsjax.methods import sparse_network as module
from fsjax.methods.sparse_network import Rewiring, sparse_network
from fsjax.sparsity import Rewired, drop, erdos_renyi_counts, grow

N, B, D, C = 29, 8, 13, 3
SIZES = dict(hidden=(8,), epsilon=1.5)
SHAPES = [(D, 8), (8, C)]
DEEPER = dict(hidden=(8, 6), epsilon=1.5)


def spec_for(task: str = "classification", **changes) -> Spec:
    outputs = {"classification": C, "reconstruction": D, "regression": C}[task]
    return Spec(D, outputs, task, N, B, num_epochs=8)._replace(**changes)


def rows(task: str = "classification") -> Batch:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(N, D)), jnp.float32)
    y = {
        "classification": jnp.asarray(rng.integers(0, C, N), jnp.int32),
        "reconstruction": x,
        "regression": jnp.asarray(rng.normal(size=(N, C)), jnp.float32),
    }[task]
    return Batch(x, y, jnp.ones(N))


@functools.cache
def start(spec: Spec, hidden: tuple[int, ...]) -> TrainState:
    method = fsjax.methods.static_sparse(hidden=hidden, epsilon=1.5)
    return jax.jit(method.init, static_argnames="spec")(jax.random.key(0), spec=spec)


def some_state(method: Method, spec: Spec | None = None) -> TrainState:
    """As after an epoch: biases and the momentum of active connections are not 0."""
    options = dict(method.settings)
    # All methods of this kind start alike.
    state = start(spec or spec_for(), options["hidden"])
    rng = np.random.default_rng(0)

    def like(leaf: jax.Array) -> jax.Array:
        return jnp.asarray(rng.normal(size=leaf.shape), jnp.float32)

    return state.replace(
        epoch=jnp.int32(1),
        params={
            name: {**layer, "bias": 0.3 * like(layer["bias"])}
            for name, layer in state.params.items()
        },
        opt_state=optax.tree_utils.tree_map_params(
            method.optimizer,
            lambda leaf, mask: jnp.where(mask, like(leaf), 0),
            state.opt_state,
            state.masks,
        ),
        hyper={**state.hyper, "drop_fraction": jnp.float32(options.get("drop_fraction", 0))},
        extra={"search": jnp.array(False)} if "patience" in options else {},
    )


def change(method: Method, state: TrainState, task: str = "classification", seed: int = 3):
    """The state after ``after_epoch`` with the key of this seed."""
    return jax.jit(method.after_epoch)(state, rows(task), jax.random.key(seed))


def kernels(tree) -> list[np.ndarray]:
    return [np.array(tree[f"layer_{i}"]["kernel"]) for i in range(len(tree))]


def momentum(state: TrainState) -> list[np.ndarray]:
    return kernels(optax.tree_utils.tree_get(state.opt_state, "trace"))


def forward(params, x: np.ndarray) -> list[np.ndarray]:
    """Activations of a ReLU network in NumPy and float64, with plain outputs."""
    values = [np.asarray(x, np.float64)]
    for i, weight in enumerate(kernels(params)):
        y = values[-1] @ weight.astype(np.float64) + np.asarray(params[f"layer_{i}"]["bias"])
        values.append(y if i == len(params) - 1 else np.maximum(y, 0))
    return values


def softmax(logits: np.ndarray) -> np.ndarray:
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def slopes(params, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Gradients of the mean cross-entropy with respect to all weights, in NumPy."""
    values, weights = forward(params, x), kernels(params)
    back = (softmax(values[-1]) - np.eye(C)[y]) / len(y)
    found = []
    for i in reversed(range(len(weights))):
        found.insert(0, values[i].T @ back)
        back = back @ weights[i].T * (values[i] > 0)
    return found


def top(scores: np.ndarray, number: int, among: np.ndarray) -> np.ndarray:
    """The highest scores; ties go to the lowest position."""
    flat = np.where(among, scores, -np.inf).ravel()
    chosen = np.zeros(flat.size, bool)
    chosen[np.argsort(-flat, kind="stable")[:number]] = True
    return chosen.reshape(scores.shape) & among


def dropped_by_magnitude(weight: np.ndarray, mask: np.ndarray, fraction: float) -> np.ndarray:
    number = int(np.floor(fraction * mask.sum() + 1e-3))
    return top(-np.abs(weight), number, mask)


def cosines(params, x: np.ndarray, task: str) -> list[np.ndarray]:
    values = forward(params, x)
    if task == "classification":
        values[-1] = softmax(values[-1])
    unit = [v / np.maximum(np.linalg.norm(v, axis=0), 1e-6) for v in values]
    return [np.abs(a.T @ b) for a, b in zip(unit[:-1], unit[1:], strict=True)]


def random_rows(key: jax.Array, task: str = "classification") -> Batch:
    """The batch that a change with this key looks at."""
    return module.random_batch(jax.random.split(key)[1], rows(task), B)


def test_both_forms_train_alike() -> None:
    states, data = [], rows()
    arrays = Arrays(*data, data.x[:5], data.y[:5], data.x[:0], data.y[:0])
    for form in ("dense", "coordinates"):
        method = sparse_network(
            "x",
            density=None,
            rewiring=Rewiring(drop.magnitude, grow.similar_or_random, similarity="cosine"),
            l2=0.01,
            input_noise=0.1,
            form=form,
            **SIZES,
        )
        state = jax.jit(method.init, static_argnames="spec")(jax.random.key(0), spec=spec_for())
        state = state.replace(trace=jnp.zeros((len(CONNECTION_EPOCHS), D)))
        small = jax.eval_shape(method.compress, state).params["layer_0"]["kernel"]
        assert small.ndim == (1 if form == "coordinates" else 2)
        first = kernels(state.masks)
        epoch = jax.jit(lambda s, m=method: train_epoch(m, s, arrays))
        for _ in range(5):
            state, metrics = epoch(state)
            assert metrics["train/topology_change"] > 2
        states.append((state, metrics))
        assert all((a != b).any() for a, b in zip(first, kernels(state.masks), strict=True))
        for mask, *of_inactive in zip(
            *map(kernels, (state.masks, state.params)), momentum(state), strict=True
        ):
            assert not any(leaf[~mask].any() for leaf in of_inactive)
    # Sums in another order, over twenty steps.
    (dense, of_dense), (sparse, of_sparse) = states
    chex.assert_trees_all_equal(dense.masks, sparse.masks)
    chex.assert_trees_all_close((dense.params, dense.best), (sparse.params, sparse.best), rtol=1e-4)
    chex.assert_trees_all_close(dense.opt_state, sparse.opt_state, rtol=1e-3, atol=1e-6)
    chex.assert_trees_all_close(of_dense, of_sparse, rtol=1e-4)


@pytest.mark.parametrize("form", ["dense", "coordinates"])
def test_loss_and_its_gradient(form: str) -> None:
    options = dict(density=None, rewiring=None, l2=0.1, form=form, **SIZES)
    method, data = sparse_network("x", **options), rows()
    state = some_state(fsjax.methods.static_sparse(**SIZES))
    state = state.replace(hyper={**state.hyper, "l2": jnp.float32(0.1)})
    small = jax.jit(method.compress)(state)
    value, gradient = jax.jit(jax.value_and_grad(lambda p, s: method.loss(p, s, data, None)[0]))(
        small.params, small
    )
    x, y = np.asarray(data.x), np.asarray(data.y)
    chances = softmax(forward(state.params, x)[-1])[np.arange(N), y]
    penalty = 0.05 * sum((weight.astype(np.float64) ** 2).sum() for weight in kernels(state.params))
    assert float(value) == pytest.approx(-np.log(chances).mean() + penalty, rel=1e-5)
    for found, slope, weight, mask in zip(
        kernels(gradient),
        slopes(state.params, x, y),
        *map(kernels, (state.params, state.masks)),
        strict=True,
    ):
        expected = np.where(mask, slope + 0.1 * weight, 0)
        expected = expected if form == "dense" else expected[mask]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)

    # Finite differences, where the activation has no corners.
    method = sparse_network("x", activation="sigmoid", **options)
    loss = jax.jit(lambda params: method.loss(params, small, data, None)[0])
    check_grads(loss, (small.params,), 1, modes=["rev"], atol=1e-2, rtol=1e-2, eps=1e-2)


def test_layers_of_low_density_take_coordinates_by_themselves() -> None:
    found = [module.by_coordinates("auto", density) for density in (0.001, 0.02, 0.021, 1.0)]
    assert found == [True, True, False, False]
    assert module.by_coordinates("coordinates", 1.0) and not module.by_coordinates("dense", 0.001)


#: Of which what was dropped may come back at once.
SIMILAR = fsjax.methods.ctre_sim(grow="similar", drop_fraction=0.5, **SIZES)


def test_new_connections_start_anew_and_regrown_ones_stay() -> None:
    state = some_state(SIMILAR)
    after = change(SIMILAR, state)
    regrown, drawn = 0, []
    for (fan_in, _), old, new, weight, new_weight, moment, new_moment in zip(
        SHAPES,
        kernels(state.masks),
        kernels(after.masks),
        kernels(state.params),
        kernels(after.params),
        momentum(state),
        momentum(after),
        strict=True,
    ):
        assert new.sum() == old.sum()
        fresh, kept = new & ~old, new & old
        regrown += int((kept & dropped_by_magnitude(weight, old, 0.5)).sum())
        chex.assert_trees_all_equal(new_weight[kept], weight[kept])
        chex.assert_trees_all_equal(new_moment[kept], moment[kept])
        assert not new_weight[~new].any() and not new_moment[~kept].any()
        drawn.append(new_weight[fresh] / np.sqrt(6 / fan_in))
    assert regrown > 0
    drawn = np.concatenate(drawn)
    assert drawn.size > 10 and len(np.unique(drawn)) == drawn.size
    assert np.abs(drawn).max() <= 1 and np.ptp(drawn) > 1.2
    for layer in after.params:
        chex.assert_trees_all_equal(after.params[layer]["bias"], state.params[layer]["bias"])


def test_nothing_is_rewired_after_the_last_epoch() -> None:
    state = some_state(SIMILAR)
    for epoch, changes in ((7, True), (8, False)):
        state = state.replace(epoch=jnp.int32(epoch))
        after = change(SIMILAR, state)
        assert (kernels(after.masks)[0] != kernels(state.masks)[0]).any() == changes
    chex.assert_trees_all_equal(after, state)


def test_snip_keeps_what_the_loss_depends_on_most() -> None:
    method = fsjax.methods.snip(**SIZES)
    state = jax.jit(method.init, static_argnames="spec")(jax.random.key(0), spec=spec_for())
    assert all(mask.all() for mask in kernels(state.masks))
    pruned = jax.jit(method.start)(state, rows(), jax.random.key(3))
    batch = module.random_batch(jax.random.key(3), rows(), B)
    gradients = slopes(state.params, np.asarray(batch.x), np.asarray(batch.y))
    counts = erdos_renyi_counts(SHAPES, 1.5)
    for mask, weight, left, slope, count in zip(
        kernels(pruned.masks),
        kernels(state.params),
        kernels(pruned.params),
        gradients,
        counts,
        strict=True,
    ):
        expected = top(np.abs(slope * weight), count, np.ones_like(mask))
        chex.assert_trees_all_equal(mask, expected)
        assert mask.sum() == count
        chex.assert_trees_all_equal(left, np.where(mask, weight, 0))


def test_rigl_grows_where_the_dense_gradient_is_largest() -> None:
    method = fsjax.methods.rigl(drop_fraction=0.3, **SIZES)
    state = some_state(method)
    after = change(method, state)
    batch = random_rows(jax.random.key(3))
    gradients = slopes(state.params, np.asarray(batch.x), np.asarray(batch.y))
    for old, new, weight, left, slope in zip(
        *map(kernels, (state.masks, after.masks, state.params, after.params)),
        gradients,
        strict=True,
    ):
        dropped = dropped_by_magnitude(weight, old, 0.3)
        kept = old & ~dropped
        grown = top(np.abs(slope), int(dropped.sum()), ~kept)
        chex.assert_trees_all_equal(new, kept | grown)
        # They start at 0.
        assert (new & ~old).any() and not left[new & ~old].any()


@pytest.mark.parametrize(("task", "fraction"), [("classification", 1.0), ("regression", 0.4)])
def test_ctre_grows_between_similar_neurons(task: str, fraction: float) -> None:
    method = fsjax.methods.ctre_sim(grow="similar", similarity_fraction=fraction, **DEEPER)
    state, data = some_state(method, spec_for(task)), rows(task)
    after = change(method, state, task)
    x = module.some_rows(jax.random.split(jax.random.key(3))[1], data.x, fraction)
    assert len(np.unique(x, axis=0)) == len(x) == round(fraction * N)
    # Class probabilities are the last activations; other tasks have plain outputs.
    similarities = cosines(state.params, np.asarray(x), task)
    for old, new, weight, similarity in zip(
        *map(kernels, (state.masks, after.masks, state.params)), similarities, strict=True
    ):
        dropped = dropped_by_magnitude(weight, old, 0.2)
        kept = old & ~dropped
        chex.assert_trees_all_equal(new, kept | top(similarity, int(dropped.sum()), ~kept))


def test_ctre_sim_takes_random_connections_for_similar_ones_just_dropped() -> None:
    method = fsjax.methods.ctre_sim(drop_fraction=0.5, **SIZES)
    state = some_state(method)
    after = change(method, state)
    rejected = 0
    for old, new, weight, similarity in zip(
        *map(kernels, (state.masks, after.masks, state.params)),
        cosines(state.params, np.asarray(rows().x), "classification"),
        strict=True,
    ):
        dropped = dropped_by_magnitude(weight, old, 0.5)
        picks = top(similarity, int(dropped.sum()), ~old | dropped)
        assert new[picks & ~dropped].all() and new[old & ~dropped].all()
        assert new.sum() == old.sum()
        rejected += int((picks & dropped).sum())
    assert rejected > 0


@pytest.mark.parametrize("name", ["cosine", "euclidean"])
def test_similarities_add_up_over_chunks_of_rows(name: str, monkeypatch) -> None:
    def activations(x: jax.Array) -> list[jax.Array]:
        return [x, jnp.tanh(x[:, :5] - 0.3), jnp.exp(x[:, 2:4])]

    def similarities(x: jax.Array) -> list[jax.Array]:
        return module.layer_similarities(activations, x, name)

    whole = jax.jit(similarities)(rows().x)
    # 29 rows: five chunks of six rows, the last with one too many.
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    found = jax.jit(lambda x: similarities(x))(rows().x)
    chex.assert_trees_all_close(found, whole, rtol=1e-5, atol=1e-6)


def test_every_layer_gets_its_own_similarity(monkeypatch) -> None:
    # With eleven layers, as layer_10 comes before layer_2 in the order of words.
    method = fsjax.methods.ctre_sim(hidden=tuple(range(5, 15)), epsilon=1.0)
    seen = []

    def no_change(layer, *_) -> Rewired:
        assert layer.similarity.shape == layer.weight.shape
        seen.append(layer.weight.shape)
        return Rewired(layer.mask, layer.mask & ~layer.mask)

    monkeypatch.setattr(module, "rewire", no_change)
    spec = spec_for()
    state = jax.eval_shape(lambda key: method.init(key, spec), jax.random.key(0))
    jax.eval_shape(method.after_epoch, state, rows(), jax.random.key(0))
    assert len(seen) == 11


#: After which epochs, with the best epoch so far, CTRE_seq has switched, for patience 2.
STALLING = [(1, 1, False), (2, 1, False), (3, 3, False), (4, 3, False), (5, 3, True), (6, 6, True)]
WITHOUT_VALIDATION = [(2, 0, False), (7, 0, False)]
HALF = [(1, 1, False), (3, 1, False), (4, 4, True), (5, 5, True), (7, 7, True)]


@pytest.mark.parametrize(
    ("order", "sequence"),
    [
        ("similar_first", STALLING),
        ("similar_first", WITHOUT_VALIDATION),
        ("random_first", STALLING),
        ("half", HALF),
    ],
)
def test_ctre_seq_switches_once(order: str, sequence: list[tuple[int, int, bool]]) -> None:
    method = fsjax.methods.ctre_seq(order=order, patience=2, **SIZES)
    state = some_state(method)
    for epoch, best, switched in sequence:
        best = state.best._replace(epoch=jnp.int32(best))
        state = state.replace(epoch=jnp.int32(epoch), best=best)
        after = change(method, state, seed=epoch)
        assert bool(after.extra["search"]) == switched
        similarities = cosines(state.params, np.asarray(rows().x), "classification")
        follows = []
        for old, new, weight, similarity in zip(
            *map(kernels, (state.masks, after.masks, state.params)), similarities, strict=True
        ):
            dropped = dropped_by_magnitude(weight, old, 0.2)
            kept = old & ~dropped
            expected = kept | top(similarity, int(dropped.sum()), ~kept)
            follows.append((new == expected).all())
        at_random = switched == (order == "similar_first")
        assert not follows[0] if at_random else all(follows)
        state = after


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        ("set", dict(hidden=()), "hidden is empty; give the width of at least one"),
        ("set", dict(hidden=(5, 2.5)), "a width of hidden=2.5; choose a whole number"),
        ("set", dict(density=0.1), "epsilon=1.0 and density=0.1; set one of them to 0"),
        ("set", dict(epsilon=-1.0), "epsilon=-1.0; choose a value above 0"),
        ("set", dict(epsilon=None, density=2.0), "density=2.0; choose a value above 0 and at most"),
        ("set", dict(drop="magnitudes"), "drop='magnitudes': did you mean 'magnitude'"),
        ("set", dict(drop_fraction=1.2), "drop_fraction=1.2; choose a share from 0 to 1"),
        ("set", dict(grow_init="zero"), "grow_init='zero': did you mean 'zeros'"),
        ("set", dict(l2=-1.0), "l2=-1.0; choose 0 or more"),
        ("set", dict(l2=float("inf")), "l2=inf; choose 0 or more"),
        ("set", dict(learning_rate=-0.1), "learning_rate=-0.1; choose a value above 0"),
        ("set", dict(momentum=1.0), "momentum=1.0; choose a value from 0 to below 1"),
        ("ctre_sim", dict(grow="similiar"), "did you mean 'similar'"),
        ("ctre_sim", dict(drop="lowest"), "'lowest_similarity'"),
        ("ctre_sim", dict(similarity="cosinus"), "did you mean 'cosine'"),
        ("ctre_sim", dict(similarity_fraction=0.0), "similarity_fraction=0.0; choose a share in"),
        ("ctre_sim", dict(similarity_fraction=1.1), r"choose a share in \(0, 1\]"),
        ("ctre_seq", dict(order="similar"), "did you mean 'similar_first'"),
        ("ctre_seq", dict(patience=0), "patience=0; choose a whole number, at least 1"),
        ("static_sparse", dict(epsilon=0), "static_sparse trains a sparse network"),
        ("set", dict(epsilon=0, density=0), "set trains a sparse network; give epsilon or density"),
        ("snip", dict(epsilon=None), "snip trains a sparse network; give epsilon or density"),
        ("quick_selection", dict(initialisation="glorott"), "did you mean 'glorot'"),
        ("quick_selection", dict(input_noise=-0.1), "input_noise=-0.1; choose 0 or more"),
    ],
)
def test_bad_settings_are_named(build: str, options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        getattr(fsjax.methods, build)(**options)


def test_bad_forms_and_activations_are_named() -> None:
    options = dict(hidden=(5,), epsilon=1.0, density=None, rewiring=None)
    with pytest.raises(ConfigError, match="form='denes': did you mean 'dense'"):
        sparse_network("x", form="denes", **options)
    with pytest.raises(ConfigError, match="activation='rellu': did you mean 'relu'"):
        sparse_network("x", activation="rellu", **options)
    with pytest.raises(ConfigError, match="quick_selection is for the task reconstruction"):
        fsjax.fit(
            fsjax.methods.quick_selection(), load("digits"), num_features=5, task="classification"
        )


def fit(name: str, data, **options) -> fsjax.FitResult:
    method = getattr(fsjax.methods, name)(hidden=(64,), learning_rate=0.03, **options)
    return fsjax.fit(
        method,
        data,
        seeds=(0, 1, 2, 3),
        num_features=10,
        num_epochs=80,
        batch_size=50,
        split="random",
        scaling="standard",
        best_by="accuracy",
    )


def test_ctre_sim_finds_what_a_fixed_topology_misses() -> None:
    # Classes are corners of a hypercube: no column tells alone, and connections are few.
    data = load(
        "madelon_like",
        num_samples=1000,
        num_features=60,
        num_informative=4,
        num_redundant=6,
        flip_y=0.0,
    )
    wrong = np.random.default_rng(1).permutation(data.y)
    search = fit("ctre_sim", (data.X, data.y), epsilon=1.0)
    accuracy, fixed, chance = (
        result.metrics["embedded_accuracy"]
        for result in (
            search,
            fit("static_sparse", (data.X, data.y), epsilon=1.0),
            fit("ctre_sim", (data.X, wrong), epsilon=1.0),
        )
    )
    assert search.history["train/sparsity"].min() > 0.95
    assert accuracy.mean() > fixed.mean() + 8
    assert abs(chance.mean() - 50) < 6
    found = np.isin(search.selected, np.array(data.informative)).mean(axis=1)
    assert found.min() >= 0.8


@pytest.mark.parametrize("name", ["set", "ctre_sim"])
def test_digits(name: str) -> None:
    data = load("digits")
    method = getattr(fsjax.methods, name)(hidden=(64,), density=0.2, epsilon=0)
    options = dict(num_features=20, num_epochs=60, batch_size=32, best_by="accuracy")
    result = fsjax.fit(method, data, seeds=(0, 1), **options)
    assert result.metrics["embedded_accuracy"].min() > 90
    assert result.cost["params"] == 819 + 128
