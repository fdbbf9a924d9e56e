"""``fit`` as a whole: results, seeds, and errors.

Covers ``fsjax.engine.fit``, ``fsjax.engine.result``.
"""

from __future__ import annotations

import functools

import chex
import jax
import numpy as np
import pandas as pd
import pytest
from bad_calls import refuses
from engine_helpers import counting_method, linear_method
from marks import slow_ids

import fsjax
from fsjax.errors import ConfigError, DataError, NonFiniteLossError

METHOD = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)
OPTIONS = dict(num_epochs=5, batch_size=16)


def noisy_method() -> fsjax.Method:
    """A linear model with noise on its inputs, whose programs compile in a short time."""
    plain = linear_method()

    def loss(params, state, batch, key) -> tuple[jax.Array, dict]:
        noise = 0.3 * jax.random.normal(key, batch.x.shape)
        return plain.loss(params, state, batch._replace(x=batch.x + noise), key)

    return plain._replace(loss=loss)


NOISY = noisy_method()


def three(method: fsjax.Method, data, seed_axis: str = "map") -> fsjax.FitResult:
    """Three seeds, by default one after another."""
    return fsjax.fit(method, data, seeds=(1, 2, 3), seed_axis=seed_axis, **OPTIONS)


@pytest.fixture(scope="module")
def result(data) -> fsjax.FitResult:
    return fsjax.fit(METHOD, data, seeds=(0, 9, 2), num_epochs=40, batch_size=16)


def test_shapes_and_metrics_of_a_result(data, result: fsjax.FitResult) -> None:
    chex.assert_shape(result.selected, (3, 5))
    chex.assert_shape((result.scores, result.ranking), (3, 11))
    chex.assert_shape(result.history["valid/loss"], (3, 40))
    assert result.seeds == (0, 9, 2) and result.gates is None
    for row in result.selected:
        assert len(set(row.tolist())) == 5
    assert result.selection_frequency.sum() == pytest.approx(5)
    assert set(result.metrics) == {"embedded_accuracy", "unique_percentage"}
    # Only weights count, not biases.
    assert result.cost["params"] == 5 * 6 + 6 * 11 + 5 * 8 + 8 * 3
    # The reported accuracy is that of predict() on the test rows.
    x, y = data
    rows = result.splits[0].test
    outputs = result.predict(x[rows])
    found = 100 * (outputs.argmax(-1) == y[rows]).mean(axis=1)
    chex.assert_trees_all_close(found, result.metrics["embedded_accuracy"])
    chex.assert_trees_all_equal(result.transform(x, seed=9), x[:, result.selected[1]])
    with pytest.raises(DataError, match="expected \\(N, 11\\)"):
        result.predict(x[:, :4])


@pytest.mark.slow
def test_the_unique_percentage_is_that_of_the_kept_epoch(data) -> None:
    method = METHOD._replace(keep=lambda state: abs(state.epoch - 2.0))
    plan = fsjax.plan(method, data, num_epochs=3, batch_size=16)
    trained = plan.train()
    history = {**trained.history, "train/unique_percentage": np.array([[10.0, 20.0, 30.0]])}
    (result,) = plan.select(trained._replace(history=history), plan.choose(trained))
    assert result.best_epoch.tolist() == [2]
    assert result.metrics["unique_percentage"].tolist() == [20.0]


def test_picks_come_first_and_no_optimiser_is_left(result: fsjax.FitResult) -> None:
    logits = jax.vmap(lambda state: METHOD.select(state).picks)(result.states)
    for ranking, picks, scores in zip(result.ranking, logits, result.scores, strict=True):
        own = sorted(set(np.asarray(picks).tolist()), key=lambda column: -scores[column])
        assert ranking[: len(own)].tolist() == own
        assert sorted(ranking.tolist()) == list(range(11))
    np.testing.assert_array_equal(result.select(7), result.ranking[:, :7])
    assert not jax.tree.leaves((result.states.opt_state, result.states.best.params))


def test_best_snapshot_has_the_lowest_validation_loss(data, result: fsjax.FitResult) -> None:
    losses = result.history["valid/loss"]
    chex.assert_trees_all_equal(result.best_epoch, losses.argmin(axis=1) + 1)
    # The kept state is evaluated, not the last one: its loss is reproduced.
    x, y = data
    rows = result.splits[0].valid
    logits = result.predict(x[rows])
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    found = -log_p[:, np.arange(len(rows)), y[rows]].mean(axis=1)
    chex.assert_trees_all_close(found, losses.min(axis=1), rtol=1e-4)
    assert not np.allclose(found, losses[:, -1], rtol=1e-4)


@pytest.mark.slow
def test_a_seed_is_the_same_alone_and_among_others(data) -> None:
    among = three(METHOD, data)
    alone = fsjax.fit(METHOD, data, seeds=(2,), seed_axis="map", **OPTIONS)
    middle = jax.tree.map(lambda leaf: leaf[1:2], among.states)
    chex.assert_trees_all_equal(middle, alone.states)
    again = three(METHOD, data)
    chex.assert_trees_all_equal(again.states, among.states)
    assert not np.allclose(among.scores[0], among.scores[1])


@slow_ids("ip_cae-*")
@pytest.mark.parametrize("axis", ["vmap", "shard"])
@pytest.mark.parametrize("method", [NOISY, METHOD], ids=["noise", "ip_cae"])
def test_seed_axes_agree(data, method: fsjax.Method, axis: str) -> None:
    mapped, found = three(method, data), three(method, data, axis)
    # Equal up to the order of sums, which 25 steps of Adam amplify: 1e-3 here.
    chex.assert_trees_all_close(found.scores, mapped.scores, rtol=1e-3, atol=1e-4)
    losses = [result.history["train/loss"] for result in (found, mapped)]
    chex.assert_trees_all_close(*losses, rtol=1e-3)
    assert not np.allclose(losses[0][0], losses[0][1], rtol=1e-2)


@pytest.mark.slow
def test_a_split_for_each_seed(data) -> None:
    options = dict(num_epochs=4, batch_size=16, split_per_seed=True)
    alone = fsjax.fit(METHOD, data, seeds=(2,), seed_axis="map", **options)
    for axis in ("vmap", "map", "shard"):
        result = fsjax.fit(METHOD, data, seeds=(1, 2, 3), seed_axis=axis, **options)
        assert not np.array_equal(result.splits[0].train, result.splits[1].train)
        chex.assert_trees_all_equal(alone.splits[0].train, result.splits[1].train)
        chex.assert_trees_all_close(result.scores[1], alone.scores[0], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_constant_columns_are_scaled_and_never_preferred(data) -> None:
    x = data[0].copy()
    x[:, [0, 3, 9]] = 5.0
    for method in (METHOD, fsjax.methods.random_selection(5, hidden=(8,))):
        result = fsjax.fit(method, (x, data[1]), seeds=(0, 1), num_epochs=3, batch_size=16)
        assert result.constant_columns.tolist() == [3, 3]
        assert not np.isin(result.selected, [0, 3, 9]).any()
        assert np.isfinite(result.history["train/loss"]).all()
    everything = fsjax.methods.cae(11, hidden=(8,))
    result = fsjax.fit(everything, (x, data[1]), num_epochs=2, batch_size=16)
    assert sorted(result.selected[0, -3:].tolist()) == [0, 3, 9]


@pytest.mark.slow
def test_loss_that_is_not_finite_stops_the_run(data) -> None:
    method = fsjax.methods.cae(3, hidden=(8,), learning_rate=1e30, layer_norm=False)
    with pytest.raises(NonFiniteLossError, match=r"epoch \d+ with seed 7.*learning rate 1e\+30"):
        fsjax.fit(method, data, seeds=(7,), num_epochs=5, batch_size=16)
    plain = fsjax.methods.neural_network(hidden=(), optimizer="sgd", learning_rate=1.0)
    huge = (data[0] * 1e17, np.linspace(0, 1e10, len(data[0])))
    options = {"task": "regression", "scaling": "none", "num_features": 2, "num_epochs": 5}
    with pytest.raises(NonFiniteLossError, match="scaled inputs reach"):
        fsjax.fit(plain, huge, batch_size=16, **options)


@pytest.mark.slow
def test_progress_is_shown_with_metric_and_time_left(data, capsys) -> None:
    fsjax.fit(METHOD, data, num_epochs=3, batch_size=16, progress=True)
    shown = capsys.readouterr().err
    assert "ip_cae" in shown
    assert "valid/accuracy" in shown
    assert "3/3" in shown
    fsjax.fit(METHOD, data, num_epochs=3, batch_size=16)
    assert capsys.readouterr().err == ""


def test_several_targets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 5))
    options = dict(task="regression", num_epochs=2, split="random")
    result = fsjax.fit(linear_method(), (x, x[:, :2] + 1.0), **options)
    chex.assert_shape(result.predict(x), (1, 30, 2))
    assert np.isfinite(result.metrics["r2"]).all()


def test_the_task_is_that_of_the_method(data) -> None:
    counting = counting_method()._replace(after_step=lambda state, *_: state)
    for tasks, expected in (
        (("reconstruction",), "reconstruction"),
        (("classification", "reconstruction"), "classification"),
    ):
        method = counting._replace(about=counting.about._replace(tasks=tasks))
        assert fsjax.plan(method, data, num_epochs=1).spec.task == expected
    with pytest.raises(ConfigError, match="counting is for the task reconstruction"):
        about = counting.about._replace(tasks=("reconstruction",))
        fsjax.plan(counting._replace(about=about), data, task="classification")


def test_several_sizes_of_a_ranking_share_one_fit(data, monkeypatch) -> None:
    calls, train = [], fsjax.Plan.train

    def counted(plan: fsjax.Plan, **given) -> object:
        calls.append(given)
        return train(plan, **given)

    monkeypatch.setattr(fsjax.Plan, "train", counted)
    method = NOISY._replace(about=NOISY.about._replace(num_features=None))
    results = fsjax.fit_sizes(method, data, (4, 2), num_epochs=2)
    assert list(results) == [4, 2] and len(calls) == 1
    assert results[2].selected.tolist() == results[4].selected[:, :2].tolist()
    fit_sizes = functools.partial(fsjax.fit_sizes, method, data)
    refuses(lambda: fit_sizes(()), "at least one")
    refuses(lambda: fit_sizes((2, 12), num_epochs=1), "num_features=12")
    refuses(lambda: fit_sizes((2,), num_features=2), "leave num_features out")
    refuses(lambda: fit_sizes((2,), num_epoch=2), "'num_epoch': did you mean", error=Exception)


def test_a_result_refuses_other_columns_and_seeds(data) -> None:
    frame = pd.DataFrame(data[0]).add_prefix("c")
    found = fsjax.fit(linear_method(), (frame, data[1]), num_epochs=1)
    for of in (found.predict, found.transform):
        refuses(lambda of=of: of(frame[frame.columns[::-1]]), "in another order")
        other = frame.rename(columns={"c2": "new"})
        refuses(lambda of=of, x=other: of(x), "not seen in fit: 'new'; missing now: 'c2'")
        refuses(lambda of=of: of(data[0][:, :7]), "X has shape (", ", 7); expected (N, 11)")
        np.testing.assert_array_equal(of(frame), of(data[0]))
        np.testing.assert_array_equal(of(pd.DataFrame(data[0])), of(data[0]))
    refuses(lambda: found.transform(frame, seed=7), "seed=7", "choose from (0,)")


def test_equal_scores_are_warned_of(data) -> None:
    counting = counting_method()._replace(after_step=lambda state, *_: state)
    equal = counting._replace(select=lambda state: fsjax.Selection(state.feature_mask * 0.5))
    with pytest.warns(UserWarning, match="counting gives all columns the same"):
        fsjax.fit(equal, data, num_epochs=1)
    # Among the columns that may be selected; the constant one has another score here.
    x = data[0].copy()
    x[:, 3] = 1.0
    with pytest.warns(UserWarning, match="the same score"):
        fsjax.fit(equal, (x, data[1]), num_epochs=1)
    fsjax.fit(counting, data, num_epochs=1)  # Any warning is an error here.
