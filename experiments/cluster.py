"""Many experiments on the workers of a Dask cluster: ``--cluster`` of the launchers of plans.

A cell is one experiment with a folder of its own, so that one whose worker died goes on from its
checkpoint on another. Dask hands the cells out, starts workers again and shows the progress; the
launcher gathers what comes back and writes it.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from logging import CRITICAL, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import flags

from experiments.cluster_worker import Failed, ready, run_cell
from fsjax.errors import ConfigError, FsjaxError
from fsjax.report import style

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

#: What ``--cluster`` may be.
ALLOWED = (
    "write local:2 (so many worker processes here, 1 to 256) or tcp://host:8786 (the address of "
    "a scheduler)"
)

#: Most worker processes of this machine.
MOST = 256

#: Seconds that a scheduler has to answer.
ANSWER = 8

#: Times that a cell is tried again after an unexpected error, such as one of the file system. How
#: many workers may die of one is a setting of Dask, ``distributed.scheduler.allowed-failures``.
RETRIES = 2

#: Addresses that Dask takes.
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s:/]+(:\d+)?|(tcp|tls)://\[[\da-fA-F:]+\]:\d+")


class Cell(NamedTuple):
    """One experiment.

    Attributes:
      name: on the dashboard and in what is printed; words before the first ``-`` that is followed
        by a digit are one bar.
      function: of a module that workers can import; it raises :class:`fsjax.errors.FsjaxError` for
        what would fail another time as well.
      arguments: its arguments; folders among them are absolute.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Cluster(NamedTuple):
    """Workers that are at hand.

    Attributes:
      client: of their scheduler.
      left: cells that have not ended, by their keys.
    """

    client: Client
    left: dict[str, Future]


class CellsFailedError(FsjaxError):
    """Some cells failed; all others have their results."""


def define_flag() -> flags.FlagHolder[str | None] | flags.Flag:
    """``--cluster`` of a launcher; launchers can be imported beside one another."""
    if "cluster" in flags.FLAGS:
        return flags.FLAGS["cluster"]
    return flags.DEFINE_string(
        "cluster", None, "Trains on a Dask cluster: local:2, or a scheduler's tcp://host:8786."
    )


def check_address(address: str) -> int | None:
    """How many local workers ``--cluster`` asks for; ``None`` for the address of a scheduler.

    Raises:
      ConfigError: for what is neither, and where Dask is not installed.
    """
    local = re.fullmatch(r"local:(\d{1,9})", address)
    if not (_ADDRESS.fullmatch(address) or local and 1 <= int(local[1]) <= MOST):
        raise ConfigError(f"--cluster={address}: {ALLOWED}")
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError(
            "--cluster needs Dask, which is not installed: pip install 'fsjax[cluster]'"
        )
    return int(local[1]) if local else None


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The workers that ``--cluster`` names; local ones end with the block, and cells with it.

    Raises:
      ConfigError: as :func:`check_address`, if no scheduler answers, and where it or its workers
        cannot import this package.
    """
    workers = check_address(address)
    from distributed import Client

    from experiments.cluster_worker import Quiet

    # That the scheduler is gone is told below, in one line.
    getLogger("distributed.client").setLevel(CRITICAL)
    with ExitStack() as stack:
        target = address
        if workers is not None:
            target = stack.enter_context(_local(workers))
        try:
            client = stack.enter_context(Client(target, timeout=ANSWER))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"no scheduler answers at {address}: check the address, which dask scheduler "
                f"prints, that it still runs, and that this machine reaches its port ({error})"
            ) from None
        if workers is not None:
            client.register_plugin(Quiet())
        else:
            _check_imports(client, address)
        print(_about(client, workers), flush=True)
        cluster = Cluster(client, {})
        try:
            yield cluster
        finally:
            if workers is None and cluster.left:
                _end(cluster)


def _local(workers: int) -> LocalCluster:
    from distributed import LocalCluster

    with warnings.catch_warnings():
        # What it takes instead is told anyway.
        warnings.filterwarnings("ignore", message="Port 8787 is already in use")
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            # A cell may need more than its share, which Dask would end it for.
            memory_limit=0,
            dashboard_address="127.0.0.1:8787",
        )


def _check_imports(client: Client, address: str) -> None:
    try:
        client.run_on_scheduler(ready)
        client.run(ready)
    except Exception as error:  # of a kind that Dask chooses
        raise ConfigError(
            f"the scheduler at {address} or its workers cannot import what is here ({error}): "
            f"start them with the same Python, and PYTHONPATH={Path.cwd()}"
        ) from None


def _about(client: Client, local: int | None) -> str:
    count = len(client.nthreads())
    workers = style.count(count, "worker") if count else "no workers yet, waits for them"
    hint = ""
    if local is not None and importlib.util.find_spec("bokeh") is None:
        hint = " (needs pip install bokeh)"
    return f"cluster: {workers}; progress at {client.dashboard_link}{hint}"


def gathered(
    cluster: Cluster, cells: Sequence[Cell], seconds: float | None = None
) -> Iterator[tuple[int, Any]]:
    """Runs cells and says so, one line for each; what they return, with their places.

    Args:
      cluster: of :func:`connected`, whose end is that of the cells that are not done.
      cells: in the order in which they should start.
      seconds: after which :class:`TimeoutError` is raised; ``None`` waits for all.

    Raises:
      CellsFailedError: at the end, if cells failed.
      ConfigError: if the scheduler is gone.
    """
    from distributed import as_completed

    futures = [_submit(cluster.client, cell, -place) for place, cell in enumerate(cells)]
    places = {future.key: place for place, future in enumerate(futures)}
    cluster.left.update((str(future.key), future) for future in futures)
    waiting = as_completed(futures, timeout=seconds)
    # Dask keeps, and computes anew, the results that somebody refers to.
    del futures
    failed = []
    for number, future in enumerate(waiting, start=1):
        place, outcome = places[future.key], _outcome(future)
        del cluster.left[future.key]
        state = "done"
        if isinstance(outcome, Failed):
            state = f"failed: {outcome.reason}"
            failed.append(f"\n  {cells[place].name}: {outcome.reason}")
        else:
            yield place, outcome
        print(f"[{number}/{len(cells)}] {cells[place].name}: {state}", flush=True)
    if failed:
        raise CellsFailedError(
            f"{len(failed)} of {len(cells)} cells failed; the same command tries them again:"
            f"{''.join(failed)}"
        )


def _outcome(future: Future) -> Any:
    """What a cell returned, or :class:`Failed`; errors that nobody expected are printed."""
    if future.cancelled():
        raise ConfigError("the scheduler is gone; start it, then run the same command to continue")
    error = future.exception()
    if error is None:
        return future.result()
    traceback.print_exception(type(error), error, future.traceback())
    line = next(iter(str(error).strip().splitlines()), "")
    return Failed(f"{type(error).__name__}: {line}")


def _submit(client: Client, cell: Cell, priority: int) -> Future:
    return client.submit(
        run_cell,
        str(Path.cwd()),
        functools.partial(cell.function, *cell.arguments),
        # The same key would give the result of another launch that is at work.
        key=f"{cell.name}-{uuid.uuid4().hex[:8]}",
        retries=RETRIES,
        priority=priority,
        pure=False,
    )


def _end(cluster: Cluster) -> None:
    """Ends cells that run: a thread cannot be interrupted, so their processes start anew."""
    client, left = cluster
    if client.status != "running":
        return
    busy = [
        worker for worker, keys in client.processing().items() if not left.keys().isdisjoint(keys)
    ]
    # First, as the new processes would take them up again.
    client.cancel(list(left.values()), force=True)
    if busy:
        client.restart_workers(busy, timeout=30, raise_for_error=False)
