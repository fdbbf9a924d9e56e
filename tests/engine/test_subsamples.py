"""Fits on complementary halves of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.engine.stability import complementary_pairs, stability_metrics
from fsjax.engine.subsamples import fit_subsamples

FISHER = fsjax.methods.fisher_score(2, hidden=(4,))
IP_CAE = fsjax.methods.ip_cae(2, hidden=(4,))


def table(rows: int = 61) -> tuple[np.ndarray, np.ndarray]:
    """Columns 1 and 4 determine the class; the third class is rare."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    y[:6] = 2
    x = rng.normal(size=(rows, 6)).astype(np.float32)
    x[:, 1] += 3 * y
    x[:, 4] -= 3 * y
    return x, y


@pytest.fixture(scope="module")
def fisher() -> fsjax.FitResult:
    return fit_subsamples(FISHER, table(), num_pairs=2, seed=3, num_epochs=1, scaling="standard")


def test_one_seed_and_one_split_for_each_half(fisher: fsjax.FitResult) -> None:
    _, y = table()
    assert fisher.seeds == (12, 13, 14, 15)
    pairs = complementary_pairs(61, 2, 3, y)
    halves = [half for pair in pairs for half in pair]
    for row, split in enumerate(fisher.splits):
        assert list(map(len, split)) == [24, 6, 30]
        own = np.sort(np.concatenate([split.train, split.valid]))
        np.testing.assert_array_equal(own, halves[row])
        np.testing.assert_array_equal(split.test, halves[row ^ 1])
        assert np.bincount(y[split.train], minlength=3).min() >= 2
        assert np.bincount(y[split.valid], minlength=3)[:2].min() >= 2
    assert not np.array_equal(fisher.splits[0].valid, fisher.splits[1].valid)


def test_the_result_is_that_of_a_fit(fisher: fsjax.FitResult) -> None:
    np.testing.assert_array_equal(np.sort(fisher.selected, axis=1), [[1, 4]] * 4)
    np.testing.assert_array_equal(fisher.selection_frequency, [0, 1, 0, 0, 1, 0])
    assert fisher.scores.shape == (4, 6)
    assert fisher.runs == "half"
    assert len(np.unique(fisher.scores[:, 1])) == 4  # of different rows
    assert fisher.metrics["embedded_accuracy"].shape == (4,)
    metrics = stability_metrics(fisher)
    assert (metrics["num_seeds"], metrics["stability"]) == (4, 1.0)
    assert sorted(metrics["consensus"]) == [1, 4]


@pytest.mark.slow
def test_a_network_without_labels_and_without_validation_rows() -> None:
    result = fit_subsamples(
        IP_CAE,
        (table()[0], None),
        num_pairs=2,
        task="reconstruction",
        valid_fraction=0.0,
        num_epochs=2,
    )
    assert result.seeds == (0, 1, 2, 3)
    assert [list(map(len, split)) for split in result.splits] == [[30, 0, 30]] * 4
    assert result.selected.shape == (4, 2)
    assert result.metrics["reconstruction_frobenius"].shape == (4,)
    assert np.isfinite(result.history["train/loss"]).all()


@pytest.mark.parametrize(
    ("method", "options", "valid"),
    [
        (FISHER, {}, 6),
        (fsjax.methods.lassonet(2, hidden=(4,)), {}, 6),  # stops by the validation loss
        (fsjax.methods.probmask(hidden=(4,)), {"num_features": 2}, 0),
        (fsjax.methods.probmask(hidden=(4,)), {"num_features": 2, "best_by": "loss"}, 6),
        (FISHER, {"valid_fraction": 0.5}, 15),
        (FISHER, {"valid_fraction": 1e-6}, 1),
    ],
    ids=range(6),
)
def test_validation_rows(
    method, options, valid: int, monkeypatch: pytest.MonkeyPatch, fisher: fsjax.FitResult
) -> None:
    given = {}

    def instead(*_, **kwargs) -> fsjax.FitResult:
        given.update(kwargs)
        return fisher

    monkeypatch.setattr("fsjax.engine.subsamples.fit", instead)
    fit_subsamples(method, table(), num_pairs=1, **options)
    assert [len(split.valid) for split in given["split"]] == [valid, valid]
    assert [len(split.train) for split in given["split"]] == [30 - valid] * 2
    assert given["num_features"] == options.get("num_features")


@bad_calls(
    ({"seeds": (1, 2)}, "fit_subsamples sets seeds itself"),
    ({"split": "paper"}, "sets split itself"),
    ({"split_per_seed": True}, "sets split_per_seed itself"),
    ({"num_pairs": 0}, "num_pairs=0"),
    ({"seed": -1}, "seed=-1"),
    ({"seed": 2**31, "num_pairs": 1}, "a seed is 4294967296"),
    ({"valid_fraction": 1.0}, "valid_fraction=1.0"),
    ({"valid_fraction": 0.99}, "no training rows"),
    ({"task": "classify"}, "task='classify'"),
    ({"num_features": 3}, "made for 2"),
    ({"data": (table()[0], None)}, "needs a target"),
    ({"method": fsjax.methods.stg(2), "task": "survival"}, "needs two columns"),
)
def test_bad_calls(bad: tuple) -> None:
    options = dict(bad[0])
    data = options.pop("data", table())
    refuses(lambda: fit_subsamples(options.pop("method", FISHER), data, **options), bad[1])
