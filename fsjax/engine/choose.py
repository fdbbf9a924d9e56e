"""From trained states to results: the selection at the kept epoch, and its test metrics."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

from fsjax.engine.phases import warn_of_unreached
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.engine.run import Run
from fsjax.engine.scores import check_scores, finished, test_rows
from fsjax.engine.search import SearchOutcome, gate_metrics
from fsjax.engine.seeds import Chosen, search_of
from fsjax.engine.streamed import predict_streamed
from fsjax.engine.train import Trained
from fsjax.errors import ConfigError
from fsjax.method import Method
from fsjax.tables.groups import unit_names
from fsjax.tables.scaled import dense_rows, filled_rows
from fsjax.tasks import TABLE

#: If a method determines the number of columns, one counts if this share of the seeds opens it.
MAJORITY = 0.5


def choose(run: Run, trained: Trained, threshold: np.ndarray | None) -> Chosen:
    """The selections of all seeds, and their outputs for the test rows; see ``Plan.choose``."""
    if threshold is not None:
        threshold = np.asarray(threshold, np.float32)
    chosen = finished(run, trained.states, run.prepared.arrays, test_rows(run), threshold)
    x = run.prepared.x_test[0]
    if run.dataset.table.on_disk and run.method.predict is not None and len(x):
        rows: Any = filled_rows(x)
        return chosen._replace(outputs=predict_streamed(run.structure, chosen.states, rows))
    return chosen


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
            per_seed.append(entry.outputs.test_metrics_from_rows(of_rows))
            continue
        truth = y if entry.target.supervised else dense_rows(x)
        per_seed.append(entry.outputs.test_metrics(outputs[row, : len(x)], truth))
    return {name: np.array([of_seed[name] for of_seed in per_seed]) for name in per_seed[0]}


def result_of(
    run: Run, trained: Trained, chosen: Chosen, k: int, outcome: SearchOutcome | None = None
) -> FitResult:
    """The result for k columns; ``outcome`` is that of a search for k open gates."""
    prepared, spec = run.prepared, run.spec
    states = jax.tree.map(np.asarray, chosen.states)
    scores, ranking = np.asarray(chosen.scores), np.asarray(chosen.ranking)
    check_scores(run, scores, "after training")
    _warn_of_equal(scores, run.usable, run.method)
    best_epoch = kept_epochs(run.method, states)
    warn_of_unreached(run.method, spec, best_epoch, trained.history)
    metrics = test_metrics(run, chosen)
    gates = None if chosen.gates is None else np.asarray(chosen.gates)
    if gates is not None:
        metrics |= gate_metrics(gates)
    if outcome is not None:
        parameter = search_of(run.method).parameter
        metrics |= outcome.metrics(np.asarray(chosen.closed), k, parameter)
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


def _warn_of_equal(scores: np.ndarray, usable: np.ndarray, method: Method) -> None:
    """Warns if all scores of a seed are equal, so that columns are selected by position."""
    for of_seed, mask in zip(scores, usable, strict=True):
        candidates = of_seed[mask]
        if len(candidates) > 1 and (candidates == candidates[0]).all():
            warnings.warn(
                f"{method.name} gives all columns the same score, so they are selected by their "
                "position; train longer, or check the method with fsjax.testing.check_method",
                stacklevel=5,
            )
            return
