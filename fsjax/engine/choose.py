"""From trained states to results: scores and their checks, selections, test metrics."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

from fsjax.engine.epoch_metrics import TASK_LOSS
from fsjax.engine.phases import warn_of_unreached
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.engine.rows import Arrays, HostRows, has_own_rows
from fsjax.engine.run import Run, Trained
from fsjax.engine.search import SearchOutcome, gate_metrics
from fsjax.engine.seeds import Chosen, finish_seeds, search_of
from fsjax.engine.streamed import predict_streamed, validate_streamed
from fsjax.errors import ConfigError
from fsjax.method import Method, TrainState
from fsjax.tables.groups import unit_names
from fsjax.tables.scaled import dense_rows, filled_rows, stack_rows
from fsjax.tasks import TABLE

#: If a method determines the number of columns, one counts if this share of the seeds opens it.
MAJORITY = 0.5

#: By how much gates may be outside [0, 1].
ROUNDING = 1e-5


def choose(run: Run, trained: Trained, threshold: np.ndarray | None) -> Chosen:
    """The selections of all seeds, and their outputs for the test rows; see ``Plan.choose``."""
    if threshold is not None:
        threshold = np.asarray(threshold, np.float32)
    chosen = finished(run, trained.states, run.prepared.arrays, _test_rows(run), threshold)
    if not run.dataset.table.on_disk or run.method.predict is None:
        return chosen
    x = run.prepared.x_test[0]
    if len(x):
        rows: Any = filled_rows(x)
        chosen = chosen._replace(outputs=predict_streamed(run.structure, chosen.states, rows))
    valid: Any = run.prepared.arrays.valid
    if threshold is not None and len(valid.x):
        metrics = validate_streamed(chosen.states, valid, structure=run.structure)
        chosen = chosen._replace(validated=metrics)
    return chosen


def finished(
    run: Run,
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
    return finish_seeds(on_host, arrays, x_test, threshold, structure=run.structure)


def _test_rows(run: Run) -> Any:
    """The scaled test rows, if there are any, they are in memory, and the method predicts."""
    x_test = run.prepared.x_test
    if run.method.predict is None or not len(x_test[0]) or run.dataset.table.on_disk:
        return None
    if has_own_rows(run.prepared.arrays):
        return stack_rows([filled_rows(x) for x in x_test])
    return filled_rows(x_test[0])


def check_first_scores(run: Run, states: TrainState, rows: np.ndarray) -> None:
    """Raises ConfigError if a method from outside the library has an unusable selection.

    A callback or a time limit may end training early, so it must be usable from the start; for the
    library's own methods the tests check this. A search, which trains seeds repeatedly, is checked
    only at its end.

    Args:
      states: the states before the first step.
      rows: the place of the seed of each state.
    """
    each_seed_once = np.array_equal(rows, np.arange(len(run.seeds)))
    if run.method.loss is None or run.structure.in_library or not each_seed_once:
        return
    # The same arguments, and so the same compiled program, as after training.
    chosen = finished(run, states, run.prepared.arrays, _test_rows(run), None)
    check_selections(run, chosen, "before the first step")


def check_selections(run: Run, chosen: Chosen, when: str) -> None:
    """Raises ConfigError for unusable scores, picks or gates.

    Scores of columns that may be selected must be finite, picks be columns, and gates in [0, 1].
    """
    name, scores = run.method.name or "the method", np.asarray(chosen.scores)
    bad = run.usable & ~np.isfinite(scores)
    if bad.any():
        value = scores[bad][0]
        raise ConfigError(
            f"{name}: select gives {int(bad.any(axis=0).sum())} of {bad.shape[1]} columns the "
            f"score {value} {when}; scores must be finite, and larger for more important columns"
        )
    most = scores.shape[1] - 1
    for what, values, largest, allowed in (
        ("the pick", chosen.picks, most, f"picks are 0 to {most}; repeat one to pick fewer"),
        ("the gate", chosen.gates, 1, "gates are in [0, 1], and closed below 0.5"),
    ):
        numbers = np.zeros(0) if values is None else np.asarray(values, np.float64)
        # NaN is not in the range either.
        outside = numbers[~((numbers >= -ROUNDING) & (numbers <= largest + ROUNDING))]
        if outside.size:
            raise ConfigError(f"{name}: select gives {what} {outside[0]:g} {when}; {allowed}")


def test_metrics(run: Run, chosen: Chosen) -> dict[str, np.ndarray]:
    """The embedded test metrics, ``(S,)`` by name; empty without test rows or predictions."""
    if chosen.outputs is None:
        return {}
    task, outputs = run.spec.task, jax.tree.map(np.asarray, chosen.outputs)
    entry, per_seed = TABLE[task], []
    for row, (x, y) in enumerate(zip(run.prepared.x_test, run.prepared.y_test, strict=True)):
        if isinstance(outputs, dict):
            if entry.outputs.test_metrics_from_rows is None:
                raise ConfigError(f"{task} has no test metrics for rows that are not in memory")
            of_rows = {name: values[row, : len(x)] for name, values in outputs.items()}
            # Test metrics are those of the task, also if the run had a loss of its own.
            of_rows["loss"] = of_rows.pop(TASK_LOSS, of_rows["loss"])
            per_seed.append(entry.outputs.test_metrics_from_rows(of_rows))
            continue
        truth = y if entry.target.supervised else dense_rows(x)
        predicted = outputs[row, : len(x)]
        unknown = np.isnan(predicted).any()  # which scikit-learn refuses
        values = entry.outputs.test_metrics(
            np.zeros_like(predicted) if unknown else predicted, truth
        )
        per_seed.append(dict.fromkeys(values, np.nan) if unknown else values)
    return {name: np.array([of_seed[name] for of_seed in per_seed]) for name in per_seed[0]}


def result_of(
    run: Run, trained: Trained, chosen: Chosen, k: int, outcome: SearchOutcome | None = None
) -> FitResult:
    """The result for k columns; ``outcome`` is that of a search for k open gates."""
    prepared, spec = run.prepared, run.spec
    states = jax.tree.map(np.asarray, chosen.states)
    scores, ranking = np.asarray(chosen.scores), np.asarray(chosen.ranking)
    check_selections(run, chosen, "after training")
    _warn_of_equal(scores, ranking, k, run.usable, run.method)
    best_epoch = kept_epochs(run.method, states)
    warn_of_unreached(run.method, spec, best_epoch, trained.history)
    metrics = test_metrics(run, chosen)
    gates = None if chosen.gates is None else np.asarray(chosen.gates)
    if gates is not None:
        metrics |= gate_metrics(gates)
    if outcome is not None:
        parameter = search_of(run.method).parameter
        metrics |= outcome.metrics(np.asarray(chosen.closed), k, parameter)
        metrics |= {f"valid_{name}": np.asarray(v) for name, v in chosen.validated.items()}
    if "train/unique_percentage" in trained.history:
        unique = trained.history["train/unique_percentage"]
        metrics["unique_percentage"] = unique[np.arange(len(run.seeds)), best_epoch - 1]
    counted, connections = counted_connections(states)
    return FitResult(
        method=run.method,
        dataset=run.dataset.name,
        task=spec.task,
        num_features=k,
        seeds=run.seeds,
        selected=ranking[:, :k],
        ranking=ranking,
        scores=scores,
        gates=gates,
        metrics=metrics,
        history=trained.history,
        best_epoch=best_epoch,
        cost=trained.cost,
        states=states,
        scalers=prepared.scalers,
        splits=prepared.splits,
        constant_columns=(~prepared.feature_mask).sum(axis=1),
        connection_epochs=counted,
        input_connections=connections,
        unit_names=unit_names(run.dataset.feature_names, spec.groups),
    )


def own_number(gates: np.ndarray) -> int:
    """The number of columns, at least 1, that ``(S, D)`` gates leave open in most of the seeds."""
    return max(int(((gates >= 0.5).mean(axis=0) >= MAJORITY).sum()), 1)


def _warn_of_equal(
    scores: np.ndarray, ranking: np.ndarray, k: int, usable: np.ndarray, method: Method
) -> None:
    """Warns if scores of a seed are equal, so that columns are selected by position.

    Args:
      scores: ``(S, D)``.
      ranking: ``(S, D)`` columns, the best first.
      k: number of columns to select.
      usable: ``(S, D)`` bool; the others come last.
      method: the method.
    """
    for of_seed, order, mask in zip(scores, ranking, usable, strict=True):
        candidates, value = of_seed[mask], of_seed[order[k - 1]]
        above, equal = int((candidates > value).sum()), int((candidates == value).sum())
        if len(candidates) == equal > 1:
            message = (
                f"{method.name} gives all columns the same score, so they are selected by their "
                "position; train longer, or check the method with fsjax.testing.check_method"
            )
        # A method's own picks may come before columns of higher scores.
        elif above < k < above + equal:
            clear = [str(n) for n in (above, above + equal) if 0 < n < len(candidates)]
            message = (
                f"{method.name} selects {k - above} of {equal} columns with the same score "
                f"({value:g}) by their position; choose K = {' or '.join(clear)}, or change the "
                "settings so that scores differ, for example to a weaker penalty"
            )
        else:
            continue
        warnings.warn(message, stacklevel=5)
        return
