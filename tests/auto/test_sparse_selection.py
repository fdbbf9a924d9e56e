"""``fsjax.select`` on sparse tables: what dense ones are told, and never dense as a whole."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.datasets import dump_svmlight_file

import fsjax
from fsjax.__main__ import main
from fsjax.auto.certainty.false_discovery import decoy_model
from fsjax.auto.certainty.leaks import alike, leaks
from fsjax.auto.contest import cross_validation, judge, network_rankings, rankers
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.contest.rankers import lasso
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.scoring import METRICS, OF_TASK
from fsjax.auto.reading import column_operations as table_columns
from fsjax.auto.reading.columns import design_of_array
from fsjax.auto.reading.sparse_columns import sparse_design
from fsjax.errors import ConfigError
from fsjax.tables.readers.table_files import load_frame

QUICK = ("univariate", "l1")


def table(rows: int = 160, columns: int = 14, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mostly zeros; three of the columns matter, and negative values are among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(1, 1, (rows, columns)) * (rng.random((rows, columns)) < 0.25)
    signal = X[:, 3] + X[:, 11] - X[:, 5] + 0.1 * rng.normal(size=rows)
    return X, np.where(signal > np.median(signal), "high", "low")


@pytest.fixture
def never_dense(monkeypatch) -> None:
    """Makes it an error to turn more than a few columns into a dense table."""

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def made(self, *args, **kwargs):
            wide = len(self.shape) == 2 and self.shape[0] > 1 and self.shape[1] > 500
            assert not wide, f"{self.shape} became dense"
            return real(self, *args, **kwargs)

        return made

    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, guarded(getattr(kind, name)))


@pytest.fixture(scope="module")
def dense() -> fsjax.auto.Selection:
    X, y = table()
    return fsjax.select(X, y, methods=QUICK, budget=None, judge="linear")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_matrix, "frame"])
def test_what_a_dense_table_is_told(kind, dense):
    X, y = table()
    if kind == "frame":
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(14)])
        X = X.astype(pd.SparseDtype(float, 0.0))
    else:
        X = kind(X)
    selection = fsjax.select(X, y, methods=QUICK, budget=None, judge="linear")
    assert selection.columns == dense.columns and set(selection.columns) <= {"x3", "x11", "x5"}
    assert selection.score == dense.score and selection.score_all_columns == dense.score_all_columns
    pd.testing.assert_frame_equal(selection.curves, dense.curves)
    # The decoys are others.
    compared = ["column", "selected", "frequency", "score", "group"]
    pd.testing.assert_frame_equal(selection.table[compared], dense.table[compared])
    assert selection.facts.nonzeros == (table()[0] != 0).sum() and dense.facts.nonzeros is None


@pytest.mark.slow
def test_a_wide_table_is_never_dense(never_dense, tmp_path, monkeypatch):
    monkeypatch.setattr(rankers.trees, "TREES", 10)
    rng = np.random.default_rng(0)
    X = sp.random_array((160, 700), density=0.02, rng=rng, format="lil")
    y = np.arange(160) % 2
    X[:, [7]] = (y + (rng.random(160) < 0.05))[:, None]
    selection = fsjax.select(X, y, methods=(*QUICK, "forest"), budget=None, workdir=tmp_path)
    assert "x7" in selection.columns and selection.better_than_chance
    assert selection.score_all_columns > 40
    page = (tmp_path / "report.html").read_text()
    assert "nonzero values" in page and "from all columns a linear model" in page
    # The same files, from what is there; and another table is refused.
    again = fsjax.select(X.tocsr(), y, methods=(*QUICK, "forest"), budget=None, workdir=tmp_path)
    assert again.columns == selection.columns
    X[0, 8] = 5.0
    with pytest.raises(ConfigError, match="table was .*, is "):
        fsjax.select(X, y, methods=(*QUICK, "forest"), budget=None, workdir=tmp_path)


@pytest.mark.slow
def test_a_network_competes(never_dense, monkeypatch):
    # Networks train on the columns that screening keeps, which alone become dense.
    monkeypatch.setattr(network_rankings, "MAX_COLUMNS", 100)
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 200), density=0.1, rng=rng, format="csc")
    X = sp.csc_array(X + sp.csc_array((200 * [1.0], (np.arange(200) % 150, np.arange(200)))))
    signs = rng.choice([-1.0, 1.0], (150, 2))
    X = sp.hstack([X, sp.csc_array(signs)])
    part, _ = parts(
        sparse_design(X), (signs > 0)[:, 0].astype(int), Fold(*np.split(np.arange(150), [149]))
    )
    for name in ("deep_lasso", "l1_l21"):
        (ranking,) = network_rankings.rank_folds(
            name, [part], "classification", np.arange(202), (2,), 0
        )
        assert 200 in ranking.order[2]


def test_columns_of_no_use_are_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 8)) * (rng.random((50, 8)) < 0.4)
    X[:, 1], X[:, 2], X[:, 4], X[:, 6] = 0.0, 7.0, X[:, 0], rng.permutation(50)
    selection = sparse_design(sp.csc_matrix(X))
    assert selection.units == selection.names == ("x0", "x3", "x5", "x7")
    assert [(note.column, note.kind) for note in selection.notes] == [
        ("x1", "constant"), ("x2", "constant"), ("x4", "duplicate"), ("x6", "identifier"),
    ]  # fmt: skip
    assert [note.text for note in selection.notes] == [
        note.text for note in design_of_array(X, None, None).notes
    ]
    np.testing.assert_array_equal(selection.X.toarray(), X[:, [0, 3, 5, 7]])
    assert sparse_design(sp.csc_matrix(X), keep=["x6"]).units == (*selection.units[:3], "x6", "x7")


@bad_calls(
    ({"X": sp.csr_array((160, 5))}, "no column is left", "'x0' has one value only"),
    ({"X": sp.csr_array([[1.0, np.nan], [0.0, 2.0]]), "y": [0, 1]}, "1 missing", "SimpleImputer"),
    ({"X": sp.csr_array([[1.0, np.inf], [0.0, 2.0]]), "y": [0, 1]}, "1 infinite"),
    ({"X": sp.csr_array([[1.0, 0], [0, 1j]]), "y": [0, 1]}, "give real numbers"),
    ({"X": sp.coo_array(np.ones(160))}, "X has shape"),
    ({"X": sp.csr_array((0, 4)), "y": []}, "X has shape"),
    ({"y": np.zeros(5)}, "y has 5 values for 160 rows"),
    ({"impute": "medain"}, "did you mean 'median'"),
)
def test_bad_calls(bad, monkeypatch):
    monkeypatch.setattr(cross_validation.Contest, "_fold", lambda *_: pytest.fail("it ran"))
    X, y = table()
    refuses(lambda: fsjax.select(**{"X": sp.csr_array(X), "y": y, **bad[0]}), *bad[1:])


def test_frames_that_are_sparse_in_part_are_read_as_before():
    frame = pd.DataFrame({"a": [0.0, 1, 0], "b": [0.0, 0, 2]}).astype(pd.SparseDtype(float, 0.0))
    assert table_columns.is_sparse_table(frame) and table_columns.is_sparse_table(
        frame.astype(pd.SparseDtype(bool, False))
    )
    assert not table_columns.is_sparse_table(frame.assign(c="text"))
    missing = {name: pd.arrays.SparseArray(frame[name], fill_value=np.nan) for name in frame}
    assert not table_columns.is_sparse_table(pd.DataFrame(missing))
    assert not table_columns.is_sparse_table(frame.iloc[:, :0])


def both(seed: int, rows: int = 40, columns: int = 9) -> tuple[np.ndarray, sp.csr_array]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.5)
    X[:, 0], X[:, 1] = 0, rng.integers(1, 4, rows)
    return X.astype(float), table_columns.float_rows(sp.csr_array(X))


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_operations_are_those_of_dense_columns(seed):
    X, rows = both(seed)
    # Up to a shift of each column.
    selection = table_columns.ranks(rows).toarray()
    expected = rankdata(X, axis=0)
    np.testing.assert_allclose(np.ptp(selection - expected, axis=0), 0, atol=1e-9)
    assert not selection[X == 0].any()
    for one, other in zip(table_columns.limits(rows), table_columns.limits(X), strict=True):
        np.testing.assert_array_equal(one, other)
    compared, centred = standardise(rows[:30], rows[30:]), standardise(X[:30], X[30:])
    for one, other in zip(compared, centred, strict=True):
        shift = one.toarray() - other
        np.testing.assert_allclose(shift, np.broadcast_to(shift[:1], shift.shape), atol=1e-9)
    some = np.array([4, 2])
    np.testing.assert_allclose(
        table_columns.dense_columns(compared[0], some),
        table_columns.dense_columns(centred[0], some),
        atol=1e-9,
    )


def test_scores_are_those_of_dense_columns():
    X, y = table()
    labels = (y == "high").astype(int)
    fold = Fold(np.arange(100), np.arange(100, 160))
    train, test = parts(design_of_array(X, None, None), labels, fold)
    compared, own_test = parts(sparse_design(sp.csr_array(X)), labels, fold)
    assert sp.issparse(compared.X) and not sp.issparse(train.X)
    for name in ("univariate", "l1"):
        score = rankers.SIMPLE[name]
        for task in ("classification", "regression"):
            np.testing.assert_allclose(
                score(compared, task, 0), score(train, task, 0), rtol=2e-3, atol=1e-4
            )
    some, metric = np.array([3, 11]), METRICS["auc"]
    for model in judge.judges_of("classification"):
        expected = judge.judged(model, metric, "classification", train, test, some)
        sparse_score = judge.judged(model, metric, "classification", compared, own_test, some)
        assert sparse_score.score == pytest.approx(expected.score, abs=1e-6)


def test_a_path_ends_where_too_many_take_part(monkeypatch):
    X, y = table()
    part = Part(
        standardise(table_columns.float_rows(sp.csr_array(X)))[0], (y == "high").astype(int)
    )
    whole = rankers.l1(part, "classification", 0)
    monkeypatch.setattr(lasso, "FEW", 3)
    short = rankers.l1(part, "classification", 0)
    assert (whole > 0).sum() > 12 > (short > 0).sum() > 3
    np.testing.assert_array_equal(np.argsort(-short)[:3], np.argsort(-whole)[:3])


@pytest.mark.parametrize("metric", list(METRICS))
def test_all_of_many_columns_have_a_linear_model(metric, monkeypatch):
    monkeypatch.setattr(judge, "FEW", 10)
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 40), density=0.3, rng=rng, format="csr")
    signal = np.asarray(X[:, :20].sum(axis=1) - X[:, 20:].sum(axis=1)).ravel()
    y: np.ndarray = (signal > np.median(signal)).astype(int)
    task = next(task for task, compared in OF_TASK.items() if metric in compared)
    if task == "regression":
        y = signal
    elif task == "multilabel":
        y = np.column_stack([y, 1 - y])
    elif task == "counts":
        y = rng.poisson(np.exp(1 + 0.5 * signal)).astype(float)
    elif task == "survival":
        y = np.column_stack([np.exp(-signal), np.ones(300)])
    compared = standardise(X[:200], X[200:])
    train, test = Part(compared[0], y[:200]), Part(compared[1], y[200:])
    kind = METRICS[metric]
    slowest = judge.judges_of(task)[-1]
    score = judge.judged(slowest, kind, task, train, test, np.arange(40)).score
    chance = kind.chance(train.y, test.y)
    assert score > chance + (25 if "accuracy" in metric else 0.02 if metric == "d2" else 0.3)


def test_rare_columns_are_as_large_as_others_for_a_linear_model():
    X = np.array([[0.0, 4, 0], [100, 0, 0], [0, -8, 0], [0, 4, 0]])
    X = sp.csr_array(sp.hstack([sp.csr_array(X), sp.csr_array((4, judge.FEW))]))
    y = np.zeros(4)
    compared, test = judge._seen(Part(X, y), Part(2 * X, y), np.arange(X.shape[1]))
    np.testing.assert_allclose(compared.data / compared.data[0], [1, 2, -2, 1])
    assert np.square(compared.data).sum() / 4 == pytest.approx(1)
    np.testing.assert_allclose(test.data, 2 * compared.data)


@pytest.mark.slow
def test_decoys_are_the_columns_with_their_rows_in_another_order():
    X, _ = both(0)
    design = sparse_design(sp.csr_array(X))
    drawn, groups = decoy_model(design.X, design.groups)(np.random.default_rng(0))
    units = design.num_units
    np.testing.assert_array_equal(np.sort(groups), np.arange(2 * units))
    real, decoys = np.split(drawn.toarray()[:, np.argsort(groups)], 2, axis=1)
    np.testing.assert_array_equal(real, design.X.toarray())
    np.testing.assert_array_equal(np.sort(decoys, axis=0), np.sort(real, axis=0))
    assert (decoys != real).any(axis=0).all()
    # Each in an order of its own, and every order as likely as any other.
    first = [permuted_rows(seed) for seed in range(2000)]
    np.testing.assert_allclose(np.mean(first, axis=0), 2.0, atol=0.15)


def permuted_rows(seed: int) -> np.ndarray:
    column = sp.csr_array(np.array([[1.0], [0], [5], [2]]))
    return table_columns.permuted_columns(column, np.random.default_rng(seed)).toarray()[:, 0]


def test_leaks_and_what_could_stand_for_what():
    X, y = both(1)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 40)
    wide = np.column_stack([X, labels * 3.0, X[:, 4] ** 3])
    made, compared = design_of_array(wide, None, None), sparse_design(sp.csr_array(wide))
    assert [note.column for note in leaks(compared, labels, "classification")] == ["x9"]
    number = np.arctan(wide[:, 5])
    assert leaks(compared, number, "regression") == leaks(made, number, "regression") != []
    order = np.arange(compared.num_units)
    np.testing.assert_allclose(alike(compared, order), alike(made, order), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [pytest.param("npz", marks=pytest.mark.long), "libsvm"])
def test_files(suffix, never_dense, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = sp.random_array((100, 700), density=0.02, rng=rng, format="lil")
    X[:, [5]] = (y + (rng.random(100) < 0.05))[:, None]
    X = X.tocsr()
    if suffix == "npz":
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        np.savez("t.npz", format=b"csr", **parts, label=y)
    else:
        dump_svmlight_file(X, y, "t.libsvm")
    target = "label" if suffix == "npz" else None
    frame, _, _, _ = load_frame(f"t.{suffix}", target)
    assert table_columns.is_sparse_table(frame)
    assert frame.shape == (100, 700)
    flags = ["--methods=l1", "--quiet", "--budget=1h", "--drop=x9", "--workdir=w"]
    assert main(["select", f"t.{suffix}", *flags, *(["--target=label"] if target else [])]) == 0
    assert json.loads(Path("w/selection.json").read_text())["columns"] == ["x5"]
