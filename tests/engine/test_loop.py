"""The loop of one seed: order of calls, evaluation in parts, ends, counted connections.

Covers ``fsjax.engine.choose``, ``fsjax.engine.training_checks``.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from engine_helpers import (
    STATIC,
    counting_method,
    fit_saving,
    killed_after_a_checkpoint,
    linear_method,
)
from marks import slow_ids

import fsjax
from fsjax.data import Split
from fsjax.engine import epoch_metrics
from fsjax.engine.rows import Rows
from fsjax.method import About, Batch, Method, Selection, Spec, TrainState, create_state


@pytest.mark.slow
def test_evaluation_in_chunks_is_that_of_all_rows(data, monkeypatch) -> None:
    plan = fsjax.plan(STATIC, data, num_features=3, num_epochs=1)
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), plan.train().states)
    for rows in (5, 21, 23):
        weight = jnp.ones(rows).at[-2:].set(0.0)
        part = Rows(*(jnp.asarray(leaf[:rows]) for leaf in data), weight)
        whole = jax.jit(lambda s, r: epoch_metrics.metrics_of_rows(STATIC, s, r))(state, part)
        with monkeypatch.context() as patch:
            patch.setattr(epoch_metrics, "EVALUATION_ROWS", 7)
            cut = jax.jit(lambda s, r: epoch_metrics.metrics_of_rows(STATIC, s, r))(state, part)
        assert set(whole) == {"loss", "accuracy"}
        chex.assert_trees_all_close(cut, whole, rtol=1e-5)
        # Rows of weight 0 may hold any values.
        broken = part._replace(x=part.x.at[-2:].set(jnp.nan))
        found = jax.jit(lambda s, r: epoch_metrics.metrics_of_rows(STATIC, s, r))(state, broken)
        chex.assert_trees_all_close(found, whole, rtol=1e-5)


@slow_ids("last", "loss")
@pytest.mark.parametrize("best_by", ["loss", "accuracy", "last"])
def test_the_kept_epoch_and_the_recorded_test_metrics(data, best_by: str) -> None:
    x, y = data
    options = dict(num_features=3, num_epochs=30, batch_size=16, seed_axis="map")
    result = fsjax.fit(STATIC, data, seeds=(0, 1), best_by=best_by, record_test=True, **options)
    history, seeds = result.history, np.arange(2)
    expected = {
        "loss": history["valid/loss"].argmin(axis=1) + 1,
        # The first of equally good epochs is kept.
        "accuracy": history["valid/accuracy"].argmax(axis=1) + 1,
        "last": np.array([30, 30]),
    }[best_by]
    chex.assert_trees_all_equal(result.best_epoch, expected.astype(np.int32))
    assert best_by == "last" or (expected < 30).any()

    rows = result.splits[0].valid
    found = 100 * (result.predict(x[rows]).argmax(-1) == y[rows]).mean(axis=1)
    kept = history["valid/accuracy"][seeds, expected - 1]
    chex.assert_trees_all_close(found, kept.astype(float), rtol=1e-5)
    chex.assert_shape((history["test/loss"], history["test/accuracy"]), (2, 30))
    recorded = history["test/accuracy"][seeds, expected - 1].astype(float)
    chex.assert_trees_all_close(recorded, result.metrics["embedded_accuracy"], rtol=1e-5)

    # Its connections do not change.
    assert not history["train/topology_change"].any()
    active = 2 * (11 + 8) + min(2 * (8 + 3), 24)
    np.testing.assert_allclose(history["train/sparsity"], 1 - active / (88 + 24), rtol=1e-5)
    assert result.cost["params"] == active


def test_only_where_the_last_epoch_may_not_be_kept_is_there_a_copy(data) -> None:
    for best_by, copied in (("loss", 2), ("last", 0)):
        plan = fsjax.plan(linear_method(30.0), data, best_by=best_by, num_epochs=6, batch_size=8)
        trained = plan.train()
        best = trained.states.best
        assert len(jax.tree.leaves((best.params, best.masks, best.extra))) == copied
        lowest = 1 + int(trained.history["valid/loss"][0].argmin())
        assert lowest < 6
        (result,) = plan.select(trained, plan.choose(trained))
        assert result.best_epoch.tolist() == [{"loss": lowest, "last": 6}[best_by]]


@pytest.mark.slow
def test_a_function_tells_the_epoch_that_is_kept(data) -> None:
    options = dict(num_features=3, num_epochs=7, seeds=(0, 1))
    method = STATIC._replace(keep=lambda state: jnp.abs(state.epoch - 4.0))
    result = fsjax.fit(method, data, **options)
    assert result.best_epoch.tolist() == [4, 4]
    shorter = fsjax.fit(STATIC, data, **options | {"num_epochs": 4}, best_by="last")
    chex.assert_trees_all_close(result.states.params, shorter.states.params, rtol=1e-5)
    with pytest.raises(fsjax.ConfigError, match="chooses the best epoch itself"):
        fsjax.plan(method, data, best_by="loss", **options)


@pytest.mark.slow
def test_connections_of_the_inputs_are_counted(data) -> None:
    method = fsjax.methods.set(hidden=(8,), epsilon=2)
    options = dict(num_features=3, batch_size=16, seed_axis="map", seeds=(0, 1))
    # SET does not rewire after the last epoch, so train 11 epochs to have 10 ordinary ones.
    result = fsjax.fit(method, data, num_epochs=11, best_by="last", **options)
    assert result.connection_epochs == (0, 1, 5, 10)
    chex.assert_shape(result.input_connections, (2, 4, 11))
    assert (result.input_connections.sum(axis=2) == 2 * (11 + 8)).all()
    last = np.asarray(result.states.masks["layer_0"]["kernel"]).sum(axis=2)
    np.testing.assert_array_equal(result.input_connections[:, -1], last)
    for early, late in zip((0, 1, 2), (1, 2, 3), strict=True):
        counts = result.input_connections
        assert not np.array_equal(counts[:, early], counts[:, late])
    # Before training they are those of the initial masks.
    plan = fsjax.plan(method, data, num_epochs=11, best_by="last", **options)
    first = plan.train(idle=[True, True]).states.masks["layer_0"]["kernel"]
    np.testing.assert_array_equal(result.input_connections[:, 0], np.asarray(first).sum(axis=2))

    changes = result.history["train/topology_change"]
    assert (changes[:, :-1] > 5).all() and (changes[:, :-1] <= 20).all()
    assert not changes[:, -1].any()
    plain = fsjax.fit(counting_method()._replace(after_step=lambda s, *_: s), data, num_epochs=1)
    assert plain.connection_epochs == () and plain.input_connections is None


def ends_at(epochs: int) -> Method:
    """A sparse network whose seeds end after some epochs, some of them one epoch later."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        key_own, key_later = jax.random.split(key)
        later = jax.random.bernoulli(key_later).astype(jnp.int32)
        return STATIC.init(key_own, spec, data).replace(log={"last": epochs + later})

    def after_epoch(state: TrainState, data: Batch, key: jax.Array) -> TrainState:
        return state.replace(done=state.epoch >= state.log["last"])

    return STATIC._replace(init=init, after_epoch=after_epoch, keep="last")


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["map", "vmap", "shard"])
def test_a_seed_ends_when_it_is_done(axis: str, data, tmp_path) -> None:
    options = dict(num_features=2, seeds=(0, 1, 2, 3, 4), seed_axis=axis)
    short = fsjax.fit(ends_at(3), data, num_epochs=9, **options)
    assert short.history["train/loss"].shape == (5, 4)
    assert set(short.best_epoch.tolist()) == {3, 4}
    for epochs in (3, 4):
        assert (np.isnan(short.history["train/loss"][:, 3]) == (short.best_epoch == 3)).all()
        plain = fsjax.fit(ends_at(9), data, num_epochs=epochs, **options)
        for row in np.flatnonzero(short.best_epoch == epochs):
            one, other = (
                jax.tree.map(lambda leaf, row=row: leaf[row], result.states.params)
                for result in (short, plain)
            )
            chex.assert_trees_all_close(one, other, rtol=1e-5, atol=1e-7)
    if axis == "map":
        again = dict(num_epochs=9, checkpoint_every=2, **options)
        saved = fit_saving(ends_at(3), data, tmp_path, **again)
        chex.assert_trees_all_equal(saved.states, short.states)
        read = fit_saving(ends_at(3), data, tmp_path, **again)
        chex.assert_trees_all_equal(read.states, short.states)
        assert read.cost["trained_epochs"] == 0


def hooked(note: Callable[[float], None]) -> Method:
    """Records the weight of the rows that ``init`` sees, and counts calls of the hooks."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        jax.debug.callback(lambda rows: note(float(rows)), jnp.sum(data.weight))
        seen = {"rows": data.weight @ data.x, "own": jax.random.uniform(key)}
        counts = {"epochs": jnp.zeros(()), "finishes": jnp.zeros(())}
        return create_state(spec, {"bias": jnp.zeros(3)}, extra=seen, log=counts)

    def counted(name: str):
        def hook(state: TrainState, data: Batch, key: jax.Array) -> TrainState:
            return state.replace(log={**state.log, name: state.log[name] + 1})

        return hook

    return Method(
        About("hooked", num_features=2),
        init=init,
        select=lambda s: Selection(s.extra["rows"]),
        loss=lambda p, s, b, k: (jnp.sum(jnp.square(p["bias"] - 1)), {}),
        optimizer=optax.sgd(0.1),
        predict=lambda s, x: jnp.broadcast_to(s.params["bias"], (x.shape[0], 3)),
        after_epoch=counted("epochs"),
        finish=counted("finishes"),
    )


@slow_ids("vmap")
@pytest.mark.parametrize("axis", ["map", "vmap", "shard"])
def test_init_is_called_once_for_each_seed_and_sees_the_training_rows(axis: str, data) -> None:
    calls: list[float] = []
    rows = np.arange(90)
    split = Split(rows[:53], rows[53:70], rows[70:])
    options = dict(seeds=(0, 1, 2), num_epochs=4, batch_size=16, seed_axis=axis, scaling="none")
    result = fsjax.fit(hooked(calls.append), data, split=split, **options)
    jax.effects_barrier()
    # 53 rows are padded to 56.
    assert calls == [53.0] * 3
    expected = np.tile(data[0][:53].sum(axis=0), (3, 1))
    np.testing.assert_allclose(result.scores, expected, rtol=1e-4, atol=1e-4)
    assert len(np.unique(result.states.extra["own"])) == 3
    assert result.states.log["epochs"].tolist() == [4, 4, 4]
    assert result.states.log["finishes"].tolist() == [1, 1, 1]


def test_a_run_goes_on_from_its_checkpoint_it_left(data, tmp_path, monkeypatch) -> None:
    method = hooked(print)
    options = dict(seeds=(0, 1), num_epochs=4, batch_size=16, checkpoint_every=1)
    whole = fsjax.fit(method, data, **options)
    with killed_after_a_checkpoint(monkeypatch):
        fit_saving(method, data, tmp_path, **options)
    resumed = fit_saving(method, data, tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 3
    chex.assert_trees_all_equal(resumed.states, whole.states)
    assert resumed.states.log["epochs"].tolist() == [4, 4]


def test_what_is_in_the_log_is_not_taken_back(data) -> None:
    method = hooked(print)._replace(keep=lambda state: jnp.abs(state.epoch - 2.0))
    result = fsjax.fit(method, data, num_epochs=5)
    assert result.best_epoch.tolist() == [2] and result.states.log["epochs"].tolist() == [5]


def test_the_loss_is_traced_once_for_a_program(data) -> None:
    method, traced = counting_method(), []

    def loss(*args):
        traced.append(args)
        return method.loss(*args)

    planned = fsjax.plan(method._replace(loss=loss), data, num_epochs=2, batch_size=16)
    traced.clear()  # It was checked by then.
    planned.fit()
    assert len(traced) == 1
