"""Trains many experiments on the workers of a Dask cluster: the flag ``--cluster``.

A cell is one experiment with its own folder, so that after the death of its worker another worker
resumes it from its checkpoint. Dask schedules the cells, restarts workers and shows the progress;
the launcher collects the results and writes them.
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

#: The largest number of worker processes on this machine.
MAX_WORKERS = 256

#: The values that ``--cluster`` accepts.
ALLOWED = (
    f"write local:N (N worker processes on this machine, 1 to {MAX_WORKERS}) or the address of a "
    "Dask scheduler, tcp://HOST:8786"
)

#: Seconds to wait for the scheduler's answer.
CONNECT_TIMEOUT = 8

#: How often a cell is retried after an unexpected error, for example of the file system. How many
#: workers may die of one cell is Dask's setting ``distributed.scheduler.allowed-failures``.
RETRIES = 2

#: Addresses that Dask accepts.
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s:/]+(:\d+)?|(tcp|tls)://\[[\da-fA-F:]+\]:\d+")


class Cell(NamedTuple):
    """One experiment.

    Attributes:
      name: shown on the dashboard and in the output; cells with the same words before the first
        ``-`` and digit share a progress bar.
      function: from a module that workers can import; it raises
        :class:`fsjax.errors.FsjaxError` for errors that a retry would not cure.
      arguments: its arguments; paths of folders are absolute.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Cluster(NamedTuple):
    """A connection to a cluster.

    Attributes:
      client: Dask's client of the scheduler.
      unfinished: futures of the cells that have not ended, by key.
    """

    client: Client
    unfinished: dict[str, Future]


class CellsFailedError(FsjaxError):
    """Some cells failed; the results of all others are written."""


def define_flag() -> flags.FlagHolder[str | None] | flags.Flag:
    """Defines ``--cluster``, once: several launchers may be imported into one process."""
    if "cluster" in flags.FLAGS:
        return flags.FLAGS["cluster"]
    return flags.DEFINE_string(
        "cluster",
        None,
        "Train on a Dask cluster: local:2 for two worker processes on this machine, or the "
        "address of a scheduler, tcp://HOST:8786.",
    )


def check_address(address: str) -> int | None:
    """The number of local workers in the value of ``--cluster``; ``None`` for an address.

    Raises:
      ConfigError: if the value is neither, or Dask is not installed.
    """
    local = re.fullmatch(r"local:(\d{1,9})", address)
    if not (_ADDRESS.fullmatch(address) or local and 1 <= int(local[1]) <= MAX_WORKERS):
        raise ConfigError(f"--cluster={address}: {ALLOWED}")
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError(
            "--cluster needs Dask, which is not installed; run pip install 'fsjax[cluster]'"
        )
    return int(local[1]) if local else None


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connects to the cluster that ``--cluster`` names.

    At the end of the block local workers are stopped, and unfinished cells are cancelled.

    Raises:
      ConfigError: as :func:`check_address`; if no scheduler answers; if the scheduler or its
        workers cannot import this package.
    """
    workers = check_address(address)
    from distributed import Client

    from experiments.cluster_worker import Quiet

    # A lost scheduler is reported below, in one line.
    getLogger("distributed.client").setLevel(CRITICAL)
    with ExitStack() as stack:
        target = address
        if workers is not None:
            import dask

            # Cells may start processes, as those of the arena do.
            stack.enter_context(dask.config.set({"distributed.worker.daemon": False}))
            target = stack.enter_context(_local(workers))
        try:
            client = stack.enter_context(Client(target, timeout=CONNECT_TIMEOUT))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"no scheduler answers at {address} ({error}); check that the address is the one "
                "that dask scheduler printed, that it is still running, and that its port can be "
                "reached from this machine"
            ) from None
        if workers is not None:
            client.register_plugin(Quiet())
        else:
            _check_imports(client, address)
        print(_startup_message(client, workers), flush=True)
        cluster = Cluster(client, {})
        try:
            yield cluster
        finally:
            if workers is None and cluster.unfinished:
                _stop_cells(cluster)


def _local(workers: int) -> LocalCluster:
    from distributed import LocalCluster

    with warnings.catch_warnings():
        # The link that is printed has the port that Dask chose instead.
        warnings.filterwarnings("ignore", message="Port 8787 is already in use")
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            # No limit: Dask would kill a worker whose cell needs more than its share.
            memory_limit=0,
            dashboard_address="127.0.0.1:8787",
        )


def _check_imports(client: Client, address: str) -> None:
    try:
        client.run_on_scheduler(ready)
        client.run(ready)
    except Exception as error:  # Dask may raise an error of any class
        raise ConfigError(
            f"the scheduler at {address} or its workers cannot import the code in this folder "
            f"({error}); start them with the same Python and PYTHONPATH={Path.cwd()}"
        ) from None


def _startup_message(client: Client, local: int | None) -> str:
    count = len(client.nthreads())
    workers = style.count(count, "worker") if count else "no workers yet, waiting for them"
    hint = ""
    if local is not None and importlib.util.find_spec("bokeh") is None:
        hint = " (needs pip install bokeh)"
    return f"cluster: {workers}; progress at {client.dashboard_link}{hint}"


def gathered(
    cluster: Cluster, cells: Sequence[Cell], seconds: float | None = None
) -> Iterator[tuple[int, Any]]:
    """Runs cells and prints a line as each one ends.

    Args:
      cells: in the order in which they should start.
      seconds: after which :class:`TimeoutError` is raised; ``None`` waits for all.

    Yields:
      The index of a cell and what its function returned.

    Raises:
      CellsFailedError: at the end, if cells failed.
      ConfigError: if the scheduler was lost.
    """
    from distributed import as_completed

    futures = [_submit(cluster.client, cell, -index) for index, cell in enumerate(cells)]
    index_of = {future.key: index for index, future in enumerate(futures)}
    cluster.unfinished.update((str(future.key), future) for future in futures)
    completed = as_completed(futures, timeout=seconds)
    # Dask keeps a result, and computes it again, as long as something refers to its future.
    del futures
    failures = []
    for number, future in enumerate(completed, start=1):
        index, outcome = index_of[future.key], _outcome(future)
        del cluster.unfinished[future.key]
        state = "done"
        if isinstance(outcome, Failed):
            state = f"failed: {outcome.reason}"
            failures.append(f"\n  {cells[index].name}: {outcome.reason}")
        else:
            yield index, outcome
        print(f"[{number}/{len(cells)}] {cells[index].name}: {state}", flush=True)
    if failures:
        raise CellsFailedError(
            f"{len(failures)} of {len(cells)} cells failed; the same command tries them again:"
            f"{''.join(failures)}"
        )


def _outcome(future: Future) -> Any:
    """What a cell returned, or :class:`Failed`; the traceback of an unexpected error is printed."""
    if future.cancelled():
        raise ConfigError(
            "the connection to the scheduler was lost; start it again, and the same command "
            "continues"
        )
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
        # A unique key: an equal one would return the result of another launch that is running.
        key=f"{cell.name}-{uuid.uuid4().hex[:8]}",
        retries=RETRIES,
        priority=priority,
        pure=False,
    )


def _stop_cells(cluster: Cluster) -> None:
    """Stops running cells by restarting their processes, as a thread cannot be interrupted."""
    client, unfinished = cluster
    if client.status != "running":
        return
    busy = [
        worker
        for worker, keys in client.processing().items()
        if not unfinished.keys().isdisjoint(keys)
    ]
    # Before the restart, as the new processes would start these cells again.
    client.cancel(list(unfinished.values()), force=True)
    if busy:
        client.restart_workers(busy, timeout=30, raise_for_error=False)
