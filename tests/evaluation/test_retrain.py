"""The retrain protocol: new networks on the selected columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import chex
import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.data import Dataset, load, make_split
from fsjax.evaluation import check_protocols, evaluate, retrain_metrics

OPTIONS = {"hidden": (16,), "num_epochs": 20, "batch_size": 64, "min_steps_per_epoch": 1}


def table() -> Dataset:
    """400 rows of 8 columns, of which the first two predict the class."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 8)).astype(np.float32)
    return Dataset("table", x, (x[:, 0] + x[:, 1] > 0).astype(np.int32))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record method and options of each plan of the protocol, without training."""
    calls = []
    untrained = SimpleNamespace(
        train=lambda: None, choose=lambda trained: None, test_metrics=lambda chosen: {}
    )

    def recorded(method: fsjax.Method, dataset: Dataset, **options: Any) -> SimpleNamespace:
        calls.append({"method": method, **options})
        return untrained

    monkeypatch.setattr("fsjax.evaluation.retrain.plan", recorded)
    return calls


@pytest.mark.parametrize("best_by", ["last", "loss"])
def test_validation_rows_train_where_no_epoch_is_chosen(best_by: str, plans: list) -> None:
    data = table()
    splits = [make_split(data, "random", seed=seed) for seed in (0, 1)]
    splits.append(splits[0])
    retrain_metrics(data, splits, None, (0, 1, 2), options={"best_by": best_by})
    (call,) = plans
    assert call["split"][2] is call["split"][0]  # so that these seeds are trained together
    if best_by == "loss":
        chex.assert_trees_all_equal(call["split"], splits)
        return
    for merged, split in zip(call["split"], splits, strict=True):
        assert sorted(merged.train) == sorted([*split.train, *split.valid])
        assert not len(merged.valid)
        np.testing.assert_array_equal(merged.test, split.test)


def test_options_reach_the_network_and_its_training(plans: list) -> None:
    data = table()
    splits = [make_split(data, "random", seed=seed) for seed in (0, 1)]
    columns = np.array([[0, 3], [5, 6]])
    training = {"num_epochs": 3, "batch_size": 7, "min_steps_per_epoch": 2, "best_by": "accuracy"}
    training |= {"shuffle": False, "drop_last": True}
    options = {"network": "lenet5", "learning_rate": 0.03, **training}
    retrain_metrics(data, splits, columns, (4, 9), scaling="minmax", options=options, progress=True)
    (call,) = plans
    assert call.pop("columns") is columns and call.pop("split") is splits
    assert dict(call.pop("method").about.settings)["learning_rate"] == 0.03
    expected = {"seeds": [4, 9], "task": "classification", "scaling": "minmax", "progress": True}
    assert call == {**expected, "zero_others": True, **training}


@pytest.mark.slow
def test_columns_matter_and_seeds_have_their_own() -> None:
    data = table()
    splits = [make_split(data, "random", seed=seed) for seed in (0, 1)]
    columns = np.array([[0, 1], [5, 6]])
    metrics = retrain_metrics(data, splits, columns, (0, 1), scaling="standard", options=OPTIONS)
    assert sorted(metrics) == ["retrain_accuracy", "retrain_auc"]
    assert metrics["retrain_accuracy"][0] > 90 > 70 > metrics["retrain_accuracy"][1]
    alone = retrain_metrics(
        data, splits[:1], columns[:1], (0,), scaling="standard", options=OPTIONS
    )
    assert alone["retrain_accuracy"][0] == pytest.approx(metrics["retrain_accuracy"][0], abs=2)


@pytest.mark.long
def test_convolutions_see_zeros_in_place_of_other_columns() -> None:
    data = load("digits")
    splits = [make_split(data, "stratified", seed=0)]
    options = {"network": "lenet5", "num_epochs": 4, "batch_size": 64, "min_steps_per_epoch": 1}
    options["learning_rate"] = 0.03
    every, none = np.arange(64)[None], np.array([[0, 32]])
    metrics = [
        retrain_metrics(data, splits, columns, (0,), scaling="minmax", options=options)
        for columns in (every, none)
    ]
    # Columns 0 and 32 are constant.
    assert metrics[0]["retrain_accuracy"][0] > 80
    assert metrics[1]["retrain_accuracy"][0] < 20


@pytest.mark.slow
def test_protocol_takes_the_columns_and_the_rows_of_the_fit() -> None:
    data = table()
    method = fsjax.methods.random_selection(4, hidden=(4,))
    result = fsjax.fit(method, data, num_epochs=1, seeds=(0, 1), scaling="standard")
    metrics = evaluate(result, data, ("retrain",), (8,), scaling="standard", retrain=OPTIONS)
    assert sorted(metrics) == [
        "retrain_accuracy",
        "retrain_accuracy_k8",
        "retrain_auc",
        "retrain_auc_k8",
    ]
    assert metrics["retrain_accuracy_k8"].min() > 85
    direct = retrain_metrics(
        data, result.splits, result.selected, (0, 1), scaling="standard", options=OPTIONS
    )
    np.testing.assert_array_equal(metrics["retrain_accuracy"], direct["retrain_accuracy"])


def test_numeric_targets_are_regressed() -> None:
    data = table()
    numeric = Dataset("numeric", data.X, data.X[:, 0] * 2)
    splits = [make_split(numeric, "random", "regression", seed=0)]
    options = {**OPTIONS, "learning_rate": 0.03}
    metrics = retrain_metrics(
        numeric, splits, np.array([[0]]), (0,), task="regression", options=options
    )
    assert metrics["retrain_r2"][0] > 0.8
    check_protocols(("retrain",), (), 8, num_classes=0, task="regression")


@pytest.mark.parametrize("task", ["classification", "reconstruction"])
def test_columns_that_are_not_those_of_each_seed(task: str) -> None:
    data = table()
    splits = [make_split(data, "random", seed=0)] * 2
    for columns in ([[0, 1]], [[0, 1], [0, 1], [2, 3]], [0, 1]):
        bad = np.array(columns)
        refuses(lambda bad=bad: retrain_metrics(data, splits, bad, (0, 1), task=task), "2 seeds")


@pytest.mark.parametrize("task", ["regression", "counts"])
def test_the_units_of_a_target_do_not_matter(task: str) -> None:
    data = table()
    y = np.round(np.exp(data.X[:, :2] + 2)).astype(np.float64)
    splits, options = [make_split(data, "random", seed=0)], {**OPTIONS, "num_epochs": 4}
    shift, factor = (-5e4, 1e3) if task == "regression" else (0, 1000)
    found = [
        retrain_metrics(
            Dataset("numbers", data.X, target), splits, None, (0,), task=task, options=options
        )
        for target in (y, y * factor + shift)
    ]
    refuses(lambda: retrain_metrics(data, splits, None, (0, 1), task=task), "1 splits for 2 seeds")
    (error, share), power = found[0], 2 if task == "regression" else 1
    np.testing.assert_allclose(found[1][share], found[0][share], rtol=1e-4)
    np.testing.assert_allclose(found[1][error], found[0][error] * factor**power, rtol=1e-4)
    assert (found[0][share] > 0.5).all()


def copies() -> Dataset:
    """300 rows: columns 0 and 1, and six columns that are mixtures of these."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    x = np.concatenate([x, x @ rng.normal(size=(2, 6)), 3 * rng.normal(size=(300, 1))], axis=1)
    return Dataset("copies", x.astype(np.float32), (x[:, 0] > 0).astype(np.int32))


@pytest.mark.slow
def test_all_scaled_columns_are_predicted_from_the_selected_ones() -> None:
    data = copies()
    splits = [make_split(data, "random", seed=seed) for seed in (0, 1)]
    columns = np.array([[0, 1], [8, 1]])
    options = {**OPTIONS, "learning_rate": 0.03, "best_by": "loss"}
    fixed: dict[str, Any] = {"task": "reconstruction", "scaling": "standard", "options": options}
    metrics = retrain_metrics(data, splits, columns, (0, 1), **fixed)
    names = ["retrain_reconstruction_frobenius", "retrain_reconstruction_mse"]
    assert sorted(metrics) == names
    # Columns have variance 1; the first seed cannot predict the last column, a ninth of all.
    mse = metrics["retrain_reconstruction_mse"]
    assert 0.08 < mse[0] < 0.22 and mse[1] > 1.5 * mse[0]
    # The mean norm of the errors over D is at most their root mean square over the root of D.
    frobenius = metrics["retrain_reconstruction_frobenius"]
    assert (0.5 * np.sqrt(mse / 9) < frobenius).all() and (frobenius <= np.sqrt(mse / 9)).all()
    # Seeds with one split are trained together.
    shared = retrain_metrics(data, splits[:1] * 2, columns, (0, 1), **fixed)
    np.testing.assert_allclose(shared[names[0]][0], frobenius[0], rtol=0.1)


@pytest.mark.slow
def test_reconstruct_judges_a_selection_for_any_task() -> None:
    data = copies()
    method = fsjax.methods.fisher_score(2)
    result = fsjax.fit(method, data, num_epochs=1, scaling="standard")
    metrics = evaluate(result, data, ("reconstruct",), (9,), scaling="standard", retrain=OPTIONS)
    assert {name.removesuffix("_k9") for name in metrics} == {
        "retrain_reconstruction_frobenius",
        "retrain_reconstruction_mse",
    }
    name = "retrain_reconstruction_mse"
    assert metrics[f"{name}_k9"] < metrics[name]
    both = evaluate(result, data, ("reconstruct", "retrain"), retrain=OPTIONS)
    assert {name, "retrain_accuracy"} <= set(both)
    check_protocols(("reconstruct",), (), 8, num_classes=0)


@bad_calls(
    (("retrain",), {"retrain": {"hiden": (3,)}}, "evaluation.retrain has 'hiden'", "'hidden'"),
    (("retrain",), {"retrain": {"learning_rate": -1.0}}, "learning_rate=-1"),
    (("retrain",), {"num_classes": 0}, "retrain protocol needs"),
    (("reconstruct",), {"retrain": {"hiden": (3,)}}, "evaluation.retrain has 'hiden'"),
    (("reconstruct",), {"on_disk": True}, "'reconstruct', but the data set is read"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(lambda: check_protocols(bad[0], (), 8, **bad[1]), *bad[2:])
