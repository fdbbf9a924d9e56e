"""The early end of a training: by a time limit, by the user's callback, or by a signal."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from fsjax.engine.distributed.exchange import gathered_processes, is_lead
from fsjax.errors import ConfigError, is_number


class Progress(NamedTuple):
    """The argument of a callback after each epoch.

    Attributes:
      method: name of the method.
      seeds: the S seeds that train.
      epoch: epochs done, from 1.
      num_epochs: epochs of the whole training.
      metrics: the values of this epoch by ``split/metric`` name, ``(S,)`` each; NaN for seeds
        that were done before.
      seconds: seconds since training began, in a sweep that of the first setting.

    Examples:
      >>> def show(progress):
      ...     print(progress.epoch, "of", progress.num_epochs, progress.metrics)
      >>> fsjax.fit(method, data, num_features=2, num_epochs=2, callback=show)
    """

    method: str
    seeds: tuple[int, ...]
    epoch: int
    num_epochs: int
    metrics: Mapping[str, np.ndarray]
    seconds: float


#: Called after each epoch; a true result ends the training.
Callback = Callable[[Progress], Any]


class Control:
    """Decides after each call of the compiled epochs whether training continues.

    Args:
      callback: called after each epoch; each call of the program then runs a single epoch.
      max_time: seconds, above 0, including compilation; ``None`` sets no limit.
      keep_partial: whether Ctrl-C ends training with the result of the epochs done so far.
      saves: whether there are checkpoints, so that one is saved before a signal takes effect.

    Raises:
      ConfigError: for invalid values.
    """

    def __init__(
        self,
        callback: Callback | None = None,
        max_time: float | None = None,
        keep_partial: bool = False,
        saves: bool = False,
    ) -> None:
        if callback is not None and not callable(callback):
            raise ConfigError(f"callback={callback!r}; give a function of a fsjax.Progress")
        if max_time is not None and not (is_number(max_time) and max_time > 0):
            raise ConfigError(f"max_time={max_time!r}; choose seconds above 0, or None")
        self.callback = callback
        self.max_time = float("inf") if max_time is None else float(max_time)
        self.keep_partial = keep_partial
        self.waits = self.keep_partial or saves
        self.stopped = False
        self._noted: int | None = None
        self._started = time.monotonic()
        self._is_running = False

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float:
        """Seconds until ``max_time``; infinite without a limit."""
        return self.max_time - self.seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Starts the clock, and defers the first signal until training has ended in order.

        The signals are Ctrl-C, and SIGTERM if the process has a handler for it. They are deferred
        only if there are checkpoints or partial results are kept. The handler is called at the end,
        except after Ctrl-C if partial results are kept. A second signal calls it at once. Within
        ``running`` it does nothing, so that the trainings of a sweep end together.
        """
        if self._is_running:
            yield
            return
        self.stopped, self._noted, self._started = False, None, time.monotonic()
        self._is_running = True
        try:
            with self._deferred_signals():
                yield
        finally:
            self._is_running = False

    @contextmanager
    def _deferred_signals(self) -> Iterator[None]:
        if not self.waits or threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        for signum in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(signum)
            if callable(handler):
                handlers[signum] = handler

        def note(number: int, *_: Any) -> None:
            # An exception between two calls would lose the states, whose memory programs reuse.
            self._noted = number
            restore()

        def restore() -> None:
            for number, handler in handlers.items():
                signal.signal(number, handler)

        for number in handlers:
            signal.signal(number, note)
        try:
            yield
        finally:
            restore()
        if self._noted is None:
            return
        if self._noted != signal.SIGINT or not self.keep_partial:
            handlers.get(self._noted, signal.default_int_handler)(self._noted, None)
        warnings.warn(
            "training was interrupted; the result is that of the epochs done so far", stacklevel=7
        )

    def ends(self, progress: list[Progress]) -> bool:
        """Whether to stop now, after these epochs.

        With several processes, process 0 decides; a signal to any process stops all.
        """
        if self.callback is not None and is_lead():
            for newest in progress:
                self.stopped |= bool(self.callback(newest))
        self.stopped |= self.left <= 0
        votes = gathered_processes("the end of training", (self.stopped, self._noted))
        self.stopped = votes[0][0]
        self._noted = next((noted for _, noted in votes if noted is not None), None)
        self.stopped |= self._noted is not None
        return self.stopped


def log_to(target: Any, prefix: str = "") -> Callback:
    """A callback that logs the mean of each metric over the seeds after each epoch.

    Args:
      target: an object with ``add_scalar(name, value, step)``, such as a ``SummaryWriter`` of
        TensorBoard; with ``log_metrics(values, step=)``, such as the module ``mlflow``; or with
        ``log(values, step=)``, such as a run of Weights & Biases.
      prefix: prepended to the names.

    Raises:
      ConfigError: for an object without such a method.

    Examples:
      >>> class Writer:  # or a SummaryWriter of TensorBoard
      ...     def add_scalar(self, name, value, step):
      ...         print(step, name, value)
      >>> fsjax.fit(method, data, num_features=2, num_epochs=2, callback=fsjax.log_to(Writer()))
    """
    scalar = getattr(target, "add_scalar", None)
    log = getattr(target, "log_metrics", None) or getattr(target, "log", None)
    if scalar is None and log is None:
        raise ConfigError(
            f"{type(target).__name__} has none of add_scalar, log_metrics and log; give a "
            "SummaryWriter, the module mlflow, or a run of wandb"
        )

    def callback(progress: Progress) -> None:
        means = {
            prefix + name: float(np.nanmean(values))
            for name, values in progress.metrics.items()
            if not np.isnan(values).all()
        }
        if scalar is not None:
            for name, value in means.items():
                scalar(name, value, progress.epoch)
        elif log is not None:
            log(means, step=progress.epoch)

    return callback
