"""``Plan``, a checked run with what can be done with it: ``train``, ``choose``, ``fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from fsjax.engine.choose import choose, finished, own_number, result_of, test_metrics
from fsjax.engine.distributed.exchange import is_lead
from fsjax.engine.fingerprint import check_processes, identity_of
from fsjax.engine.result import FitResult
from fsjax.engine.run import Run, Trained
from fsjax.engine.search import search_strengths
from fsjax.engine.seeds import Chosen, search_of
from fsjax.engine.train import train
from fsjax.errors import ConfigError, check_names
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.file_lock import exclusive


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
        check_processes(self, places, arguments, resting)
        checkpoints = None
        if self.checkpoint_dir is not None:
            where = self.checkpoint_dir / (folder or "")
            checkpoints = Checkpoints(where, identity_of(self, places, values_of))
        with self._checkpoint_lock():
            return train(self, places, arguments, resting, checkpoints)

    def _checkpoint_lock(self) -> AbstractContextManager[None]:
        """Exclusive use of the folder of checkpoints, which process 0 writes for all processes."""
        if self.checkpoint_dir is None or not is_lead():
            return nullcontext()
        return exclusive(self.checkpoint_dir)

    def choose(self, trained: Trained, threshold: np.ndarray | None = None) -> Chosen:
        """The selections of all seeds at their kept epochs, and their outputs for the test rows.

        Args:
          trained: the training of the S seeds.
          threshold: ``(S,)``, gates below it are closed; ``None`` closes none.
        """
        return choose(self, trained, threshold)

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
        return test_metrics(self, chosen)

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
            if self.sizes and self.method.search is not None:
                return self._fit_by_search()
            trained = self.train()
            return self.select(trained, self.choose(trained))

    def check_number(self) -> None:
        """Raises ConfigError if the method needs a number of columns and none is given.

        Also if some columns are left out of the network, whose result would be of these alone.
        """
        if self.spec.num_columns != self.dataset.num_features:
            raise ConfigError(
                "columns= is for plan().train() alone; to select from some, give X of these"
            )
        if not self.sizes and not self.method.about.gates:
            name = self.method.name
            raise ConfigError(
                f"{name} can select any number of columns; give num_features, as in num_features=10"
            )

    def check_one_size(self, advice: str) -> None:
        """Raises ConfigError if several numbers of columns are given, of which one would count."""
        if len(self.sizes) > 1:
            raise ConfigError(f"num_features={list(self.sizes)}; give one number, or {advice}")

    def select(self, trained: Trained, chosen: Chosen) -> list[FitResult]:
        """The results of a training, one per number in ``sizes``."""
        sizes = self.sizes or (own_number(np.asarray(chosen.gates)),)
        return [result_of(self, trained, chosen, k) for k in sizes]

    def _fit_by_search(self) -> list[FitResult]:
        """The results of trainings with the strengths that leave K gates open, for each K."""
        parameter = search_of(self.method).parameter

        def train(
            strengths: Sequence[float], rows: np.ndarray, **options: Any
        ) -> tuple[Trained, np.ndarray]:
            trained = self.train(hyper={parameter: strengths}, rows=rows, **options)
            return trained, self.gates(trained, rows)

        start = self.hyper[parameter]
        searches = search_strengths(
            len(self.seeds), self.sizes, start, train, lambda: self.control.stopped
        )
        return [
            result_of(self, trained, self.choose(trained, outcome.threshold), k, outcome)
            for k, (trained, outcome) in zip(self.sizes, searches, strict=True)
        ]
