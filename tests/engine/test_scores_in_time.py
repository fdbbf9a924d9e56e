"""Methods whose scores are computed too late for the kept epoch are refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import linear_method

import fsjax
from fsjax.errors import ConfigError
from fsjax.method import Batch, Selection, TrainState


def looks(state: TrainState, data: Batch, key: jax.Array) -> TrainState:
    """Computes the score from the rows."""
    del key
    return state.replace(extra={"seen": data.weight @ jnp.abs(data.x) + state.epoch})


def by_seen(state: TrainState) -> Selection:
    return Selection(state.extra["seen"])


LATE = linear_method(after_epoch=looks, select=by_seen)


@pytest.mark.parametrize("keep", ["loss", "accuracy", lambda state: state.value])
def test_a_score_made_after_the_epoch_is_refused(data, keep) -> None:
    method = LATE._replace(keep=keep)
    with pytest.raises(ConfigError, match=r"select reads extra\['seen'\], which after_epoch"):
        fsjax.plan(method, data)


def test_the_same_through_finish_is_refused(data) -> None:
    def copied(state: TrainState, rows: Batch, key: jax.Array) -> TrainState:
        return state.replace(extra={"seen": 2.0 * state.extra["seen"]})

    with pytest.raises(ConfigError, match="compute it in finish, or keep the last epoch"):
        fsjax.plan(LATE._replace(finish=copied), data)


def test_what_is_kept_with_its_epoch_is_accepted(data) -> None:
    whole = fsjax.data.Split(np.arange(80), np.arange(0), np.arange(80, 90))
    fsjax.plan(LATE._replace(keep="last"), data)
    fsjax.plan(LATE, data, best_by="last")
    fsjax.plan(LATE, data, split=whole)  # Without validation rows the last epoch is kept.
    # Written for the next epoch, whose validation uses it, as ProbMask does with its masks.
    fsjax.plan(LATE._replace(predict=lambda s, x: (x * s.extra["seen"])[:, :3]), data)
    fsjax.plan(linear_method(after_epoch=looks), data)
    fsjax.plan(linear_method(finish=looks, select=by_seen), data)


@pytest.mark.slow
def test_a_score_made_in_finish_is_that_of_the_kept_epoch(data) -> None:
    def seen_now(state: TrainState, rows: Batch, key: jax.Array) -> TrainState:
        return state.replace(extra={"seen": jnp.sum(jnp.abs(state.params["kernel"]), axis=1)})

    # A rate at which the validation loss rises again.
    options = dict(num_epochs=6, batch_size=8, seeds=(0, 1))
    plain = fsjax.fit(linear_method(30.0), data, **options)
    found = fsjax.fit(linear_method(30.0, finish=seen_now, select=by_seen), data, **options)
    assert (found.best_epoch < 6).any()
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-6)
