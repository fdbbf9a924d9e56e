"""Options of ``fit`` beside the usual: splits of one's own, repeats, AUC, ends of a seed."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import fsjax
from fsjax.data import Split
from fsjax.engine.loop import batch_indices
from fsjax.errors import ConfigError
from fsjax.method import Spec

NETWORK = fsjax.methods.neural_network(hidden=(4,), learning_rate=0.05, final_learning_rate=None)


def table(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 6)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int)


def split(start: int = 0) -> Split:
    rows = (np.arange(60) + start) % 60
    return Split(rows[:40], rows[40:50], rows[50:])


def test_splits_of_your_own() -> None:
    options = dict(num_features=2, num_epochs=2, scaling="standard", seeds=(0, 1))
    shared = fsjax.fit(NETWORK, table(), split=split(), **options)
    assert all(np.array_equal(one.test, np.arange(50, 60)) for one in shared.splits)
    own = fsjax.fit(NETWORK, table(), split=[split(), split(7)], **options)
    np.testing.assert_allclose(own.history["train/loss"][0], shared.history["train/loss"][0], 1e-5)
    assert not np.allclose(own.history["train/loss"][1], shared.history["train/loss"][1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([split()], "1 splits for 2 seeds"),
        (Split(np.arange(4), np.arange(0), np.array([60])), "rows from 0 to 60"),
        (Split(np.arange(4), np.arange(0), np.arange(3, 6)), "row twice"),
        (Split(np.arange(0), np.arange(0), np.arange(4)), "training rows"),
        ([split(), Split(np.arange(9), np.arange(0), np.arange(9, 12))], "differ in size"),
    ],
    ids=range(5),
)
def test_splits_that_do_not_fit(given, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(NETWORK, table(), split=given, num_features=2, num_epochs=1, seeds=(0, 1))


def test_short_epochs_visit_every_row_as_often() -> None:
    spec = Spec(6, 2, "classification", 40, 16, num_epochs=1, repeats=3)
    assert spec.steps_per_epoch == 8
    state = fsjax.fit(
        NETWORK,
        table(),
        split=split(),
        num_features=2,
        num_epochs=1,
        batch_size=16,
        min_steps_per_epoch=6,
    ).states
    assert state.spec.repeats == 3 and int(state.step[0]) == 8
    indices, real = batch_indices(jax.tree.map(lambda leaf: leaf[0], state), jax.random.key(0))
    visits = np.bincount(np.ravel(indices)[np.ravel(real) == 1], minlength=40)
    np.testing.assert_array_equal(visits, 3)


def test_best_epoch_by_auc() -> None:
    result = fsjax.fit(
        NETWORK, table(), split=split(), num_features=2, num_epochs=6, best_by="auc", batch_size=8
    )
    recorded = result.history["valid/auc"][0]
    assert result.best_epoch[0] == 1 + int(np.argmax(recorded))
    x, y = table()
    outputs = result.predict(x[40:50])[0]
    auc = roc_auc_score(y[40:50], outputs[:, 1] - outputs[:, 0])
    assert recorded.max() == pytest.approx(auc, abs=1e-6)
    y = np.arange(60) % 3
    with pytest.raises(ConfigError, match="two classes"):
        fsjax.fit(NETWORK, (x, y), num_features=2, num_epochs=1, best_by="auc")


def ends_at(epochs: int) -> fsjax.Method:
    """A network whose seeds end after some epochs, the second seed one epoch later."""
    return NETWORK._replace(
        init=lambda key, spec: NETWORK.init(key, spec).replace(hyper={"extra": jnp.zeros(())}),
        finished=lambda state: state.epoch >= epochs + state.hyper["extra"],
    )


@pytest.mark.parametrize("axis", ["map", "vmap", "shard"])
def test_a_seed_ends_when_its_method_is_finished(axis: str, tmp_path) -> None:
    options = dict(split=split(), num_features=2, seeds=(0, 1, 2), seed_axis=axis, best_by="last")
    short = fsjax.fit(ends_at(3), table(), num_epochs=9, **options)
    plain = fsjax.fit(NETWORK, table(), num_epochs=3, **options)
    assert short.history["train/loss"].shape == (3, 3)
    np.testing.assert_array_equal(short.best_epoch, 3)
    chex.assert_trees_all_close(short.states.params, plain.states.params, rtol=1e-5)
    if axis == "map":
        again = dict(checkpoint_dir=tmp_path, checkpoint_every=2)
        saved = fsjax.fit(ends_at(3), table(), num_epochs=9, **again, **options)
        chex.assert_trees_all_close(saved.states.params, plain.states.params, rtol=1e-5)


def test_several_sizes_of_a_ranking_share_one_fit() -> None:
    results = fsjax.fit_sizes(NETWORK, table(), (2, 4), split=split(), num_epochs=2)
    assert results[2].selected.tolist() == results[4].selected[:, :2].tolist()
    with pytest.raises(ConfigError, match="at least one"):
        fsjax.fit_sizes(NETWORK, table(), ())
    with pytest.raises(ConfigError, match="num_features=7"):
        fsjax.fit_sizes(NETWORK, table(), (2, 7), num_epochs=1)


def test_weights_stand_for_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(14, 5)).astype(np.float32), rng.integers(0, 2, 14)
    weight = np.where(np.arange(14) % 3 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(14), np.arange(0, 14, 3)])
    none = np.arange(0)
    options = dict(num_features=2, num_epochs=4, shuffle=False, scaling="none", batch_size=32)
    method = fsjax.methods.dense(hidden=(4,))

    def fitted(rows: np.ndarray, sample_weight: np.ndarray | None) -> fsjax.FitResult:
        # Rows of even number train, the others validate.
        order = np.argsort(rows % 2, kind="stable")
        half = int(np.sum(rows % 2 == 0))
        split = Split(order[:half], order[half:], none)
        data = (x[rows], y[rows])
        return fsjax.fit(method, data, split=split, sample_weight=sample_weight, **options)

    weighted, repeated = fitted(np.arange(14), weight), fitted(twice, None)
    assert weighted.metrics == {}
    for name in ("train/loss", "valid/loss", "valid/accuracy"):
        chex.assert_trees_all_close(weighted.history[name], repeated.history[name], rtol=1e-5)
    chex.assert_trees_all_close(weighted.scores, repeated.scores, rtol=1e-4)
    assert not np.allclose(
        fitted(np.arange(14), None).history["train/loss"], weighted.history["train/loss"]
    )


@pytest.mark.parametrize(
    ("weight", "message"), [(np.ones(3), "one for each"), (np.zeros(14), "not above 0")]
)
def test_weights_that_do_not_fit(weight: np.ndarray, message: str) -> None:
    x, y = np.random.default_rng(0).normal(size=(14, 5)), np.arange(14) % 2
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(fsjax.methods.dense(hidden=(4,)), (x, y), num_features=2, sample_weight=weight)


def test_several_targets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 5))
    data = (x, x[:, :2] + 1.0)
    result = fsjax.fit(
        fsjax.methods.dense(hidden=(4,)),
        data,
        task="regression",
        num_features=2,
        num_epochs=2,
        split="random",
    )
    chex.assert_shape(result.predict(x), (1, 30, 2))
    assert np.isfinite(result.metrics["r2"]).all()
