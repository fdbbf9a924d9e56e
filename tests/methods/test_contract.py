"""One table of all methods, one contract that each of them keeps."""

from __future__ import annotations

import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.engine.loop import Arrays, train_epoch, train_step
from fsjax.method import CONNECTION_EPOCHS, Batch, Method, Spec, TrainState
from fsjax.methods import METHODS
from fsjax.selection import distinct_top_k
from fsjax.sparsity import count_active

#: D is unlike any other size, so that axes over columns can be told from others.
N, B, D, K, C = 29, 8, 13, 4, 3

#: Small versions of every registered method; a new method joins here.
TABLE: dict[str, Callable[[], Method]] = {
    "cae": lambda: fsjax.methods.cae(K, hidden=(6,)),
    "gjsd": lambda: fsjax.methods.gjsd(K, hidden=(6,)),
    "ip_cae": lambda: fsjax.methods.ip_cae(K, hidden=(6,), embedding_dim=5),
    "ip_cae-row": lambda: fsjax.methods.ip_cae(K, hidden=(6,), embedding_dim=5, noise="row"),
    "ip_cae-diagonal-gjsd": lambda: fsjax.methods.ip_cae(
        K, hidden=(), weights="diagonal", gjsd_weight=0.1, anneal="step"
    ),
    "ip_cae-scalar-dropout": lambda: fsjax.methods.ip_cae(
        K, hidden=(6, 5), weights="scalar", dropout=0.2, layer_norm=False
    ),
    "random_selection": lambda: fsjax.methods.random_selection(K, hidden=(6,)),
    "fisher_score": lambda: fsjax.methods.fisher_score(K, hidden=(6,)),
    "wast": lambda: fsjax.methods.wast(hidden=(6,), density=0.4),
    "wast-epoch": lambda: fsjax.methods.wast(
        hidden=(6,), density=0.4, update="epoch", drop="per_sign", accumulate=False
    ),
    "quick_selection": lambda: fsjax.methods.quick_selection(hidden=(6,), density=0.4),
    "set": lambda: fsjax.methods.set(hidden=(6, 5), epsilon=1.5),
    "rigl": lambda: fsjax.methods.rigl(hidden=(6, 5), epsilon=1.5),
    "snip": lambda: fsjax.methods.snip(hidden=(6, 5), epsilon=1.5),
    "ctre_seq": lambda: fsjax.methods.ctre_seq(hidden=(6, 5), epsilon=1.5, patience=1),
    "ctre_sim": lambda: fsjax.methods.ctre_sim(hidden=(6, 5), epsilon=1.5),
    "static_sparse": lambda: fsjax.methods.static_sparse(hidden=(6, 5), density=0.4, epsilon=None),
    "neural_network": lambda: fsjax.methods.neural_network(
        hidden=(6, 5), batch_norm=True, dropout=0.1, l1=1e-3
    ),
    "binmask": lambda: fsjax.methods.binmask(K, hidden=(6,), warmup=0.0, search=False),
    "binmask-weights": lambda: fsjax.methods.binmask(
        masked="weights", hidden=(6, 5), finetune_epochs=1, optimizer="adamw"
    ),
    "lassonet": lambda: fsjax.methods.lassonet(
        K, hidden=(6, 5), dense_epochs=2, path_epochs=1, path_multiplier=2.0
    ),
    "lassonet-until": lambda: fsjax.methods.lassonet(
        K, hidden=(6,), dense_epochs=1, path_epochs=1, until=1
    ),
    "probmask": lambda: fsjax.methods.probmask(
        hidden=(6, 5), density=0.3, finetune_epochs=1, batch_norm=True
    ),
    "stg": lambda: fsjax.methods.stg(K, hidden=(6,), search=False),
    "dense": lambda: fsjax.methods.dense(hidden=(6, 5)),
}

every_method = pytest.mark.parametrize("name", TABLE)
#: Variants of a method take its first task only: programs take seconds to compile.
every_method_and_task = pytest.mark.parametrize(
    ("name", "task"),
    [
        (name, task)
        for name, build in TABLE.items()
        for task in (build().tasks[:1] if "-" in name else build().tasks)
    ],
)


def spec_for(task: str, **changes) -> Spec:
    outputs = {"classification": C, "reconstruction": D, "regression": 2}[task]
    return Spec(D, outputs, task, N, B, num_epochs=3)._replace(**changes)


def batch_for(task: str, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    x = jnp.asarray(rng.normal(size=(B, D)), jnp.float32)
    y = {
        "classification": jnp.asarray(rng.integers(0, C, B), jnp.int32),
        "reconstruction": x,
        "regression": jnp.asarray(rng.normal(size=(B, 2)), jnp.float32),
    }[task]
    return Batch(x, y, jnp.ones(B))


@functools.partial(jax.jit, static_argnames=("method", "task"))
def _init(method: Method, task: str, seed: jax.Array) -> TrainState:
    return method.init(jax.random.key(seed), spec_for(task))


def init(method: Method, task: str, seed: int = 0) -> TrainState:
    return _init(method, task, jnp.uint32(seed))


def test_every_method_is_in_the_table() -> None:
    assert set(METHODS) <= {name.split("-")[0] for name in TABLE}


@every_method_and_task
def test_one_program_alone_scanned_and_vmapped(name: str, task: str) -> None:
    method, batch = TABLE[name](), batch_for(task)
    keys = jax.random.split(jax.random.key(5), 3)
    chex.clear_trace_counter()
    step = jax.jit(chex.assert_max_traces(lambda s, b, k: train_step(method, s, b, k)[0], n=1))

    def run(state: TrainState) -> TrainState:
        return jax.lax.scan(lambda s, k: train_step(method, s, batch, k), state, keys)[0]

    def maybe_step(state: TrainState) -> TrainState:
        # lax.cond refuses branches whose outputs differ in any type.
        return jax.lax.cond(True, lambda s: train_step(method, s, batch, keys[0])[0], _same, state)

    alone = [init(method, task, seed) for seed in (0, 1)]
    jax.eval_shape(maybe_step, alone[0])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    together = jax.jit(jax.vmap(run))(stacked)
    for seed, state in enumerate(alone):
        for key in jax.random.split(jax.random.key(5), 3):
            new = step(state, batch, key)
            chex.assert_trees_all_equal_shapes_and_dtypes(new, state)
            state = new
        assert int(state.step) == 3
        found = jax.tree.map(lambda leaf, row=seed: leaf[row], together.params)
        chex.assert_trees_all_close(found, state.params, rtol=1e-4, atol=1e-5)


def _same(state: TrainState) -> TrainState:
    return state


@every_method_and_task
def test_outputs_scores_and_selection(name: str, task: str) -> None:
    method, batch = TABLE[name](), batch_for(task)
    state = init(method, task)
    outputs = method.predict(state, batch.x)
    chex.assert_shape(outputs, (B, state.spec.num_outputs))
    chex.assert_tree_all_finite(outputs)
    scores = method.score(state)
    chex.assert_shape(scores, (D,))
    chex.assert_tree_all_finite(scores)
    picks = method.picks(state) if method.picks else None
    for k in (1, K, D):
        chosen = np.asarray(distinct_top_k(scores, k, picks, state.feature_mask))
        assert len(set(chosen.tolist())) == k
    if method.picks is not None:
        assert set(np.asarray(picks)) <= set(np.asarray(distinct_top_k(scores, K, picks)).tolist())


@every_method_and_task
def test_only_selected_columns_matter(name: str, task: str) -> None:
    method, batch = TABLE[name](), batch_for(task)
    state = init(method, task)
    if method.picks is None:
        pytest.skip("the method predicts from all columns")
    unused = np.setdiff1d(np.arange(D), np.asarray(method.picks(state)))
    changed = batch.x.at[:, unused].set(99.0)
    chex.assert_trees_all_equal(method.predict(state, batch.x), method.predict(state, changed))


@every_method
def test_permuted_columns_permute_the_selection(name: str) -> None:
    method = TABLE[name]()
    batch, state = batch_for(method.tasks[0]), init(method, method.tasks[0])
    if method.start is not None:
        # Until then all scores may be equal, and ties go by the order of the columns.
        state = method.start(state, batch, jax.random.key(1))
    order = np.random.default_rng(3).permutation(D)

    def permute(leaf: jax.Array) -> jax.Array:
        for axis, size in enumerate(leaf.shape):
            if size == D:
                leaf = jnp.take(leaf, order, axis=axis)
        return leaf

    permuted = state.replace(
        params=jax.tree.map(permute, state.params),
        masks=jax.tree.map(permute, state.masks),
        extra=jax.tree.map(permute, state.extra),
        feature_mask=permute(state.feature_mask),
    )
    chex.assert_trees_all_close(method.score(permuted), method.score(state)[order], rtol=1e-5)
    outputs = method.predict(state, batch.x)
    chex.assert_trees_all_close(
        method.predict(permuted, batch.x[:, order]),
        outputs[:, order] if outputs.shape[1] == D else outputs,
        rtol=1e-4,
        atol=1e-5,
    )
    if method.picks is not None:
        found = order[np.asarray(method.picks(permuted))]
        chex.assert_trees_all_equal(found, np.asarray(method.picks(state)))


@every_method
def test_ruled_out_columns_are_not_picked(name: str) -> None:
    method = TABLE[name]()
    state = init(method, method.tasks[0])
    mask = jnp.arange(D) >= D - K
    state = state.replace(feature_mask=mask)
    picks = method.picks(state) if method.picks else None
    chosen = distinct_top_k(method.score(state), K, picks, mask)
    assert sorted(np.asarray(chosen).tolist()) == list(range(D - K, D))
    if picks is not None:
        assert set(np.asarray(picks).tolist()) <= set(range(D - K, D))


@every_method
def test_padding_rows_have_no_weight(name: str) -> None:
    method = TABLE[name]()
    state = init(method, method.tasks[0])
    batch, key = batch_for(method.tasks[0]), jax.random.key(2)
    padded = batch._replace(weight=(jnp.arange(B) < 5).astype(jnp.float32))
    other = padded._replace(x=padded.x.at[5:].set(50.0), y=padded.y.at[5:].set(0))
    loss = jax.jit(lambda b, k: method.loss(state.params, state, b, k)[0])
    chex.assert_trees_all_close(loss(padded, key), loss(other, jax.random.clone(key)), rtol=1e-5)
    assert not np.isclose(loss(padded, jax.random.clone(key)), loss(batch, jax.random.clone(key)))


@every_method_and_task
def test_cheaper_form_is_the_same_network(name: str, task: str) -> None:
    method, batch = TABLE[name](), batch_for(task)
    state = init(method, task)
    compressed = jax.jit(method.compress)(state)
    chex.assert_trees_all_equal(method.expand(compressed), state)
    chex.assert_trees_all_close(
        method.predict(compressed, batch.x), method.predict(state, batch.x), rtol=1e-4, atol=1e-6
    )


@every_method
def test_masks_keep_their_counts_and_mask(name: str) -> None:
    method = TABLE[name]()
    task = method.tasks[0]
    state = init(method, task)
    if state.masks == ():
        pytest.skip("the method masks nothing")
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(N, D)), jnp.float32)
    y = {
        "classification": jnp.asarray(rng.integers(0, C, N), jnp.int32),
        "reconstruction": jnp.zeros(N, jnp.int32),
    }[task]
    arrays = Arrays(x, y, jnp.ones(N), x[:9], y[:9], x[:0], y[:0])
    if method.input_connections is not None:
        state = state.replace(trace=jnp.zeros((len(CONNECTION_EPOCHS), D)))
    epoch = jax.jit(lambda s: train_epoch(method, s, arrays)[0])
    state = epoch(state)
    active = [int(count) for count in count_active(state.masks)]
    for _ in range(40):
        state = epoch(state)
        assert [int(count) for count in count_active(state.masks)] == active
        inactive = jax.tree.map(lambda leaf, mask: leaf[~mask], state.params, state.masks)
        assert not any(np.any(leaf) for leaf in jax.tree.leaves(inactive))
    chex.assert_tree_all_finite(state.params)


@pytest.mark.parametrize("name", [name for name in TABLE if "-" not in name])
def test_interrupted_run_repeats_an_uninterrupted_one(
    name: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = TABLE[name]()
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(40, D)), rng.integers(0, C, 40))
    options = dict(seeds=(3, 4), num_epochs=5, batch_size=B, checkpoint_every=2, split="random")
    options["num_features"] = K
    whole = fsjax.fit(method, data, **options)

    saved = fsjax.engine.checkpoint.Checkpoints.save

    def save_then_die(self, epoch, states, history) -> None:
        saved(self, epoch, states, history)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fsjax.engine.checkpoint.Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            fsjax.fit(method, data, checkpoint_dir=tmp_path, **options)
    resumed = fsjax.fit(method, data, checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 3
    chex.assert_trees_all_equal(resumed.states, whole.states)
    chex.assert_trees_all_equal(dict(resumed.history), dict(whole.history))
    chex.assert_trees_all_equal(resumed.selected, whole.selected)


def test_equal_arguments_give_the_same_method() -> None:
    assert fsjax.methods.ip_cae(5, hidden=[4]) is fsjax.methods.ip_cae(5, hidden=(4,))
    assert fsjax.methods.gjsd(5) is fsjax.methods.gjsd(5)
    assert fsjax.methods.cae(5) is not fsjax.methods.cae(6)
