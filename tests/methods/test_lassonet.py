"""What LassoNet finds on data with known truth, and the settings that it refuses."""

from __future__ import annotations

from typing import Any

import chex
import jax
import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError
from fsjax.methods.lassonet import importances, lassonet

SEEDS = (0, 1)
INFORMATIVE = (3, 8, 14, 19)
FINDER: dict[str, Any] = dict(
    hidden=(12,),
    dense_epochs=60,
    dense_patience=20,
    path_epochs=10,
    path_patience=3,
    learning_rate=1e-2,
    path_learning_rate=1e-2,
    path_start=0.1,
    path_multiplier=1.15,
)


def columns(shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """300 rows of 24 columns; 4 of them determine the class, one by its square."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 24))
    a, b, c, d = (x[:, column] for column in INFORMATIVE)
    y = (a + b - c + 1.5 * (d**2 - 1) > 0).astype(int)
    # A constant that the network would use as a bias.
    x[:, 6] = 3.0
    return x, rng.permutation(y) if shuffled else y


def fit(data: tuple[np.ndarray, np.ndarray], **options: Any) -> fsjax.FitResult:
    defaults = dict(
        seeds=SEEDS,
        num_epochs=2000,
        batch_size=10**6,
        shuffle=False,
        best_by="last",
        scaling="none",
        split="random",
        seed_axis="map",
    )
    return fsjax.fit(lassonet(4, **FINDER), data, **{**defaults, **options})


@pytest.fixture(scope="module")
def path_fit() -> fsjax.FitResult:
    return fit(columns(shuffled=False))


def test_path_finds_the_informative_columns(path_fit: fsjax.FitResult) -> None:
    assert all(set(row) == set(INFORMATIVE) for row in path_fit.selected.tolist())
    assert path_fit.metrics["embedded_accuracy"].min() > 80
    control = fit(columns(shuffled=True))
    assert np.isin(control.selected, INFORMATIVE).mean() <= 0.5
    assert control.metrics["embedded_accuracy"].max() < 60
    for result in (path_fit, control):
        assert not np.isin(result.selected, 6).any()
        counts, done = (result.history[f"train/{n}"] for n in ("num_selected", "path_finished"))
        for row in range(len(SEEDS)):
            ran = ~np.isnan(counts[row])
            assert counts[row][ran][0] == 23 and counts[row][ran][-1] <= 4
            assert done[row][ran][0] == 0 and done[row][ran][-1] == 1
        at_end = jax.vmap(importances)(result.states)
        assert (np.isinf(at_end).sum(axis=1) <= 4).all()
        for scores, lambdas in zip(result.scores, np.asarray(at_end), strict=True):
            ordered = lambdas[np.argsort(scores, kind="stable")]
            assert (ordered[:-1] <= ordered[1:]).all()


@pytest.mark.slow
def test_seeds_alone_and_together_are_equal(path_fit: fsjax.FitResult) -> None:
    data = columns(shuffled=False)
    alone = fit(data, seeds=SEEDS[1:])
    vmapped = fit(data, seed_axis="vmap")
    for other, row in ((alone, 0), (vmapped, 1)):
        ran = ~np.isnan(other.history["train/lambda"][row])
        length = ran.sum()
        for name in ("train/lambda", "train/num_selected"):
            mine = path_fit.history[name][1]
            np.testing.assert_allclose(mine[:length], other.history[name][row][ran], rtol=1e-5)
            assert np.isnan(mine[length:]).all()
        mine, theirs = (
            jax.tree.map(lambda leaf, place=place: leaf[place], result.states.params)
            for result, place in ((path_fit, 1), (other, row))
        )
        chex.assert_trees_all_close(mine, theirs, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(path_fit.selected[1], other.selected[row])


def test_validation_has_to_be_by_the_loss() -> None:
    with pytest.raises(ConfigError, match="best_by='accuracy', but lassonet stops"):
        fsjax.plan(lassonet(4), columns(shuffled=False), best_by="accuracy")


@pytest.mark.slow
def test_a_copy_of_the_network_is_carried_only_where_an_earlier_one_may_be_kept() -> None:
    for until, copies in ((None, 0), (2, 5)):
        method = lassonet(4, until=until, hidden=(3,), path_start=0.1)
        plan = fsjax.plan(method, columns(shuffled=False), num_epochs=1)
        assert len(jax.tree.leaves(plan.train(idle=[True]).states.best.params)) == copies


@pytest.mark.slow
def test_columns_that_others_cannot_use_leave_first_in_a_reconstruction() -> None:
    rng = np.random.default_rng(0)
    signals = np.repeat(rng.normal(size=(400, 3)), 4, axis=1)
    x = np.concatenate([signals + 0.3 * rng.normal(size=(400, 12)), rng.normal(size=(400, 4))], 1)
    method = lassonet(
        3,
        hidden=(16,),
        path_multiplier=1.2,
        dense_epochs=100,
        path_epochs=20,
        learning_rate=0.01,
        path_learning_rate=0.01,
    )
    result = fsjax.fit(
        method,
        (x.astype(np.float32), None),
        task="reconstruction",
        seeds=(0, 1),
        num_epochs=2000,
        batch_size=None,
        scaling="none",
    )
    assert result.history["train/path_finished"][:, -1].all()
    assert (result.selected < 12).all()
    assert (result.scores[:, 12:].mean(axis=1) < result.scores[:, :12].min(axis=1)).all()
