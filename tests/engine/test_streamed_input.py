"""Training on streamed tables: batches are read ahead, and results are bitwise the same.

Covers ``fsjax.tables.streamed_rows``.
"""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fsjax
from fsjax import evaluation
from fsjax.data import Dataset, Split, load
from fsjax.engine import streamed
from fsjax.errors import ConfigError, DataError
from fsjax.evaluation.sampling import in_memory
from fsjax.method import Method

STG = fsjax.methods.stg(hidden=(6,), search=False)

#: Small enough for several pieces per epoch, of one batch or several.
ENTRIES = 700


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Dataset]:
    """A table on disk and in memory: 203 rows, two classes by columns 3 and 5, 7 is constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(2, 3, (203, 17)).astype(np.float32)
    X[:, 7] = 1.5
    y = (X[:, 3] + X[:, 5] > 4).astype(np.int32)
    folder = tmp_path_factory.mktemp("stored")
    np.save(folder / "table.npy", X)
    np.save(folder / "table.y.npy", y)
    there = load(folder / "table.npy")
    return there, Dataset("table.npy", X, there.y, class_names=there.class_names)


def assert_same(found: fsjax.FitResult, wanted: fsjax.FitResult) -> None:
    """Checks selection, scores, history, network and metrics, bit for bit."""
    np.testing.assert_array_equal(found.selected, wanted.selected)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert sorted(found.history) == sorted(wanted.history)
    for name, values in wanted.history.items():
        np.testing.assert_array_equal(found.history[name], values, err_msg=name)
    for name, values in wanted.metrics.items():
        np.testing.assert_array_equal(found.metrics[name], values, err_msg=name)
    jax.tree.map(np.testing.assert_array_equal, found.states, wanted.states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (fsjax.methods.wast(hidden=(5,)), {"scaling": "scalar", "seeds": (0, 3)}),
        (STG, {"min_steps_per_epoch": 12, "early_stopping": 1, "seeds": (0, 3)}),
        (
            fsjax.methods.binmask(hidden=(6,), search=False, warmup=0.0),
            {"scaling": "minmax", "record_test": True},
        ),
    ],
)
def test_the_results_are_the_bits_of_the_table_in_memory(
    tables: tuple[Dataset, Dataset],
    monkeypatch: pytest.MonkeyPatch,
    method: Method,
    options: dict[str, Any],
) -> None:
    there, here = tables
    given = {"num_features": 4, "num_epochs": 3, "batch_size": 20, **options}
    wanted = fsjax.fit(method, here, seed_axis="map", **given)
    assert_same(fsjax.fit(method, there, **given), wanted)
    if method is not STG:
        return
    # Many pieces: one batch each, and evaluation in parts.
    monkeypatch.setattr(streamed, "ENTRIES", ENTRIES)
    found = fsjax.fit(method, there, **given)
    np.testing.assert_array_equal(found.selected, wanted.selected)
    for name, values in wanted.history.items():
        np.testing.assert_allclose(found.history[name], values, rtol=2e-5, err_msg=name)
    assert found.cost["wait_seconds"] >= 0
    assert "wait_seconds" not in wanted.cost


@pytest.mark.slow
def test_all_rows_as_one_batch(tables: tuple[Dataset, Dataset]) -> None:
    there, here = tables
    given = {"num_features": 4, "num_epochs": 2, "batch_size": None}
    found = fsjax.fit(STG, there, **given)
    wanted = fsjax.fit(STG, here, seed_axis="map", **given)
    np.testing.assert_array_equal(found.selected, wanted.selected)
    for name, values in wanted.history.items():
        np.testing.assert_allclose(found.history[name], values, rtol=1e-6, err_msg=name)


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint_and_knows_its_rows(
    tables: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    given = {"num_features": 4, "batch_size": 20, "num_epochs": 4, "checkpoint_every": 2}
    whole = fsjax.fit(STG, tables[0], **given)
    saved = given | {"checkpoint_dir": tmp_path / "checkpoints"}
    fsjax.fit(STG, tables[0], callback=lambda progress: progress.epoch >= 2, **saved)
    again = fsjax.fit(STG, tables[0], **saved)
    assert again.cost["trained_epochs"] == 2
    assert_same(again, whole)
    # One value of a training row is changed.
    X = np.asarray(tables[0].X)
    X[whole.splits[0].train[0], 0] += 0.5
    np.save(tmp_path / "table.npy", X)
    other = load(tmp_path / "table.npy", target=str(tables[0].X.source.path.with_suffix(".y.npy")))
    with pytest.raises(ConfigError, match="data_crc32"):
        fsjax.fit(STG, other, **saved)


def test_rows_that_are_lost_while_training_are_told_and_the_reader_ends(
    tables: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    there, here = tables
    np.save(tmp_path / "table.npy", here.X)
    np.save(tmp_path / "table.y.npy", here.y)
    planned = fsjax.plan(STG, load(tmp_path / "table.npy"), num_features=4, num_epochs=2)
    (tmp_path / "table.npy").write_bytes((tmp_path / "table.npy").read_bytes()[:4000])
    before = threading.active_count()
    with pytest.raises(DataError, match="cannot be read as a NumPy file"):
        planned.fit()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (fsjax.methods.mcfs(), {}, "mcfs looks at the whole table at once"),
        (fsjax.methods.fisher_score(), {}, "uses all training rows at once"),
        (fsjax.methods.deep_lasso(hidden=(4,)), {}, "uses all training rows at once"),
        (STG, {"seed_axis": "vmap"}, "seed_axis='vmap'"),
        (STG, {"split_per_seed": True, "seeds": (0, 1)}, "all seeds must share one split"),
        (STG, {"noise_std": 0.1}, "noise_std and columns are not supported"),
    ],
)
def test_what_needs_the_table_in_memory_is_refused_before_training(
    tables: tuple[Dataset, Dataset], method: Method, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.plan(method, tables[0], num_features=4, **options)


def test_a_sample_has_the_values_and_classes_of_its_rows(tables: tuple[Dataset, Dataset]) -> None:
    there, here = tables
    split = Split(*np.split(np.random.default_rng(0).permutation(203), [120, 160]))
    selections = {"": np.array([[5, 3], [8, 3]]), "_k1": np.array([[16], [5]])}
    there = dataclasses.replace(there, image_shape=(17, 1), informative=(3, 5))
    small, splits, placed = in_memory(there, [split, split], selections, 50)
    # All values of column 3 differ, so they identify the rows.
    rows = np.flatnonzero(np.isin(here.X[:, 3], small.X[:, placed[""][0, 1]]))
    assert len(rows) == small.num_samples == 48
    np.testing.assert_array_equal(small.y, here.y[rows])
    for name, columns in selections.items():
        np.testing.assert_array_equal(small.X[:, placed[name]], here.X[rows][:, columns])
    for part, sampled in zip(split, splits[1], strict=True):
        assert set(rows[sampled]) <= set(part)


@pytest.mark.slow
def test_other_protocols_take_the_rows_of_the_split_or_a_sample(
    tables: tuple[Dataset, Dataset],
) -> None:
    there, here = tables
    given = {"num_features": 4, "num_epochs": 1, "batch_size": 20}
    found = fsjax.fit(STG, there, **given)
    wanted = fsjax.fit(STG, here, seed_axis="map", **given)
    options = {"hidden": (4,), "num_epochs": 2}
    protocols = ("svm", "retrain")
    judged = [
        evaluation.evaluate(one, data, protocols, (2,), retrain=options)
        for one, data in ((found, there), (wanted, here))
    ]
    assert judged[0].keys() == judged[1].keys()
    for name, values in judged[1].items():
        np.testing.assert_array_equal(judged[0][name], values, err_msg=name)
    sampled = evaluation.evaluate(found, there, ("svm",), sample_rows=50)
    # 10 of 41 test rows; each part is rounded down.
    right = sampled["svm_accuracy"] / 100 * 10
    np.testing.assert_allclose(right, np.round(right), atol=1e-9)
    assert evaluation.sampled_rows(there, found.splits[0], 50) == 49
    assert evaluation.sampled_rows(there, found.splits[0], 203) is None
    assert evaluation.sampled_rows(here, found.splits[0], 50) is None
    with pytest.raises(ConfigError, match="noise_std"):
        evaluation.evaluate(found, there, ("svm",), noise_std=0.1)


@pytest.mark.slow
def test_a_loss_of_ones_own_and_what_it_records(
    tables: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(params: Any, state: Any, batch: Any, key: Any) -> tuple[Any, dict[str, Any]]:
        value, aux = STG.loss(params, state, batch, key)
        return value, {**aux, "first": batch.x[0, 0]}

    def doubled(outputs: Any, y: Any, weight: Any) -> Any:
        return 2.0 * fsjax.tasks.loss("classification", outputs, y, weight)

    method = STG._replace(loss=loss, record=("first",))
    there, here = tables
    given = {"num_features": 4, "num_epochs": 2, "batch_size": 20, "loss": doubled}
    wanted = fsjax.fit(method, here, seed_axis="map", **given)
    assert_same(fsjax.fit(method, there, **given), wanted)
    # Several pieces per epoch, some of one batch.
    monkeypatch.setattr(streamed, "ENTRIES", ENTRIES)
    found = fsjax.fit(method, there, **given)
    for name in ("train/first", "train/loss", "valid/loss"):
        np.testing.assert_allclose(found.history[name], wanted.history[name], rtol=2e-5)
