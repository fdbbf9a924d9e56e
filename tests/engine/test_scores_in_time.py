"""Methods whose scores are computed too late for the kept epoch fail ``check_method``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import linear_method
from marks import slow_ids

import fsjax
from fsjax.method import Batch, Method, Selection, TrainState
from fsjax.testing import _first, check_method, check_scores_in_time


def looks(state: TrainState, data: Batch, key: jax.Array) -> TrainState:
    """Computes the score from the rows."""
    del key
    return state.replace(extra={"seen": data.weight @ jnp.abs(data.x) + state.epoch})


def by_seen(state: TrainState) -> Selection:
    return Selection(state.extra["seen"])


LATE = linear_method(after_epoch=looks, select=by_seen)


def test_a_score_made_after_the_epoch_is_refused() -> None:
    with pytest.raises(AssertionError, match="select reads extra .*seen"):
        check_method(LATE)


@pytest.mark.slow
def test_the_same_through_finish_is_refused() -> None:
    def copied(state: TrainState, rows: Batch, key: jax.Array) -> TrainState:
        return state.replace(extra={"seen": 2.0 * state.extra["seen"]})

    with pytest.raises(AssertionError, match="compute it in finish"):
        check_method(LATE._replace(finish=copied))


@slow_ids("method2")
@pytest.mark.parametrize(
    "method",
    [
        LATE._replace(keep="last"),
        # Written for the next epoch, whose validation uses it, as ProbMask does with its masks.
        LATE._replace(predict=lambda s, x: (x * s.extra["seen"])[:, :3]),
        linear_method(after_epoch=looks),
        linear_method(finish=looks, select=by_seen),
    ],
)
def test_what_is_kept_with_its_epoch_is_accepted(data, method: Method) -> None:
    planned = fsjax.plan(method, data)
    check_scores_in_time(planned, _first(planned)[0])


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
