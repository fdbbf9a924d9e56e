"""``Plan``, a checked run that can be trained and evaluated: ``train``, ``choose``, ``fit``."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.distributed.exchange import is_lead, process_count
from fsjax.distributed.same import check_same, code
from fsjax.engine.control import Control
from fsjax.engine.fingerprint import described, described_settings, fingerprint, versions
from fsjax.engine.phases import warn_of_unreached
from fsjax.engine.prepare import Prepared
from fsjax.engine.programs import ONCE, run
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.engine.rows import Arrays, HostRows, has_own_rows
from fsjax.engine.search import Found, gate_metrics, search_strengths
from fsjax.engine.seeds import Chosen, finish_seeds, search_of, take_rows
from fsjax.engine.streamed import predict_streamed
from fsjax.engine.train import Trained, train
from fsjax.errors import ConfigError, check_names
from fsjax.groups import any_column, unit_names
from fsjax.method import Method, Spec, TrainState
from fsjax.registry import Fixed, Structure
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaled import content_of, dense_rows, filled_rows, stack_rows
from fsjax.tasks import TABLE

#: If a method determines the number of columns, one counts if this share of the seeds opens it.
MAJORITY = 0.5


@dataclass(frozen=True, repr=False)
class Plan:
    """A checked run, not trained yet.

    Attributes:
      method: the method to train.
      structure, hyper: its structure, and the values of its traced arguments.
      dataset, prepared: the data, and its scaled rows.
      spec: static facts about the run.
      seeds: the S seeds.
      sizes: numbers of columns to select; empty if the method decides, or nothing is selected.
      axis, batch_devices: ``vmap``, ``map`` or ``shard``, and the number of devices per batch.
      progress, checkpoint_dir, checkpoint_every: see :func:`fsjax.plan`.
      control: decides when training ends early.
      start: stacked states of the S seeds to start from, or ``None``.
    """

    method: Method
    structure: Structure | Fixed
    hyper: Mapping[str, float]
    dataset: Dataset
    prepared: Prepared
    spec: Spec
    seeds: tuple[int, ...]
    sizes: tuple[int, ...]
    axis: str
    batch_devices: int
    progress: bool
    checkpoint_dir: Path | None
    checkpoint_every: int
    control: Control
    start: TrainState | None

    def __repr__(self) -> str:
        spec, splits, scaler = self.spec, self.prepared.splits, self.prepared.scalers[0]
        parts = zip(("training", "validation", "test"), splits[0], strict=True)
        own_splits = any(split is not splits[0] for split in splits)
        scales = max(np.size(part) for part in scaler)
        about = [
            f"{self.method.name} on {self.dataset.name}",
            spec.task,
            " + ".join(f"{len(rows)} {name}" for name, rows in parts) + " rows",
            f"{spec.num_columns} columns",
            f"K={', '.join(map(str, self.sizes)) or None}",
        ]
        if self.method.loss is not None:
            steps = f"{spec.num_epochs} epochs of {spec.steps_per_epoch} steps"
            about += [f"batch_size={spec.batch_size}", steps]
        about += [
            "scaled by column" if scales > 1 else "one scale for the table",
            "a split per seed" if own_splits else "one split for all seeds",
            f"seeds={self.seeds}",
        ]
        return f"Plan({', '.join(about)})"

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
        chosen = self._finished(trained, arrays, self._test_rows(), threshold)
        x = self.prepared.x_test[0]
        if self.dataset.table.on_disk and self.method.predict is not None and len(x):
            rows: Any = filled_rows(x)
            outputs = predict_streamed(self.structure, chosen.states, rows)
            return chosen._replace(outputs=outputs)
        return chosen

    def _test_rows(self) -> Any:
        """The scaled test rows, if there are any, they are in memory, and the method predicts."""
        prepared, x_test = self.prepared, self.prepared.x_test
        if self.method.predict is None or not len(x_test[0]) or self.dataset.table.on_disk:
            return None
        if has_own_rows(prepared.arrays):
            return stack_rows([filled_rows(x) for x in x_test])
        return filled_rows(x_test[0])

    def gates(self, trained: Trained, rows: np.ndarray) -> np.ndarray:
        """The gates ``(R, D)`` of a training; 0 for columns that may not be selected.

        Args:
          trained: the training of R rows.
          rows: ``(R,)``, the place of the seed of each row.
        """
        return np.asarray(self._finished(trained, self.arrays_of(rows), None, None).gates)

    def _finished(self, trained: Trained, *args: Any) -> Chosen:
        states = jax.tree.map(np.asarray, trained.states)
        return run(finish_seeds, (self.structure,), (states, *args), work=ONCE)

    def arrays_of(self, rows: np.ndarray) -> Arrays[HostRows]:
        """The scaled rows of some seeds, given by their places, or the rows that all share."""
        arrays = self.prepared.arrays
        return take_rows(arrays, rows) if has_own_rows(arrays) else arrays

    def test_metrics(self, chosen: Chosen) -> dict[str, np.ndarray]:
        """The embedded test metrics, ``(S,)`` by name; empty without test rows or predictions."""
        if chosen.outputs is None:
            return {}
        task, outputs = self.spec.task, jax.tree.map(np.asarray, chosen.outputs)
        entry, per_seed = TABLE[task], []
        for row, (x, y) in enumerate(zip(self.prepared.x_test, self.prepared.y_test, strict=True)):
            if isinstance(outputs, dict):
                if entry.test_of_rows is None:
                    raise ConfigError(f"{task} has no test metrics for rows that are not in memory")
                of_rows = {name: values[row, : len(x)] for name, values in outputs.items()}
                per_seed.append(entry.test_of_rows(of_rows))
                continue
            truth = y if entry.supervised else dense_rows(x)
            per_seed.append(entry.test_metrics(outputs[row, : len(x)], truth))
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

    def check_first_scores(self, states: TrainState, rows: np.ndarray) -> None:
        """Raises ConfigError if a method from outside the library has scores that are not finite.

        A callback or a time limit may end training early, so scores must be finite from the start;
        for the library's own methods the tests check this. A search, which trains seeds repeatedly,
        is checked only at its end.

        Args:
          states: the states before the first step.
          rows: the place of the seed of each state.
        """
        each_seed_once = np.array_equal(rows, np.arange(len(self.seeds)))
        if self.method.loss is None or self.structure.in_library or not each_seed_once:
            return
        # The same arguments, and so the same compiled program, as after training.
        trained = Trained(states, {}, {})
        chosen = self._finished(trained, self.prepared.arrays, self._test_rows(), None)
        self._check_scores(np.asarray(chosen.scores), "before the first step")

    def _check_scores(self, scores: np.ndarray, when: str) -> None:
        """Raises ConfigError for non-finite scores ``(S, D)`` of columns that may be selected."""
        bad = self.usable & ~np.isfinite(scores)
        if bad.any():
            value = scores[bad][0]
            raise ConfigError(
                f"{self.method.name}: select gives {int(bad.any(axis=0).sum())} of "
                f"{bad.shape[1]} columns the score {value} {when}; scores must be finite, and "
                "larger for more important columns"
            )

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

    def _searched(self, parameter: str) -> list[tuple[Trained, Found]]:
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
    def usable(self) -> np.ndarray:
        """``(S, D)`` bool, the columns that may be selected, or ``(S, G)`` groups."""
        return any_column(self.prepared.feature_mask, self.spec.groups)

    @functools.cached_property
    def _data_crc32(self) -> int:
        # Computed once, because a search needs the identity in each of its rounds.
        rows = self.prepared.arrays.train.x
        return _crc32((self.prepared.arrays, content_of(rows)))

    def _identity(self, rows: np.ndarray, hyper: Mapping[str, Sequence[float]] = {}) -> Identity:
        """The identity of a run; a checkpoint of a run with another identity is not resumed."""
        settings = {name: repr(value) for name, value in described_settings(self.method).items()}
        spec = self.spec._asdict()
        code = {"code": fingerprint(self.method), "task_code": spec.pop("task_code")}
        start = None if self.start is None else _crc32(self.start)
        return Identity(
            settings={
                **spec,
                "loss": described(self.spec.loss),
                "method": self.method.name,
                **{f"method.{name}": value for name, value in settings.items()},
                "hyper": dict(hyper),
                "seeds": [self.seeds[row] for row in rows],
            },
            data={
                "dataset": self.dataset.name,
                "data_crc32": self._data_crc32,
                "start_crc32": start,
            },
            code=code,
            versions=versions(self.axis),
        )

    def _result(self, trained: Trained, chosen: Chosen, k: int, outcome: Found | None) -> FitResult:
        prepared, spec = self.prepared, self.spec
        states = jax.tree.map(np.asarray, chosen.states)
        scores, ranking = np.asarray(chosen.scores), np.asarray(chosen.ranking)
        self._check_scores(scores, "after training")
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
