"""``--distributed`` of the launchers: refused combinations, and files for other processes."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest
from jax.errors import JaxRuntimeError
from launcher import ROOT, launch_here

from experiments import distributed

WAST = "--config=configs/wast.py:digits,quick"


@pytest.mark.parametrize(
    ("launcher", "arguments", "message"),
    [
        ("run", [WAST, "--num_processes=2"], "--num_processes is for --distributed"),
        (
            "run",
            [WAST, "--distributed", "--coordinator=a", "--num_processes=2"],
            "coordinator=a; write HOST:PORT",
        ),
        (
            "run",
            [WAST, "--distributed", "--coordinator=a:1", "--num_processes=2", "--process_id=2"],
            "process_id=2 with num_processes=2",
        ),
        ("report", ["--distributed"], "experiments.report trains nothing"),
        ("reproduce", ["--distributed", "--minutes=1"], "--minutes stops each process at"),
    ],
)
def test_flags_that_do_not_fit_are_refused(launcher, arguments, message, tmp_path) -> None:
    # JAX has already initialised its devices here, which is checked last.
    done = launch_here(launcher, f"--workdir={tmp_path / 'run'}", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and f"error: {message}" in done.stderr.replace("'", "")
    assert not (tmp_path / "run").exists()


def test_a_lost_process_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object, **__: object) -> None:
        raise JaxRuntimeError("UNKNOWN: Gloo AllGather failed: Read error: Connection reset")

    monkeypatch.setattr("experiments.launch.run.run_experiment", lose)
    monkeypatch.setattr("fsjax.engine.distributed.start.process_count", lambda: 2)
    monkeypatch.setattr("experiments.launch.cli.end_process", sys.exit)
    done = launch_here("run", f"--workdir={tmp_path / 'run'}", WAST)
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert "ends because another process was lost or ended (UNKNOWN: Gloo" in done.stderr
    assert "The same command resumes from the newest checkpoint" in done.stderr


def test_launchers_that_are_refused_exist() -> None:
    for name in distributed.SINGLE:
        folder = ROOT / "experiments"
        assert [*folder.rglob(f"{name}.py"), *folder.glob(f"{name}/__main__.py")]


def test_others_get_what_decides_and_no_checkpoints(tmp_path: Path) -> None:
    there = tmp_path / "run"
    for name in ("config.json", "a/metrics.csv", "report.html", "checkpoints/epoch_000001.npz"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    results = tmp_path / "results.csv"
    results.write_text("cells")
    data = distributed._packed({"workdir": str(there), "results": str(results), "page": "no/page"})
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        names = {name: packed.read(name) for name in packed.namelist() if name[-1] != "/"}
    assert names == {
        "workdir/run/config.json": b"config.json",
        "workdir/run/a/metrics.csv": b"a/metrics.csv",
        "workdir/run/report.html": b"report.html",
        "results/results.csv": b"cells",
    }
