"""``Plan``, a checked run that can be trained and evaluated: ``train``, ``choose``, ``fit``."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.engine.distributed.exchange import is_lead, process_count
from fsjax.engine.distributed.same import check_same, code
from fsjax.engine.fingerprint import described, fingerprint, fingerprint_of_task, versions
from fsjax.engine.phases import warn_of_unreached
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.engine.run import Run
from fsjax.engine.scores import check_scores, finished, test_rows
from fsjax.engine.search import SearchOutcome, gate_metrics, search_strengths
from fsjax.engine.seeds import Chosen, search_of
from fsjax.engine.streamed import predict_streamed
from fsjax.engine.train import Trained, train
from fsjax.errors import ConfigError, check_names
from fsjax.method import Method
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity
from fsjax.tables.groups import unit_names
from fsjax.tables.scaled import content_of, dense_rows, filled_rows
from fsjax.tasks import TABLE

#: If a method determines the number of columns, one counts if this share of the seeds opens it.
MAJORITY = 0.5


class Plan(Run):
    """A :class:`~fsjax.engine.run.Run`, whose fields it has, and what can be done with it."""

    def train(
        self,
        *,
        hyper: Mapping[str, Sequence[float]] = {},
        rows: np.ndarray | None = None,
        idle: Sequence[bool] | None = None,
        folder: str | Path | None = None,
    ) -> Trained:
        """Trains the method, without a selection.

        Args:
          hyper: values of float arguments by name, one per row, instead of the method's own; they
            do not recompile.
          rows: the seeds to train, by their place in ``seeds``; may repeat. By default each once.
          idle: whether a row is padding and not trained, one per row; by default none is.
          folder: subfolder of ``checkpoint_dir`` for checkpoints; by default the folder itself.

        Raises:
          ConfigError: for an argument that is not traced, for checkpoints of another run, and if
            another thread or process is using the folder.
          NonFiniteLossError: if the training loss becomes NaN or infinite.
        """
        check_names(f"{self.method.name} has no traced argument", hyper, self.hyper)
        places = np.arange(len(self.seeds)) if rows is None else np.asarray(rows)
        resting = np.zeros(len(places), bool) if idle is None else np.asarray(idle)
        values_of = {name: [float(value) for value in values] for name, values in hyper.items()}
        values = {name: [value] * len(places) for name, value in self.hyper.items()} | values_of
        arguments = {name: np.asarray(v, np.float32) for name, v in values.items()}
        self._check_processes(places, arguments, resting)
        checkpoints = None
        if self.checkpoint_dir is not None:
            where = self.checkpoint_dir / (folder or "")
            checkpoints = Checkpoints(where, self._identity(places, values_of))
        with self._checkpoint_lock():
            return train(self, places, arguments, resting, checkpoints)

    def _checkpoint_lock(self) -> AbstractContextManager[None]:
        """Exclusive use of the folder of checkpoints, which process 0 writes for all processes."""
        if self.checkpoint_dir is None or not is_lead():
            return nullcontext()
        return exclusive(self.checkpoint_dir)

    def _check_processes(
        self, rows: np.ndarray, hyper: Mapping[str, np.ndarray], idle: np.ndarray
    ) -> None:
        """Raises ConfigError in all processes, unless they are about to train the same run."""
        if process_count() == 1:
            return
        run = self._identity(rows)
        settings = {
            **run.settings,
            "hyper": {name: values.tolist() for name, values in hyper.items()},
            "idle": idle.tolist(),
            "sizes": self.sizes,
            "layout": (self.axis, self.batch_devices),
            "checkpoints": (self.checkpoint_dir is not None, self.checkpoint_every),
            "ends": (self.control.callback is not None, self.control.max_time),
        }
        data = run.data, _crc32((self.prepared.x_test, self.prepared.y_test))
        check_same(code=(code(), run.code), data=data, configuration=settings)

    def choose(self, trained: Trained, threshold: np.ndarray | None = None) -> Chosen:
        """The selections of all seeds at their kept epochs, and their outputs for the test rows.

        Args:
          trained: the training of the S seeds.
          threshold: ``(S,)``, gates below it are closed; ``None`` closes none.
        """
        if threshold is not None:
            threshold = np.asarray(threshold, np.float32)
        arrays = self.prepared.arrays
        chosen = finished(self, trained.states, arrays, test_rows(self), threshold)
        x = self.prepared.x_test[0]
        if self.dataset.table.on_disk and self.method.predict is not None and len(x):
            rows: Any = filled_rows(x)
            outputs = predict_streamed(self.structure, chosen.states, rows)
            return chosen._replace(outputs=outputs)
        return chosen

    def gates(self, trained: Trained, rows: np.ndarray) -> np.ndarray:
        """The gates ``(R, D)`` of a training; 0 for columns that may not be selected.

        Args:
          trained: the training of R rows.
          rows: ``(R,)``, the place of the seed of each row.
        """
        arrays = self.arrays_of(rows)
        return np.asarray(finished(self, trained.states, arrays, None, None).gates)

    def test_metrics(self, chosen: Chosen) -> dict[str, np.ndarray]:
        """The embedded test metrics, ``(S,)`` by name; empty without test rows or predictions."""
        if chosen.outputs is None:
            return {}
        task, outputs = self.spec.task, jax.tree.map(np.asarray, chosen.outputs)
        entry, per_seed = TABLE[task], []
        for row, (x, y) in enumerate(zip(self.prepared.x_test, self.prepared.y_test, strict=True)):
            if isinstance(outputs, dict):
                if entry.outputs.test_metrics_from_rows is None:
                    raise ConfigError(f"{task} has no test metrics for rows that are not in memory")
                of_rows = {name: values[row, : len(x)] for name, values in outputs.items()}
                per_seed.append(entry.outputs.test_metrics_from_rows(of_rows))
                continue
            truth = y if entry.target.supervised else dense_rows(x)
            per_seed.append(entry.outputs.test_metrics(outputs[row, : len(x)], truth))
        return {name: np.array([of_seed[name] for of_seed in per_seed]) for name in per_seed[0]}

    def fit(self) -> list[FitResult]:
        """Trains and selects; returns one result per number in ``sizes``, in that order.

        If the method opens gates and no number is requested, the number is that of the columns that
        a majority of the seeds opens.

        Raises:
          ConfigError: if the method needs a number of columns and none is given.
          NonFiniteLossError: if the training loss becomes NaN or infinite.
        """
        self.check_number()
        with self._checkpoint_lock(), self.control.running():
            return self._fit()

    def _fit(self) -> list[FitResult]:
        if self.sizes and self.method.search is not None:
            searched = self._searched(self.method.search.parameter)
            return [
                self._result(trained, self.choose(trained, outcome.threshold), k, outcome)
                for k, (trained, outcome) in zip(self.sizes, searched, strict=True)
            ]
        trained = self.train()
        return self.select(trained, self.choose(trained))

    def check_number(self) -> None:
        """Raises ConfigError if the method needs a number of columns and none is given."""
        if not self.sizes and not self.method.about.gates:
            name = self.method.name
            raise ConfigError(
                f"{name} can select any number of columns; give num_features, as in num_features=10"
            )

    def select(self, trained: Trained, chosen: Chosen) -> list[FitResult]:
        """The results of a training, one per number in ``sizes``."""
        sizes = self.sizes or (own_number(np.asarray(chosen.gates)),)
        return [self._result(trained, chosen, k, None) for k in sizes]

    def _searched(self, parameter: str) -> list[tuple[Trained, SearchOutcome]]:
        def train(
            strengths: Sequence[float], rows: np.ndarray, **options: Any
        ) -> tuple[Trained, np.ndarray]:
            trained = self.train(hyper={parameter: strengths}, rows=rows, **options)
            return trained, self.gates(trained, rows)

        start = self.hyper[parameter]
        return search_strengths(
            len(self.seeds), self.sizes, start, train, lambda: self.control.stopped
        )

    @functools.cached_property
    def _data_crc32(self) -> int:
        # Computed once, because a search needs the identity in each of its rounds.
        rows = self.prepared.arrays.train.x
        return _crc32((self.prepared.arrays, content_of(rows)))

    def _identity(self, rows: np.ndarray, hyper: Mapping[str, Sequence[float]] = {}) -> Identity:
        """The identity of a run; a checkpoint of a run with another identity is not resumed."""
        spec = self.spec._asdict()
        del spec["registered_task"]
        start = None if self.start is None else _crc32(self.start)
        return Identity(
            settings={
                **spec,
                "loss": described(self.spec.loss),
                "method": self.method.name,
                **{f"method.{n}": repr(described(v)) for n, v in self.method.about.settings},
                "hyper": dict(hyper),
                "seeds": [self.seeds[row] for row in rows],
            },
            data={
                "dataset": self.dataset.name,
                "data_crc32": self._data_crc32,
                "start_crc32": start,
            },
            code={
                "code": fingerprint(self.method),
                "task_code": fingerprint_of_task(self.spec.task),
            },
            versions=versions(self.axis),
        )

    def _result(
        self, trained: Trained, chosen: Chosen, k: int, outcome: SearchOutcome | None
    ) -> FitResult:
        prepared, spec = self.prepared, self.spec
        states = jax.tree.map(np.asarray, chosen.states)
        scores, ranking = np.asarray(chosen.scores), np.asarray(chosen.ranking)
        check_scores(self, scores, "after training")
        _warn_of_equal(scores, self.usable, self.method)
        best_epoch = kept_epochs(self.method, states)
        warn_of_unreached(self.method, spec, best_epoch, trained.history)
        metrics = self.test_metrics(chosen)
        gates = None if chosen.gates is None else np.asarray(chosen.gates)
        if gates is not None:
            metrics |= gate_metrics(gates)
        if outcome is not None:
            parameter = search_of(self.method).parameter
            metrics |= outcome.metrics(np.asarray(chosen.closed), k, parameter)
        if "train/unique_percentage" in trained.history:
            unique = trained.history["train/unique_percentage"]
            metrics["unique_percentage"] = unique[np.arange(len(self.seeds)), best_epoch - 1]
        counted, connections = counted_connections(states)
        return FitResult(
            method=self.method,
            dataset=self.dataset.name,
            task=spec.task,
            num_features=k,
            seeds=self.seeds,
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
            unit_names=unit_names(self.dataset.feature_names, spec.groups),
        )


def _crc32(tree: Any) -> int:
    checksum = 0
    for leaf in jax.tree.leaves(tree):
        # Bytes, because not every dtype supports the buffer protocol.
        content = np.ascontiguousarray(leaf).reshape(-1).view(np.uint8)
        checksum = zlib.crc32(content.data, checksum)
    return checksum


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
                stacklevel=4,
            )
            return
