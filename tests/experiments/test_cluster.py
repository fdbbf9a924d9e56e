"""``--cluster``: workers that die, cells that fail, addresses that do not answer."""

from __future__ import annotations

import functools
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from cluster_cells import devices, fails_at_first, killed_once, refused
from launcher import ROOT, launch_here

import fsjax
from experiments import cluster
from experiments.cluster import Cell, CellsFailedError, Cluster, check_address, connected, gathered
from experiments.launch.sweep import cells_of, fitted, plan_of
from fsjax.data import load
from fsjax.errors import ConfigError, DataError

# Dask leaves a socket open when its cluster is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None, reason="pip install fsjax[cluster]"
)

SHORT = (
    "--config=configs/wast.py:digits",
    "--noprogress",
    "--config.evaluation.protocols=embedded",
)


@pytest.mark.parametrize(
    "address",
    ["", "2", "local", "local:", "local:0", "local:-1", "local:1.5", "local:257", "host:8786"]
    + ["tcp://", "http://host:8786", "tcp://host:x", "tcp://ho st:8786", "local:2 "],
)
def test_nonsense_is_told_in_one_line(address: str) -> None:
    with pytest.raises(ConfigError, match=r"write local:N .* tcp://HOST:8786") as error:
        check_address(address)
    assert "\n" not in str(error.value)


def test_the_extra_is_named_where_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for address in ("local:1", "tcp://host:8786", "tls://[::1]:8786"):
        with pytest.raises(ConfigError, match=r"pip install 'fsjax\[cluster\]'"):
            check_address(address)


@needs_dask
def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.5)
    done = launch_here(
        "sweep",
        *SHORT,
        "--sweep=method.drop_fraction=0.1",
        "--cluster=tcp://127.0.0.1:9",
        f"--workdir={tmp_path / 'sweep'}",
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: no scheduler answers at tcp://127.0.0.1:9 (")
    assert done.stderr.count("\n") == 1 and not (tmp_path / "sweep").exists()


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        with connected("local:1") as connection:
            yield connection


@pytest.mark.slow
@needs_dask
def test_a_cell_goes_on_from_its_checkpoint_when_its_worker_is_killed(
    workers: Cluster, tmp_path: Path
) -> None:
    config = config_of(num_epochs=60)
    grid = {"method.drop_fraction": (0.2,)}
    (cell,) = cells_of(config, grid, [{"drop_fraction": 0.2}], tmp_path)
    killed = cell._replace(function=killed_once)
    (before,) = workers.client.run(os.getpid).values()
    ((place, (process, path)),) = gathered(workers, [killed])
    assert place == 0 and process != before
    restored = fsjax.load(path)
    # The process that died had trained twenty epochs.
    assert restored.cost["trained_epochs"] <= 40
    planned, dataset = plan_of(config, grid, tmp_path / "alone", progress=False)
    alone = fitted(planned, dataset, config).results[0]
    assert alone.cost["trained_epochs"] == 60
    pd.testing.assert_frame_equal(table_of(restored), table_of(alone))
    pd.testing.assert_frame_equal(pd.DataFrame(restored.scores), pd.DataFrame(alone.scores))


@needs_dask
def test_cells_that_fail_do_not_end_the_others(
    workers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [
        Cell("refused-1", refused, ()),
        Cell("twice-2", fails_at_first, (tmp_path / "twice", 2)),
        Cell("always-3", fails_at_first, (tmp_path / "always", 99)),
        Cell("good-4", devices, ("value",)),
    ]
    outcomes = {}
    with pytest.raises(CellsFailedError, match="2 of 4 cells failed") as error:
        for place, outcome in gathered(workers, cells):
            outcomes[place] = outcome
    assert outcomes == {1: 2, 3: ("value", 1, str(Path.cwd()))}
    assert "\n  refused-1: seven is too many" in str(error.value)
    assert "\n  always-3: OSError: stale file handle" in str(error.value)
    assert (tmp_path / "always").read_text() == "..."
    assert "good-4: done" in capsys.readouterr().out


@needs_dask
@pytest.mark.long
def test_a_sweep_is_the_one_without_a_cluster(
    workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def there(address: str) -> Iterator[Any]:
        yield workers

    monkeypatch.setattr(cluster, "connected", there)
    arguments = [*SHORT, "--config.train.num_epochs=2", "--config.seeds=3,4"]
    arguments += ["--sweep=method.drop_fraction=0.1,0.3"]
    run = functools.partial(launch_here, "sweep", *arguments)
    alone = run(f"--workdir={tmp_path / 'alone'}")
    done = run(f"--workdir={tmp_path / 'cluster'}", "--cluster=local:1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": done") == 2
    tables = [pd.read_csv(tmp_path / name / "sweep.csv") for name in ("alone", "cluster")]
    pd.testing.assert_frame_equal(*tables)
    assert len(tables[0]) == 4
    shown, before = alone.stdout.splitlines()[:3], done.stdout.partition("drop_fraction ")[0]
    assert shown == done.stdout.splitlines()[before.count("\n") :][:3]


@needs_dask
@pytest.mark.long
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_sweep_of_24_runs_whose_workers_are_killed(tmp_path: Path, interrupted: bool) -> None:
    command = [sys.executable, "-u", "-m", "experiments.sweep", *SHORT]
    command += ["--config.seeds=1,2", "--config.train.num_epochs=60"]
    command += ["--sweep=method.drop_fraction=0.1,0.2,0.3"]
    command += ["--sweep=method.sensitivity_weight=0.1,0.4,0.6,0.9"]
    subprocess.run([*command, f"--workdir={tmp_path / 'alone'}"], cwd=ROOT, check=True)
    command += ["--cluster=local:2", f"--workdir={tmp_path / 'cluster'}"]
    said = follow(command, killed=(2, 5), interrupted_at=8 if interrupted else None)
    if interrupted:
        assert said[-1].startswith("interrupted; the same command continues")
        assert not (tmp_path / "cluster" / "result.json").exists()
        said = follow(command)
    assert len([line for line in said if line.endswith(": done\n")]) == 12
    tables = [pd.read_csv(tmp_path / name / "sweep.csv") for name in ("alone", "cluster")]
    pd.testing.assert_frame_equal(*tables)
    assert len(tables[0]) == 24


@needs_dask
@pytest.mark.long
def test_runs_of_the_papers_and_comparisons(tmp_path: Path) -> None:
    try:
        load("madelon", download=False)
    except DataError as error:
        pytest.skip(str(error))
    arguments = ["--paper=wast", "--tables=2", "--datasets=madelon", "--methods=fisher_score,wast"]
    arguments += ["--seeds=1", f"--workdir={tmp_path / 'runs'}", "--cluster=local:2"]
    arguments += [f"--results={tmp_path / 'results.csv'}", f"--page={tmp_path / 'page.md'}"]
    said = follow([sys.executable, "-u", "-m", "experiments.reproduce", *arguments])
    assert "[2/2]" in "".join(said)
    table = pd.read_csv(tmp_path / "results.csv")
    assert set(table["method"]) == {"fisher_score", "wast"} and (table["mean"] > 74).all()

    arguments = ["--configs=configs/wast.py,configs/fisher_score.py", "--set=train.num_epochs=2"]
    for name, further in (("alone", []), ("cluster", ["--cluster=local:2"])):
        command = [sys.executable, "-u", "-m", "experiments.compare", *arguments, "--noprogress"]
        follow([*command, f"--workdir={tmp_path / name}", *further])
    alone, other = ((tmp_path / name / "table.txt").read_text() for name in ("alone", "cluster"))
    assert alone == other


def config_of(num_epochs: int) -> Any:
    from experiments.launch.config import load_config

    config = load_config("configs/wast.py:digits")
    config.train.num_epochs, config.method.hidden = num_epochs, (8,)
    config.evaluation.protocols = ("embedded",)
    config.seeds = (3,)
    return config


def table_of(result: fsjax.FitResult) -> pd.DataFrame:
    return fsjax.Sweep(("drop_fraction",), ({"drop_fraction": 0.2},), (result,)).table()


def follow(
    command: list[str], killed: tuple[int, ...] = (), interrupted_at: int | None = None
) -> list[str]:
    """The output of a launcher; a worker is killed, or Ctrl-C sent, after some cells."""
    options: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.PIPE, "text": True}
    # If a shell runs the tests in the background, SIGINT is ignored in child processes too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        signal.signal(signal.SIGINT, before)
        said = []
        for line in process.stdout:
            said.append(line)
            ended = sum(line.startswith("[") for line in said)
            if line.startswith("[") and ended in killed:
                workers = psutil.Process(process.pid).children()
                next(child for child in workers if "spawn_main" in " ".join(child.cmdline())).kill()
            if line.startswith("[") and ended == interrupted_at:
                os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == (0 if interrupted_at is None else 130)
    return said
