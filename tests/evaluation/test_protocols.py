"""Protocols: their metrics, what is computed only once, and invalid arguments."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.data import Dataset, load
from fsjax.evaluation import check_protocols, evaluate, protocols, svm_accuracy


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


@pytest.fixture(scope="module")
def result(digits: Dataset) -> fsjax.FitResult:
    method = fsjax.methods.random_selection(5, hidden=(4,))
    return fsjax.fit(method, digits, seeds=(0, 1, 2), num_epochs=1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The sets of columns on which the SVM was trained."""
    seen = []

    def counted(dataset, split, columns, **options):
        seen.append(tuple(columns.tolist()))
        return svm_accuracy(dataset, split, columns, **options)

    monkeypatch.setattr(protocols, "svm_accuracy", counted)
    return seen


@pytest.mark.slow
def test_svm_at_several_k(result: fsjax.FitResult, digits: Dataset) -> None:
    metrics = evaluate(result, digits, ("svm",), (5, 3, 20))
    assert list(metrics) == ["svm_accuracy", "svm_accuracy_k3", "svm_accuracy_k20"]
    selections = (result.selected, *map(result.select, (3, 20)))
    for name, selected in zip(metrics, selections, strict=True):
        expected = [svm_accuracy(digits, result.splits[0], columns) for columns in selected]
        np.testing.assert_array_equal(metrics[name], expected)
    assert metrics["svm_accuracy_k20"].min() > metrics["svm_accuracy_k3"].max()


def test_retraining_has_the_scaling_and_the_rows_of_the_fit(
    result: fsjax.FitResult, digits: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(
        protocols, "retrain_metrics", lambda *args, **options: calls.append((args, options)) or {}
    )
    evaluate(result, digits, ("retrain",), (3,), scaling="minmax", retrain={"num_epochs": 2})
    for (args, options), columns in zip(calls, (result.selected, result.select(3)), strict=True):
        assert args[0] is digits and args[1] is result.splits and args[3] == result.seeds
        np.testing.assert_array_equal(args[2], columns)
        assert options.pop("options") == {"num_epochs": 2}
        assert options == {"task": "classification", "scaling": "minmax"}


def test_identical_sets_are_computed_once(
    result: fsjax.FitResult, digits: Dataset, calls: list
) -> None:
    selected = np.array([[3, 20, 30], [30, 3, 20], [20, 30, 43]])
    same = dataclasses.replace(result, selected=selected, num_features=3)
    accuracies = evaluate(same, digits, ("svm",))["svm_accuracy"]
    assert sorted(calls) == [(3, 20, 30), (20, 30, 43)]
    assert accuracies[0] == accuracies[1] != accuracies[2]


def test_the_same_set_on_another_split_is_another_one(
    result: fsjax.FitResult, digits: Dataset, calls: list
) -> None:
    first = result.splits[0]
    other = first._replace(train=first.train[:50], valid=first.valid[:0])
    changed = dataclasses.replace(
        result, selected=np.tile(np.arange(20, 25), (3, 1)), splits=(first, other, first)
    )
    accuracies = evaluate(changed, digits, ("svm",))["svm_accuracy"]
    assert len(calls) == 2
    assert accuracies[0] == accuracies[2] > accuracies[1]


def test_without_test_rows_there_is_nothing_to_judge(
    result: fsjax.FitResult, digits: Dataset
) -> None:
    split = result.splits[0]._replace(test=np.zeros(0, np.int32))
    untested = dataclasses.replace(result, splits=[split] * 3, metrics={})
    assert evaluate(untested, digits, protocols.PROTOCOLS) == {}
    for task in ("classification", "reconstruction"):
        assert protocols.retrain_metrics(digits, [split], None, (0,), task=task) == {}
    refuses(lambda: svm_accuracy(digits, split, np.arange(3)), "no test rows")


@bad_calls(
    ((("embeded",), (), 64), "evaluation.protocols has 'embeded'"),
    ((("knn",), (), 64), "allowed: 'embedded', 'svm', 'retrain'"),
    (("svm", (), 64), "give a tuple of names: ('svm',)"),
    ((("svm",), (65,), 64), "evaluation.num_features has 65 but X"),
    ((("svm",), (25, 0), 64), "evaluation.num_features=0"),
    ((("svm",), (2.5,), 64), "evaluation.num_features=2.5"),
    ((("embedded", "svm"), (), 10), "leave 'svm' out of evaluation.protocols"),
)
def test_bad_protocols(bad: tuple) -> None:
    refuses(lambda: check_protocols(*bad[0], num_classes=0 if bad[0][2] == 10 else 2), bad[1])


def test_classes_are_needed_for_svm_only() -> None:
    check_protocols(("embedded",), (), 10, num_classes=0)
    check_protocols(("embedded", "svm"), (10,), 10)
    check_protocols(("embedded", "svm"), (), 10, num_classes=2)


@bad_calls(
    ({"num_features": (65,)}, "choose at most 64"),
    ({"noise_std": -1}, "noise_std=-1"),
    ({"data": {"y": None, "class_names": None}}, "the SVM protocol needs class labels"),
    ({"data": {"name": "mnist"}}, "'mnist' (1797 rows, 64 columns); pass the data of the fit"),
    ({"rows": 1796}, "this is ", " (1796 rows, 64 columns)"),
    ({"columns": 63}, "this is 'digits' (1797 rows, 63 columns)"),
)
def test_bad_calls(bad: tuple, result: fsjax.FitResult, digits: Dataset, calls: list) -> None:
    options = dict(bad[0])
    rows, columns = options.pop("rows", 1797), options.pop("columns", 64)
    changes = {"name": "digits", "y": digits.y[:rows], **options.pop("data", {})}
    data = Dataset(X=np.asarray(digits.X)[:rows, :columns], **changes)
    refuses(lambda: evaluate(result, data, ("svm",), **options), *bad[1:])
    assert not calls
