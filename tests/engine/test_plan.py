"""``plan``: checks before anything is trained, and the parts of a plan one by one.

Covers ``fsjax.engine.options``, ``fsjax.engine.fit``, ``fsjax.engine.plan``,
``fsjax.engine.check_run``, ``fsjax.engine.run``.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from engine_helpers import STATIC, counting_method, linear_method
from marks import slow_ids
from sklearn.metrics import roc_auc_score

import fsjax
from fsjax.data import Split
from fsjax.errors import ConfigError

NETWORK = fsjax.methods.neural_network(hidden=(4,), learning_rate=0.05, final_learning_rate=None)

#: A method whose programs compile in a short time.
LINEAR = linear_method()


def table(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 6)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int)


def split(start: int = 0) -> Split:
    rows = (np.arange(60) + start) % 60
    return Split(rows[:40], rows[40:50], rows[50:])


def test_a_plan_says_what_will_run_and_trains_nothing(data) -> None:
    plan = fsjax.plan(NETWORK, data, num_features=[2, 3], seeds=(4, 5), batch_size=16)
    assert plan.sizes == (2, 3) and plan.seeds == (4, 5)
    assert plan.hyper["learning_rate"] == 0.05
    spec = plan.spec
    assert (spec.num_columns, spec.num_outputs, spec.best_by) == (11, 3, "loss")
    rows = len(plan.prepared.splits[0].train)
    assert spec.num_rows >= rows and spec.steps_per_epoch == -(-rows // 16)
    hash(spec)


def test_numbers_of_numpy_become_those_of_python() -> None:
    X, y = table()
    images = fsjax.data.Dataset("images", X, y, image_shape=(np.int64(2), np.float32(3)))
    whole = dict(num_epochs=np.int64(9), batch_size=np.int64(8), early_stopping=np.int64(3))
    spec = fsjax.plan(NETWORK, images, num_features=2, split=split(), **whole).spec
    assert spec.image_shape == (2, 3)
    for number in (*spec.image_shape, spec.num_epochs, spec.batch_size, spec.early_stopping):
        assert type(number) is int
    refuses(lambda: fsjax.data.Dataset("images", X, y, image_shape=(1.5, 4)), "1.5; choose a whole")


def test_a_plan_is_printed_in_short() -> None:
    options = dict(num_features=[2, 3], split=split(), seeds=(4, 5), batch_size=16, num_epochs=7)
    text = repr(fsjax.plan(NETWORK, table(), **options))
    for part in ("40 training + 10 validation + 10 test rows", "K=2, 3", "7 epochs of 3 steps"):
        assert part in text
    filter_plan = fsjax.plan(fsjax.methods.fisher_score(), table(), num_features=2, seeds=(0, 1))
    assert repr(filter_plan).startswith("Plan(fisher_score on table, classification, 36 training")


@pytest.mark.slow
def test_trained_chosen_and_tested_in_steps_is_the_fit() -> None:
    plan = fsjax.plan(NETWORK, table(), num_features=2, num_epochs=2, split=split(), seeds=(0, 1))
    whole, trained = plan.fit()[0], plan.train()
    chosen = plan.choose(trained)
    chex.assert_trees_all_equal(chosen.states, whole.states)
    chex.assert_trees_all_equal(plan.test_metrics(chosen), dict(whole.metrics))
    # Two rows of the second seed: with rate 0.01, and with its own rate.
    found = plan.train(rows=np.array([1, 1]), hyper={"learning_rate": [0.01, 0.05]})
    params = [jax.tree.map(lambda leaf, i=i: leaf[i], found.states.params) for i in range(2)]
    second = jax.tree.map(lambda leaf: leaf[1], trained.states.params)
    chex.assert_trees_all_equal(params[1], second)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), params[0], second)
    assert any(jax.tree.leaves(moved))
    # Idle rows are not trained.
    states = plan.train(idle=[False, True]).states
    np.testing.assert_array_equal(states.epoch, [2, 0])
    with pytest.raises(ConfigError, match="has no traced argument 'learning_rat'"):
        plan.train(hyper={"learning_rat": [1.0, 1.0]})
    with pytest.raises(ConfigError, match="has no traced argument 'hidden'"):
        plan.train(hyper={"hidden": [1.0, 1.0]})


@pytest.mark.slow
def test_splits_of_your_own() -> None:
    options = dict(num_features=2, num_epochs=2, scaling="standard", seeds=(0, 1))
    shared = fsjax.fit(NETWORK, table(), split=split(), **options)
    assert all(np.array_equal(one.test, np.arange(50, 60)) for one in shared.splits)
    own = fsjax.fit(NETWORK, table(), split=[split(), split(7)], **options)
    np.testing.assert_allclose(own.history["train/loss"][0], shared.history["train/loss"][0], 1e-5)
    assert not np.allclose(own.history["train/loss"][1], shared.history["train/loss"][1])


def test_rows_are_trained_with_what_belongs_to_their_seed() -> None:
    x, y = table()
    # Constant in the training rows of the first seed.
    x[:40, 3] = 1.0
    options = dict(num_epochs=1, scaling="standard", split=[split(), split(20)])
    first = fsjax.fit(LINEAR, (x, y), seeds=(0, 1), **options)
    plan = fsjax.plan(LINEAR, (x, y), seeds=(0, 1), start=first, **options)
    swapped = plan.train(rows=np.array([1, 0]), idle=[True, True]).states
    assert swapped.feature_mask[:, 3].tolist() == [True, False]
    expected = jax.tree.map(lambda leaf: leaf[::-1], first.states.params)
    chex.assert_trees_all_equal(swapped.params, expected)


@bad_calls(
    ({"split": [split()]}, "1 splits for 2 seeds"),
    ({"split": Split(np.arange(4), np.arange(0), np.array([60]))}, "rows from 0 to 60"),
    ({"split": Split(np.arange(4), np.arange(0), np.arange(3, 6))}, "row twice"),
    ({"split": Split(np.arange(0), np.arange(0), np.arange(4))}, "training rows"),
    ({"split": [split(), Split(*np.split(np.arange(12), [9, 9]))]}, "differ in size"),
    ({"best_by": "lost"}, "best_by='lost': did you mean 'loss'"),
    ({"best_by": "accuracy", "task": "regression"}, "needs classes, but the task is reg"),
    ({"sample_weight": np.zeros(60)}, "finite numbers above 0"),
)
def test_bad_calls(bad: tuple) -> None:
    options = {"num_features": 2, "num_epochs": 1, "seeds": (0, 1), **bad[0]}
    refuses(lambda: fsjax.plan(NETWORK, table(), **options), bad[1])


def numbered(rows: int) -> dict:
    """A plan in which all rows train and carry their number in the first column."""
    x = np.zeros((rows, 4), np.float32)
    x[:, 0] = np.arange(rows)
    none = np.arange(0)
    split = Split(np.arange(rows), none, none)
    return dict(data=(x, np.arange(rows) % 2), split=split, scaling="none")


# 23 rows are padded to 24; the other parts need no padding.
@slow_ids("True-False-24", "False-True-24", "False-False-24")
@pytest.mark.parametrize("rows", [23, 24])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
def test_every_row_is_visited_once_an_epoch(rows: int, shuffle: bool, drop_last: bool) -> None:
    epochs, size = 3, 5
    options = dict(num_epochs=epochs, batch_size=size, shuffle=shuffle, drop_last=drop_last)
    plan = fsjax.plan(counting_method(), **numbered(rows), **options)
    states = plan.train().states
    seen = np.asarray(states.extra["rows"][0])
    assert len(seen) == plan.spec.num_rows == 24
    assert not seen[rows:].any()
    steps = rows // size if drop_last else -(-rows // size)
    assert plan.spec.steps_per_epoch == steps
    assert float(states.extra["steps"][0]) == int(states.step[0]) == steps * epochs
    if not drop_last:
        assert (seen[:rows] == epochs).all()
    else:
        assert seen.sum() == steps * size * epochs
        assert seen.max() == epochs
        assert shuffle or (seen[steps * size :] == 0).all()


@slow_ids("24-*")
@pytest.mark.parametrize(
    ("rows", "options", "steps", "visits"),
    [
        (23, dict(batch_size=None), 1, 1),
        (23, dict(batch_size=100, drop_last=True), 1, 1),
        (23, dict(batch_size=8, min_steps_per_epoch=7), 9, 3),
        (24, dict(batch_size=8, min_steps_per_epoch=7), 9, 3),
        (23, dict(batch_size=30, min_steps_per_epoch=2, shuffle=False), 3, 3),
    ],
)
def test_short_epochs_and_large_batches_visit_every_row_as_often(
    rows: int, options: dict, steps: int, visits: int
) -> None:
    plan = fsjax.plan(counting_method(), **numbered(rows), num_epochs=2, **options)
    states = plan.train().states
    assert (plan.spec.steps_per_epoch, plan.spec.repeats) == (steps, visits)
    assert int(states.step[0]) == 2 * steps
    np.testing.assert_array_equal(np.asarray(states.extra["rows"][0])[:rows], 2 * visits)


def test_best_epoch_by_auc() -> None:
    options = dict(split=split(), num_epochs=6, batch_size=8)
    result = fsjax.fit(LINEAR, table(), best_by="auc", **options)
    recorded = result.history["valid/auc"][0]
    assert result.best_epoch[0] == 1 + int(np.argmax(recorded))
    x, y = table()
    outputs = result.predict(x[40:50])[0]
    auc = roc_auc_score(y[40:50], outputs[:, 1] - outputs[:, 0])
    assert recorded.max() == pytest.approx(auc, abs=1e-6)
    y = np.arange(60) % 3
    with pytest.raises(ConfigError, match="two classes"):
        fsjax.plan(NETWORK, (x, y), num_features=2, num_epochs=1, best_by="auc")


@pytest.mark.parametrize("starts", [(0, 30), (30, 0)])
def test_the_auc_of_test_rows_of_one_class_is_nan(starts) -> None:
    x, y = table()[0], np.isin(np.arange(60), (0, 55)).astype(int)
    splits = [split(start) for start in starts]
    result = fsjax.fit(LINEAR, (x, y), split=splits, seeds=(0, 1), num_epochs=1)
    assert np.isnan(result.metrics["auc"]).tolist() == [start == 30 for start in starts]


def test_a_method_that_selects_any_number_wants_one(data) -> None:
    with pytest.raises(ConfigError, match="static_sparse can select any number"):
        fsjax.fit(STATIC, data, num_epochs=2)


def test_gates_decide_how_many_columns_where_no_number_is_asked_for() -> None:
    open_columns = jnp.array([0.9, 0.2, 0.6, 0.0, 0.5, 0.1])
    method = linear_method()
    method = method._replace(
        about=method.about._replace(num_features=None, gates=True),
        select=lambda state: fsjax.Selection(open_columns, gates=open_columns),
    )
    result = fsjax.fit(method, table(), split=split(), num_epochs=1, seeds=(0, 1))
    assert result.selected.tolist() == [[0, 2, 4]] * 2
    np.testing.assert_array_equal(result.gates, np.stack([open_columns] * 2))
    assert result.metrics["undecided_percentage"] == pytest.approx([50, 50])


def test_weights_stand_for_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(14, 5)).astype(np.float32), rng.integers(0, 2, 14)
    weight = np.where(np.arange(14) % 3 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(14), np.arange(0, 14, 3)])
    none = np.arange(0)
    options = dict(num_epochs=4, shuffle=False, scaling="none", batch_size=32)

    def fitted(rows: np.ndarray, sample_weight: np.ndarray | None) -> fsjax.FitResult:
        # Even rows train, odd rows validate.
        order = np.argsort(rows % 2, kind="stable")
        half = int(np.sum(rows % 2 == 0))
        split = Split(order[:half], order[half:], none)
        data = (x[rows], y[rows])
        return fsjax.fit(LINEAR, data, split=split, sample_weight=sample_weight, **options)

    weighted, repeated = fitted(np.arange(14), weight), fitted(twice, None)
    assert weighted.metrics == {}
    for name in ("train/loss", "valid/loss", "valid/accuracy"):
        chex.assert_trees_all_close(weighted.history[name], repeated.history[name], rtol=1e-5)
    chex.assert_trees_all_close(weighted.scores, repeated.scores, rtol=1e-4)
    assert not np.allclose(
        fitted(np.arange(14), None).history["train/loss"], weighted.history["train/loss"]
    )


def test_a_network_that_cannot_take_the_data_is_refused_before_training() -> None:
    with pytest.raises(ConfigError, match="lenet5 needs images"):
        fsjax.plan(fsjax.methods.neural_network(network="lenet5"), table(), num_features=3)
    with pytest.raises(ConfigError, match="finetune_epochs=4"):
        method = fsjax.methods.neural_network(finetune_epochs=4)
        fsjax.plan(method, table(), num_features=3, num_epochs=1)
