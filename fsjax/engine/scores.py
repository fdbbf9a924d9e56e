"""The scores of all columns after training, and the check of those before it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fsjax.engine.rows import Arrays, HostRows, has_own_rows
from fsjax.engine.run import Run
from fsjax.engine.seeds import Chosen, finish_seeds
from fsjax.errors import ConfigError
from fsjax.method import TrainState
from fsjax.tables.scaled import filled_rows, stack_rows


def finished(
    planned: Run,
    states: TrainState,
    arrays: Arrays[HostRows],
    x_test: Any,
    threshold: np.ndarray | None,
) -> Chosen:
    """The selections of R states, and their outputs for the test rows.

    Args:
      states: stacked, ``(R, ...)``.
      arrays: the scaled rows of the R seeds, or those that all share.
      x_test: test rows, or ``None`` for no outputs.
      threshold: ``(R,)``, gates below it are closed; ``None`` closes none.
    """
    on_host = jax.tree.map(np.asarray, states)
    return finish_seeds(on_host, arrays, x_test, threshold, structure=planned.structure)


def test_rows(planned: Run) -> Any:
    """The scaled test rows, if there are any, they are in memory, and the method predicts."""
    x_test = planned.prepared.x_test
    if planned.method.predict is None or not len(x_test[0]) or planned.dataset.table.on_disk:
        return None
    if has_own_rows(planned.prepared.arrays):
        return stack_rows([filled_rows(x) for x in x_test])
    return filled_rows(x_test[0])


def check_first_scores(planned: Run, states: TrainState, rows: np.ndarray) -> None:
    """Raises ConfigError if a method from outside the library has scores that are not finite.

    A callback or a time limit may end training early, so scores must be finite from the start;
    for the library's own methods the tests check this. A search, which trains seeds repeatedly,
    is checked only at its end.

    Args:
      states: the states before the first step.
      rows: the place of the seed of each state.
    """
    each_seed_once = np.array_equal(rows, np.arange(len(planned.seeds)))
    if planned.method.loss is None or planned.structure.in_library or not each_seed_once:
        return
    # The same arguments, and so the same compiled program, as after training.
    chosen = finished(planned, states, planned.prepared.arrays, test_rows(planned), None)
    check_scores(planned, np.asarray(chosen.scores), "before the first step")


def check_scores(planned: Run, scores: np.ndarray, when: str) -> None:
    """Raises ConfigError for non-finite scores ``(S, D)`` of columns that may be selected."""
    bad = planned.usable & ~np.isfinite(scores)
    if bad.any():
        value = scores[bad][0]
        raise ConfigError(
            f"{planned.method.name}: select gives {int(bad.any(axis=0).sum())} of "
            f"{bad.shape[1]} columns the score {value} {when}; scores must be finite, and "
            "larger for more important columns"
        )
