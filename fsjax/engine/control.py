"""Ending a training early: by time, by the user's own function, or by a signal."""

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

from fsjax.distributed.exchange import gathered, is_lead
from fsjax.errors import ConfigError, check_flag, is_number


class Progress(NamedTuple):
    """What a callback sees after each epoch.

    Attributes:
      method: its name.
      seeds: the seeds that train, S of them.
      epoch: epochs done, from 1.
      num_epochs: epochs of the whole training.
      metrics: the values of this epoch by ``split/metric`` name, ``(S,)`` each; NaN for seeds
        that had no more to learn.
      seconds: since training began.
    """

    method: str
    seeds: tuple[int, ...]
    epoch: int
    num_epochs: int
    metrics: Mapping[str, np.ndarray]
    seconds: float


#: Called after each epoch; true ends the training.
Callback = Callable[[Progress], Any]


class Control:
    """Decides after each call of the compiled epochs whether training goes on.

    Args:
      callback: called after each epoch, which makes a call of each.
      max_time: seconds, compilation included, above 0; ``None`` is without end.
      keep_partial: whether Ctrl-C ends training with what was learnt until then.
      saves: whether there are checkpoints, so that a signal first leaves one.

    Raises:
      ConfigError: for values that are none.
    """

    def __init__(
        self,
        callback: Callback | None = None,
        max_time: float | None = None,
        keep_partial: bool = False,
        saves: bool = False,
    ) -> None:
        if callback is not None and not callable(callback):
            raise ConfigError(f"callback={callback!r}; give a function of one Progress")
        if max_time is not None and not (is_number(max_time) and max_time > 0):
            raise ConfigError(f"max_time={max_time!r}; choose seconds above 0, or None")
        self.callback = callback
        self.max_time = float("inf") if max_time is None else float(max_time)
        self.keep_partial = check_flag("keep_partial", keep_partial)
        self.waits = self.keep_partial or saves
        self.stopped = False
        self._noted: int | None = None
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.max_time - self.seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Starts the clock; where training can end well, the first signal within is only noted.

        These are Ctrl-C, and SIGTERM where the process has a handler for it. Unless partial results
        are kept, the handler is called at the end; a second signal goes there at once.
        """
        self.stopped, self._noted, self._started = False, None, time.monotonic()
        if not self.waits or threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        for signum in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(signum)
            if callable(handler):
                handlers[signum] = handler

        def note(number: int, *_: Any) -> None:
            # States that were handed over to a program are lost if it is left in between.
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
            "training was interrupted; the result is what was learnt until then", stacklevel=5
        )

    def ends(self, progress: list[Progress]) -> bool:
        """Whether to stop now, after these epochs.

        Of several processes the lead decides; a signal to one is one to all.
        """
        if self.callback is not None and is_lead():
            for newest in progress:
                self.stopped |= bool(self.callback(newest))
        self.stopped |= self.left <= 0
        votes = gathered("the end of training", (self.stopped, self._noted))
        self.stopped = votes[0][0]
        self._noted = next((noted for _, noted in votes if noted is not None), None)
        self.stopped |= self._noted is not None
        return self.stopped


def log_to(target: Any, prefix: str = "") -> Callback:
    """A callback that hands the mean over the seeds of each metric to a logger, epoch by epoch.

    Args:
      target: what has ``add_scalar(name, value, step)``, such as a ``SummaryWriter`` of
        TensorBoard; ``log_metrics(values, step=)``, such as the module ``mlflow``; or
        ``log(values, step=)``, such as a run of Weights & Biases.
      prefix: of the names.

    Raises:
      ConfigError: for anything else.
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
