"""The command ``fsjax select``, mistakes included.

Covers ``fsjax.__main__``.
"""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from bad_calls import bad_calls

import fsjax
from fsjax import __main__ as cli
from fsjax.__main__ import main
from fsjax.auto.contest import cross_validation

FLAGS = ("--target=label", "--methods=univariate,l1", "--quiet", "--budget=1h", "--judge=linear")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with a table in it, where the command runs."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 5)), columns=list("abcde"))
    frame["label"] = np.where(frame["b"] + 0.2 * rng.normal(size=120) > 0, "up", "down")
    frame["patient"] = np.repeat([f"p{i}" for i in range(24)], 5)
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_table_gets_its_report(folder, capsys):
    assert main(["select", "table.csv", *FLAGS, "--groups=patient"]) == 0
    out = capsys.readouterr().out
    assert "1 of 5 columns is enough" in out
    report_folder = folder / "table-selection"
    content = json.loads((report_folder / "selection.json").read_text())
    assert (
        content["columns"] == ["b"]
        and content["score"] > 85
        and content["classes"] == ["down", "up"]
    )
    page = (report_folder / "report.html").read_text()
    assert "fsjax select table.csv --target=label" in page
    # Again, from what is there; and the same from another kind of file.
    assert main(["select", "table.csv", *FLAGS, "--groups=patient"]) == 0
    assert main(["select", "table.parquet", *FLAGS, "--drop=patient", "--workdir=other"]) == 0
    assert json.loads((folder / "other" / "selection.json").read_text())["columns"] == ["b"]


@pytest.mark.slow
def test_names_of_a_file_say_nothing_to_the_terminal(folder, capsys):
    frame = pd.read_csv("table.csv").drop(columns="patient")
    frame["label"] = frame["label"].replace("up", "\x1b]0;up\x07")
    frame.assign(**{"\x9bconstant": 1}).rename(columns={"b": "\x1b[31mred"}).to_csv("red.csv")
    assert main(["select", "red.csv", *FLAGS]) == 0
    assert main(["select", "red.csv", *FLAGS, "--workdir=other", "--drop=\x1b[31mrd"]) == 2
    output = "".join(capsys.readouterr())
    assert r"\x1b[31mred" in output and not {"\x1b", "\x07", "\x9b"} & {*output}
    # Files have the names as they are.
    content = json.loads((folder / "red-selection" / "selection.json").read_text())
    assert content["columns"] == ["\x1b[31mred"]


@pytest.mark.slow
def test_several_targets_and_a_sparse_file(folder):
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 4), density=0.6, rng=rng, format="csr")
    low = X.toarray()[:, 3] + 0.1 * rng.normal(size=100)
    high = 2 * low
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez("sparse.npz", format=b"csr", **parts, low=low, high=high)
    assert main(["select", "sparse.npz", "--target=low,high", *FLAGS[1:], "--workdir=out"]) == 0
    content = json.loads(Path("out/selection.json").read_text())
    assert (content["columns"], content["metric"]) == (["x3"], "r2")


@pytest.mark.slow
def test_a_scheduler_that_ends_it_gets_a_report(folder, capsys, monkeypatch):
    before, real, calls = signal.getsignal(signal.SIGTERM), cross_validation.Contest._fold, []

    def terminated(*args):
        calls.append(args)
        if len(calls) == 23:  # in the second round
            os.kill(os.getpid(), signal.SIGTERM)
        return real(*args)

    monkeypatch.setattr(cross_validation.Contest, "_fold", terminated)
    assert main(["select", "table.csv", *FLAGS, "--drop=patient"]) == 130
    assert "stopped before it was complete" in capsys.readouterr().out
    # Of what ran by then: the column that matters comes first.
    assert json.loads(Path("table-selection/selection.json").read_text())["columns"][0] == "b"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_a_garbage_collection_is_not_lost(number):
    sent = []

    def send(phase, _):  # as that of JAX: Python ignores its errors
        if not sent:
            sent.append(phase)
            os.kill(os.getpid(), number)
            time.sleep(0.0)

    # A shell ignores SIGINT in what it starts in the background.
    before = signal.signal(number, signal.default_int_handler)
    gc.callbacks.append(send)
    try:
        with pytest.raises(KeyboardInterrupt), cli._terminated_as_interrupted():
            gc.collect()
            for _ in range(100):
                time.sleep(0.01)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        gc.callbacks.remove(send)
        signal.signal(number, before)
    assert sent == ["start"]


@bad_calls(
    ("select table.csv --target=labl", "did you mean 'label'"),
    ("select tabel.csv --target=label", "did you mean table.csv"),
    ("select table.csv", "--target"),
    ("select table.csv --target=label --budgt=3", "did you mean '--budget'"),
    ("select table.csv --target=label --out=folder", "allowed: '--help'"),
    ("select table.csv --target=label --budget=soon", "choose a time such as"),
    ("select table.csv --target=label --judge=tree", "did you mean 'trees'"),
    ("select table.csv --target=label --task=rank", "task='rank'"),
    ("select table.csv --target=label --groups=pateint", "did you mean 'patient'"),
    ("select table.csv --target=label --drop=z", "--drop=z"),
    ("select table.csv --target=label --workdir=table.csv", "is a file"),
    ("select table.csv --target=label --fdr=x", "invalid float value"),
    ("selct", "invalid choice"),
    ("", "required"),
)
def test_mistakes_are_one_line(folder, capsys, bad):
    arguments, message = bad
    try:
        code = main(arguments.split())
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr().err.strip()
    assert code == 2
    assert message in output and "Traceback" not in output and output.count("\n") == 0


def test_small_tables_and_useless_ones(folder, capsys):
    frame = pd.read_csv("table.csv")
    frame.head(3).to_csv("three.csv", index=False)
    assert main(["select", "three.csv", *FLAGS]) == 2
    frame[["patient", "label"]].assign(number=range(120)).to_csv("ids.csv", index=False)
    assert main(["select", "ids.csv", *FLAGS]) == 2
    frame.assign(label="up").to_csv("one.csv", index=False)
    assert main(["select", "one.csv", *FLAGS]) == 2
    output = capsys.readouterr().err
    assert "is left to choose from" in output and "only one value" in output
    assert not list(folder.glob("*-selection"))


def test_the_installed_command(folder):
    command = shutil.which("fsjax", path=str(Path(sys.executable).parent))
    assert command, "the console script is not installed"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fsjax ")


@pytest.mark.slow
def test_an_unknown_backend_of_matplotlib_is_not_used(folder):
    command = [sys.executable, "-m", "fsjax", "select", "table.csv", *FLAGS, "--workdir=run"]
    subprocess.run(command, env=os.environ | {"MPLBACKEND": "nonsense"}, check=True)
    assert Path("run/report.html").exists()


def test_versions(folder):
    done = subprocess.run(
        [sys.executable, "-m", "fsjax", "--version"], capture_output=True, text=True, check=True
    )
    python = ".".join(map(str, sys.version_info[:3]))
    assert done.stdout == f"fsjax {fsjax.__version__} (JAX {jax.__version__}, Python {python})\n"


@pytest.mark.parametrize("words", [[], ["select"]])
def test_without_arguments(words, monkeypatch, capsys):
    """One line in a pipe; on a terminal what to type."""
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(words) == 2
    text = capsys.readouterr().err
    assert "select" in text and "--help" in text
    if words:
        assert "fsjax select patients.csv --target=outcome" in text and "default: 5min" in text


@pytest.mark.parametrize(("shell", "paths"), [("bash", "_shtab_compgen_files"), ("zsh", "_files")])
def test_completion(shell, paths, capsys):
    pytest.importorskip("shtab", reason="pip install fsjax[completion]")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(text in script for text in ("select", "convert", "--budget", "--target", paths))
