"""Training on sparse tables: the results of dense ones, with memory for non-zeros and a batch."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from engine_helpers import linear_method, prepared_by
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

import fsjax
from fsjax import evaluation
from fsjax.data import Dataset, fit_scaler
from fsjax.engine import choose, epoch_metrics
from fsjax.errors import ConfigError, DataError
from fsjax.method import Method
from fsjax.methods import METHODS
from fsjax.tables.base import as_table
from fsjax.tables.scaled import filled_rows, scaled, stack_rows
from fsjax.tables.scaling import apply
from fsjax.tables.sparse import as_csr, check_size
from fsjax.tables.sparse_rows import map_rows, only_columns
from fsjax.tasks import TABLE, metrics, row_metrics
from fsjax.tasks.examples import example

STG = fsjax.methods.stg(hidden=(6,), search=False)


def table(seed: int = 0, rows: int = 90, columns: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """Three classes by columns 0, 4 and 9; some rows and columns are empty, full or constant."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.3)
    y = np.arange(rows) % 3
    x[np.arange(rows), np.array([0, 4, 9])[y]] += 3.0
    x[11] = rng.normal(size=columns)
    x[:, 7], x[:, 8], x[5] = 1.0, 0.0, 0.0
    return x, y


def target_of(task: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The table with a target that follows from the three columns."""
    x, y = table()
    if not TABLE[task].target.classes:
        y = example(TABLE[task], np.random.default_rng(1), x[:, [0, 4, 9]])
    return x, y


def heavy_tailed(seed: int, rows: int = 23, columns: int = 40) -> np.ndarray:
    """A few rows have most of the non-zeros."""
    rng = np.random.default_rng(seed)
    share = np.where(rng.random((rows, 1)) < 0.1, 0.95, 0.03)
    return rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < share)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["standard", "minmax"]))
@settings(max_examples=10, deadline=None)
def test_rows_are_those_of_the_dense_table(seed: int, kind: str) -> None:
    x = heavy_tailed(seed)
    scaler = fit_scaler(kind, x)
    sparse, dense = scaled(as_table(as_csr(sp.csr_array(x))), scaler), apply(scaler, x)
    # With repeats, so that the longest row may come many times.
    wanted = np.random.default_rng(seed).integers(0, len(x), 30)
    rows = filled_rows(sparse)
    np.testing.assert_array_equal(rows[wanted], dense[wanted])
    np.testing.assert_array_equal(rows.only(wanted)[:9], dense[wanted[:9]])


def test_rows_under_vmap() -> None:
    x = heavy_tailed(0)
    sparse = scaled(as_table(as_csr(sp.csr_array(x))), fit_scaler("none", x))
    # The longest row repeated, with the shortest ones.
    order = np.argsort((x != 0).sum(axis=1))
    wanted = np.stack([order[:8], np.repeat(order[-1:], 8)])
    found = jax.jit(jax.vmap(lambda one: sparse[one]))(wanted)
    np.testing.assert_array_equal(found, x[wanted].astype(np.float32))


@pytest.mark.parametrize("zero_others", [False, True])
def test_some_columns(zero_others: bool) -> None:
    x, columns = heavy_tailed(0), np.array([7, 2, 30])
    scaler = fit_scaler("standard", x)
    found = only_columns(scaled(as_table(as_csr(sp.csr_array(x))), scaler), columns, zero_others)[:]
    dense = apply(scaler, x)
    kept = np.isin(np.arange(40), columns)
    np.testing.assert_array_equal(
        found, np.where(kept, dense, 0) if zero_others else dense[:, columns]
    )


def test_rows_in_parts() -> None:
    x = heavy_tailed(1)
    rows = scaled(as_table(as_csr(sp.csr_array(x))), fit_scaler("none", x))
    for most in (1, 5, 23, 100):
        found = map_rows(lambda part: {"sum": part.sum(axis=1)}, rows, most)["sum"]
        np.testing.assert_allclose(found, x.sum(axis=1), atol=1e-5)


def test_tables_of_several_seeds() -> None:
    tables = [heavy_tailed(seed) for seed in (0, 1)]
    rows = [scaled(as_table(as_csr(sp.csr_array(x))), fit_scaler("none", x)) for x in tables]
    both = stack_rows(rows)
    assert both.shape == (2, 23, 40)
    np.testing.assert_allclose(jax.vmap(lambda one: one[:])(both), np.stack(tables), rtol=1e-6)


def test_the_whole_table_is_never_taken() -> None:
    x = heavy_tailed(0)
    rows = scaled(as_table(as_csr(sp.csr_array(x))), fit_scaler("none", x))
    with pytest.raises(TypeError, match="uses the whole table"):
        jnp.sum(rows)
    for index in (np.ones(23, bool), (slice(None), 2), 3):
        with pytest.raises(TypeError, match="rows of a sparse table are indexed"):
            rows[index]


def same(method: Method, task: str, **options: Any) -> None:
    """Checks that the method has the same selection and metrics, dense and sparse."""
    x, y = target_of(task)
    given = {"task": task, "seeds": (0, 1), "num_epochs": 2, "batch_size": 16}
    if method.about.num_features is None:
        given["num_features"] = 4
    given |= options
    dense = fsjax.fit(method, (x, y), **given)
    sparse = fsjax.fit(method, (sp.csc_matrix(x), y), **given)
    np.testing.assert_array_equal(sparse.ranking, dense.ranking)
    np.testing.assert_allclose(sparse.scores, dense.scores, rtol=1e-4, atol=1e-5)
    pairs = [(name, values, sparse.metrics[name]) for name, values in dense.metrics.items()]
    pairs += [(name, values, sparse.history[name]) for name, values in dense.history.items()]
    for name, values, others in pairs:
        # Rounding decides about the order of rows whose selected columns are equal.
        atol = 0.05 if name.endswith("auc") else 1e-5
        np.testing.assert_allclose(others, values, rtol=1e-4, atol=atol)
    if method.predict is not None:
        outputs = sparse.predict(sp.coo_array(x))
        np.testing.assert_allclose(outputs, dense.predict(x), rtol=1e-4, atol=1e-4)


@slow_ids(
    "binmask-classification",
    "stg-regression",
    "wast-reconstruction",
    "ip_cae-reconstruction",
    "quick_selection-reconstruction",
)
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("binmask", "classification"),
        ("stg", "regression"),
        ("wast", "reconstruction"),
        ("ip_cae", "reconstruction"),
        ("quick_selection", "reconstruction"),
        ("fisher_score", "classification"),
        pytest.param("random_selection", "classification", marks=pytest.mark.long),
    ],
)
def test_the_selection_is_that_of_the_dense_table(name: str, task: str) -> None:
    same(METHODS[name](**METHODS[name].registration.small), task)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("stg", "survival"),
        ("stg", "multilabel"),
        *(
            pytest.param(name, task, marks=pytest.mark.long)
            for name, task in [
                ("stg", "counts"),
                ("deep_lasso", "survival"),
                ("deep_lasso", "multilabel"),
                ("deep_lasso", "counts"),
                ("binmask", "survival"),
                ("binmask", "multilabel"),
                ("binmask", "counts"),
            ]
        ),
    ],
)
def test_other_targets(name: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Losses that compare rows see all rows, although these are made dense in parts.
    monkeypatch.setattr("fsjax.engine.epoch_metrics.EVALUATION_ROWS", 17)
    # The attribute of the package is the method of the same name.
    monkeypatch.setattr(sys.modules["fsjax.methods.deep_lasso"], "ROWS_AT_ONCE", 17)
    options = {"batch_size": None} if task == "survival" else {}
    same(METHODS[name](**METHODS[name].registration.small), task, record_test=True, **options)


@pytest.mark.long
def test_survival_in_small_batches_and_on_halves_of_the_rows() -> None:
    same(METHODS["stg"](**METHODS["stg"].registration.small), "survival", batch_size=16)
    x, y = target_of("survival")
    given = {"task": "survival", "num_pairs": 2, "num_features": 3, "num_epochs": 2}
    one, two = (fsjax.fit_subsamples(STG, (form, y), **given) for form in (x, sp.csr_array(x)))
    np.testing.assert_array_equal(one.ranking, two.ranking)
    found = two.metrics["concordance_index"]
    np.testing.assert_allclose(found, one.metrics["concordance_index"], rtol=1e-5)


def test_the_metrics_of_reconstructed_rows() -> None:
    rng = np.random.default_rng(0)
    outputs, x = rng.normal(size=(2, 9, 5)).astype(np.float32)
    of_rows = row_metrics("reconstruction", outputs, x)
    whole = metrics("reconstruction", outputs, x, np.ones(9, np.float32))
    for name, value in whole.items():
        np.testing.assert_allclose(of_rows[name].mean(), value, rtol=1e-6)
    entry = TABLE["reconstruction"]
    expected = entry.outputs.test_metrics(outputs, x)
    from_rows = entry.outputs.test_metrics_from_rows(
        {name: np.asarray(values) for name, values in of_rows.items()}
    )
    assert from_rows == pytest.approx(expected, rel=1e-6)


def test_test_metrics_are_those_of_the_task_with_a_loss_of_ones_own() -> None:
    def sevenfold(outputs: jax.Array, x: jax.Array, weight: jax.Array) -> jax.Array:
        return 7 * fsjax.tasks.loss("reconstruction", outputs, x, weight)

    outputs, x = np.random.default_rng(0).normal(size=(2, 9, 5)).astype(np.float32)
    run: Any = SimpleNamespace(spec=SimpleNamespace(task="reconstruction", loss=sevenfold))
    run.prepared = SimpleNamespace(x_test=[x], y_test=[None])
    rows = epoch_metrics.metrics_of_each_row(run.spec, outputs, x)
    chosen: Any = SimpleNamespace(outputs={name: values[None] for name, values in rows.items()})
    expected = TABLE["reconstruction"].outputs.test_metrics(outputs, x)
    assert choose.test_metrics(run, chosen) == pytest.approx(expected, rel=1e-6)
    every: Any = SimpleNamespace(weight=jnp.ones(9))
    recorded = epoch_metrics.evaluate_outputs(linear_method(), run, rows, every)
    assert sorted(recorded) == ["loss", "reconstruction_frobenius"]
    assert float(recorded["loss"]) == pytest.approx(7 * expected["mse"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"split_per_seed": True, "record_test": True},
        {"best_by": "auc", "min_steps_per_epoch": 12, "seed_axis": "vmap"},
        {"batch_size": None, "scaling": "scalar"},
        {"scaling": "minmax", "sample_weight": np.linspace(1, 2, 90), "valid_fraction": 0.0},
    ],
    ids=lambda options: "-".join(options),
)
def test_options_that_look_at_the_rows(options: dict[str, Any]) -> None:
    x, y = table()
    if options.get("best_by") == "auc":
        y = y % 2
    given = {"seeds": (0, 1), "num_epochs": 2, "batch_size": 16, "num_features": 4, **options}
    dense, sparse = (fsjax.fit(STG, (one, y), **given) for one in (x, sp.csr_array(x)))
    np.testing.assert_array_equal(sparse.ranking, dense.ranking)
    for name, values in dense.history.items():
        np.testing.assert_allclose(sparse.history[name], values, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_attribution_and_similarities_of_some_rows() -> None:
    small = METHODS["set"].registration.small
    same(fsjax.methods.set(**small | {"rank_by": "attribution_times_input"}), "reconstruction")
    some = METHODS["ctre_sim"].registration.small | {"similarity_fraction": 0.5}
    same(fsjax.methods.ctre_sim(**some), "classification")


@pytest.mark.slow
def test_both_halves_of_the_rows() -> None:
    x, y = table()
    given = {"num_pairs": 2, "num_features": 3, "num_epochs": 2, "batch_size": 8}
    one, two = (fsjax.fit_subsamples(STG, (form, y), **given) for form in (x, sp.csr_array(x)))
    np.testing.assert_array_equal(one.ranking, two.ranking)
    np.testing.assert_allclose(one.metrics["embedded_accuracy"], two.metrics["embedded_accuracy"])


def test_the_fisher_score_of_weighted_and_constant_columns() -> None:
    x, y = table()
    x[:, 7] = 1.0  # in the empty row too
    x[:, 1] = y + 1.0  # all of it between the classes
    x[:, 2] = (y == 1) * 2.0  # likewise, and zero in two of them
    given = {"num_features": 3, "sample_weight": np.linspace(0.1, 3, 90), "scaling": "none"}
    method = fsjax.methods.fisher_score()
    dense, sparse = (fsjax.fit(method, (form, y), **given) for form in (x, sp.csr_array(x)))
    assert dense.scores[0, 1] == dense.scores[0, 2] == 1e12
    np.testing.assert_allclose(sparse.scores, dense.scores, rtol=1e-4, atol=1e-6)
    assert (sparse.scores[0, [7, 8]] == 0).all()


@pytest.mark.long
def test_the_columns_that_protocols_take() -> None:
    x, y = table()
    sets = [Dataset("mine", form, y.astype(np.int32)) for form in (x, sp.csr_array(x))]
    options = {"retrain": {"num_epochs": 2, "hidden": (5,)}}
    found = []
    for one in sets:
        result = fsjax.fit(STG, one, num_features=3, num_epochs=2, batch_size=16)
        found.append(evaluation.evaluate(result, one, ("svm", "retrain"), (2,), **options))
    assert found[0].keys() == found[1].keys() != set()
    for name, values in found[0].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-5)
    times = [Dataset("mine", one.X, target_of("survival")[1]) for one in sets]
    concordance = [
        evaluation.evaluate(
            fsjax.fit(STG, one, task="survival", num_features=3, num_epochs=2),
            one,
            ("retrain",),
            **options,
        )["retrain_concordance_index"]
        for one in times
    ]
    np.testing.assert_allclose(*concordance, rtol=1e-5)
    transformed = result.transform(sp.csr_array(x))
    np.testing.assert_array_equal(transformed.toarray(), x[:, result.selected[0]])


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_need_a_dense_table_say_so(name: str) -> None:
    method = METHODS[name](**METHODS[name].registration.small)
    if method.about.sparse:
        return
    number = None if method.about.num_features else 3
    with pytest.raises(ConfigError, match=r"give X\.toarray\(\).*a method that trains"):
        fsjax.plan(method, (sp.csr_array(table()[0]), table()[1]), num_features=number)


def test_own_methods_take_sparse_tables_once_they_say_so() -> None:
    data = sp.csr_array(table()[0]), table()[1]
    method = linear_method()
    with pytest.raises(ConfigError, match="linear looks at the whole table"):
        fsjax.plan(method, data)
    able = method._replace(about=method.about._replace(sparse=True))
    assert fsjax.fit(able, data, num_epochs=1).selected.shape == (1, 2)
    wrong = able._replace(finish=lambda state, data, key: state.replace(log=jnp.mean(data.x)))
    with pytest.raises(TypeError, match="the method uses the whole table"):
        fsjax.fit(wrong, data, num_epochs=1)


def allow(max_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the memory that dense batches of a sparse table may take."""
    checks = partial(check_size, max_bytes=max_bytes)
    monkeypatch.setattr(sys.modules["fsjax.engine.check_run"], "check_size", checks)


def test_the_rows_that_survival_compares_have_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = target_of("survival")
    allow(4 * 13 * 30, monkeypatch)
    with pytest.raises(ConfigError, match="batch_size=54: batches"):
        fsjax.plan(STG, (sp.csr_array(x), y), task="survival")
    fsjax.plan(STG, (sp.csr_array(x), y), task="survival", batch_size=30)


def test_what_would_make_the_table_dense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sp.csr_array(table()[0]), table()[1]
    with pytest.raises(ConfigError, match=r"noise_std=0\.1 would fill the zeros"):
        fsjax.plan(STG, data, noise_std=0.1)
    allow(4 * 13 * 30, monkeypatch)
    fsjax.plan(STG, data, batch_size=30)
    with pytest.raises(ConfigError, match="batch_size=None"):
        fsjax.plan(STG, data, batch_size=None)
    wide = sp.csr_array(([1.0], ([0], [10**9])), shape=(90, 2 * 10**9))
    with pytest.raises(DataError, match="90 x 2,000,000,000, would take"):
        fsjax.plan(STG, (wide, table()[1]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_values_are_told_before_training(bad: float) -> None:
    x, y = table()
    x[3, 6] = bad
    with pytest.raises(DataError, match="column 6"):
        fsjax.plan(STG, (sp.csr_array(x), y))
    far = table()[0] * 1e300
    with pytest.raises(DataError, match="beyond 1e\\+18"):
        fsjax.plan(STG, (sp.csr_array(far), y), scaling="none")


def bytes_of(arrays: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(arrays))


@pytest.mark.slow
def test_memory_is_that_of_the_nonzeros(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sp.random_array((400, 3000), density=0.01, rng=0)
    x = sp.vstack([x, np.ones((1, 3000))])  # one long row
    y = np.arange(401) % 2
    prepared = prepared_by((sp.csr_array(x), y))
    stored = 8 * x.nnz + 12 * 401 + 3 * 4 * 3000
    assert bytes_of(prepared.arrays) < 1.1 * stored
    made = sp.csr_array.toarray

    def toarray(self: Any, *args: Any, **options: Any) -> np.ndarray:
        assert self.shape[1] < 3000, "a table is made dense on the host"
        return made(self, *args, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", toarray)
    fsjax.fit(STG, (sp.csr_array(x), y), num_features=5, num_epochs=1)


@pytest.mark.slow
def test_a_wide_text_table_in_little_memory() -> None:
    """A process that made this table dense once would need 3 GiB more."""
    code = (
        "import numpy, fsjax; from experiments.benchmarks.text import text_like;"
        "data = text_like(8000, 100_000, 20, 20);"
        "method = fsjax.methods.fisher_score();"
        "found = fsjax.fit(method, data, num_features=20, scaling='maxabs').selected[0];"
        # The peak of getrusage includes that of the parent process.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
        "print(numpy.isin(found, data.informative).mean(), int(peak.split()[1]) / 2**20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, peak = map(float, done.stdout.split())
    assert found > 0.8
    assert peak < 2.0
