"""Every launcher and every benchmark runs once, with small settings."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from launcher import ROOT, launch, launch_here
from marks import slow_ids, some_long
from sklearn.datasets import load_digits

import fsjax
from experiments.benchmarks import (
    checkpoints,
    concrete,
    costs,
    growth,
    selectors,
    sparse,
    sweep,
    text,
    topology,
)
from fsjax.tables.datasets.catalog import paper_settings

#: Arguments of each launcher as in a shell, and files that it writes; ``{tmp}`` is an empty folder.
LAUNCHERS: dict[str, tuple[str, str]] = {
    "accelerator": (
        "--only=count/ip_cae,rate/copy,agreement/fisher_score --size=tiny --minutes=2 "
        "--workdir={tmp}",
        "rows.csv",
    ),
    "arena/__main__": (
        "--tables=wine '--selectors=random columns' --splits=1 --anew --workdir={tmp}",
        "rows.parquet",
    ),
    "benchmark": ("'--worker=smallest/100,000 weights'", ""),
    "benchmarks/growth": ("--table={tmp}/growth.md --picture={tmp}/growth.png", "growth.png"),
    "compare": (
        "--configs=configs/fisher_score.py:digits,quick,configs/random_selection.py:digits,quick "
        "--workdir={tmp} --noprogress --set=train.num_epochs=1",
        "table.txt report.html",
    ),
    "figures": ("--figure=wast/2 --workdir={tmp} --rows={tmp}/rows", "rows/wast_2.csv"),
    "studies/discoveries": (
        "--rules=l1,knockoff+filter,Stabl --tables=number --columns=20 --draws=2 "
        "--out={tmp}/table.md",
        "table.md",
    ),
    "feature_selection": (
        "--config=configs/feature_selection.py:digits,quick "
        "--config.methods=fisher_score,random_selection --config.sizes=6 "
        "--config.train.num_epochs=1 --workdir={tmp} --noprogress",
        "accuracy.csv accuracy.png",
    ),
    "studies/sparsity/accuracy": (
        "--network=transformer --recipes=magnitude --densities=0.1 --steps=12 --seeds=1 "
        "--out={tmp}/recipes.csv",
        "recipes.csv recipes.png",
    ),
    "studies/sparsity/inference": (
        "--networks=LeNet-5 --densities=0.01 --seconds=0 --out={tmp}/inference.csv",
        "inference.csv",
    ),
    "studies/sparsity/one_shot": (
        "--networks=transformer --steps=12 --seeds=1 --rows=32 --out={tmp}/one_shot.csv",
        "one_shot.csv",
    ),
    "studies/sparsity/tickets": (
        "--steps=12 --seeds=1 --rounds=2 --rewind=3 --out={tmp}/tickets.csv",
        "tickets.csv",
    ),
    "studies/sparsity/transfer": (
        "--steps=12 --seeds=1 --densities=0.1 --rates=0.001 --out={tmp}/transfer.csv",
        "transfer.csv",
    ),
    "studies/sparsity/shrinking": (
        "--networks=lenet5 --steps=2 --seeds=1 --seconds=0 --out={tmp}/shrinking.csv",
        "shrinking.csv",
    ),
    "studies/sparsity/step_cost": (
        "--network=transformer --recipes=magnitude --turns=2 --every=2",
        "",
    ),
    "reference": ("--results={tmp}/reference.csv --largest=1", ""),
    "regularize": (
        "--config=configs/regularize.py:quick --config.data.options.num_samples=600 "
        "--config.data.options.num_features=40 --config.data.options.prevalence=0.2 "
        "--config.strengths.l1=() --config.strengths.dropout=() --config.strengths.binmask=() "
        "--config.train.num_epochs=1 --workdir={tmp} --noprogress",
        "regularization.csv regularization.png",
    ),
    "report": ("--workdir={tmp}", "report.html"),
    "reproduce": ("--paper=wast --tables=2 --plan --results={tmp}/results.csv --page=", ""),
    "run": (
        "--config=configs/fisher_score.py:digits,quick --workdir={tmp} --noprogress",
        "result.json report.html",
    ),
    "sparsify": (
        "--config=configs/sparsify.py:digits,mlp,quick --config.probmask=False "
        "--config.strengths=1e-4 --config.network.hidden=8 --config.train.num_epochs=2 "
        "--workdir={tmp} --noprogress",
        "sparsity.csv accuracy_sparsity.png",
    ),
    "sweep": (
        "--config=configs/fisher_score.py:digits,quick --sweep=num_features=5,10 "
        "--workdir={tmp} --noprogress",
        "sweep.csv sweep.png",
    ),
}

#: Launchers that train long, or twice.
LONG = (
    "arena/__main__",
    "compare",
    "feature_selection",
    "regularize",
    "run",
    "sparsify",
    "studies/sparsity/accuracy",
    "studies/sparsity/one_shot",
    "studies/sparsity/shrinking",
    "studies/sparsity/tickets",
    "studies/sparsity/transfer",
    "sweep",
)

#: Launchers that start further processes and take long.
OF_PROCESSES: dict[str, tuple[str, str]] = {
    "benchmarks/first_fit": ("FisherScore", ""),
    "benchmarks/processes": (
        "--arguments=--config=configs/fisher_score.py:digits,quick --workdir={tmp} --tries=1 "
        "--processes=2",
        "1/result.json 2/result.json",
    ),
    "studies/selection/chance": (
        "--draws=1 --workdir={tmp}",
        "chance.csv selection_study_chance.md",
    ),
    "studies/selection/comparisons": (
        "--kinds=linear --draws=1 --workdir={tmp} --publish={tmp}",
        "comparisons.csv selection_study_comparisons.md",
    ),
    "studies/selection/fdr": (
        "--statistics=l1 --rates=0.2 --draws=2 --budget=5 --workdir={tmp}",
        "selection_study_fdr.md",
    ),
    "studies/selection/noise": (
        "'--kinds=noise 150 x 60' --draws=1 --budget=5 --workdir={tmp}",
        "selection_study_noise.md",
    ),
}


def _prepare(launcher: str, folder: Path) -> None:
    """Creates the files that a launcher reads or resumes from."""
    if launcher == "report":
        assert launch_here("run", *_arguments("run", folder)).returncode == 0
        (folder / "report.html").unlink()
    elif launcher == "benchmarks/growth":
        # All rows are there: a measurement takes minutes.
        shutil.copy(ROOT / "docs" / "tables" / "growth.md", folder / "growth.md")


def _arguments(launcher: str, folder: Path) -> list[str]:
    arguments, _ = (LAUNCHERS | OF_PROCESSES)[launcher]
    return shlex.split(arguments.format(tmp=folder))


@slow_ids("benchmark", "benchmarks/growth")
@slow_ids("accelerator", "report", "studies/sparsity/inference", "studies/sparsity/step_cost")
@pytest.mark.parametrize("launcher", some_long(LAUNCHERS, LONG))
def test_every_launcher_runs(
    launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Do not change the cores of the test process.
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    _prepare(launcher, tmp_path)
    done = launch_here(launcher, *_arguments(launcher, tmp_path))
    assert done.returncode == 0 and done.stdout, done.stderr
    assert all((tmp_path / name).exists() for name in LAUNCHERS[launcher][1].split())


@pytest.mark.long
@pytest.mark.parametrize("launcher", OF_PROCESSES)
def test_every_launcher_of_processes_runs(launcher: str, tmp_path: Path) -> None:
    _prepare(launcher, tmp_path)
    done = launch(launcher.replace("/", "."), *_arguments(launcher, tmp_path))
    assert done.returncode == 0 and done.stdout, done.stderr
    assert all((tmp_path / name).exists() for name in OF_PROCESSES[launcher][1].split())


def _checkpoints(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(checkpoints, "ROWS", 128)
    patch.setattr(checkpoints, "COLUMNS", 16)
    return checkpoints.train_and_restart(8, 1)


def _concrete_parts(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(concrete, "K", 4)
    patch.setattr(concrete, "D", 16)
    return concrete.parts()


def _concrete_step(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    pytest.importorskip("torch")
    patch.setattr(concrete, "D", 64)
    return concrete.torch_step()


def _coil20(run: Callable[..., Any], patch: pytest.MonkeyPatch) -> dict[str, Any]:
    def digits(_: str) -> fsjax.data.Dataset:
        X, y = load_digits(return_X_y=True)
        paper = paper_settings("digits")
        return fsjax.data.Dataset("digits", X[:300].astype("float32"), y[:300], paper=paper)

    patch.setattr(selectors, "load", digits)
    patch.setattr(selectors, "STG_EPOCHS", 1)
    patch.setattr(selectors, "LASSONET_K", 60)
    return selectors.coil20(run)


def _sweep(case: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    def options() -> dict[str, Any]:
        return original() | {
            "data": (np.random.default_rng(0).standard_normal((64, 24), np.float32), None),
            "split": fsjax.data.Split(np.arange(64), np.arange(0), np.arange(0)),
            "num_epochs": 1,
        }

    original = sweep.options
    patch.setattr(sweep, "options", options)
    patch.setattr(sweep, "SEEDS", (0,))
    patch.setattr(sweep, "LAUNCHES", 1)
    return getattr(sweep, case)()


def _text(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    small = functools.partial(text.text_like, 200, 300, 10, 4)
    patch.setattr(text, "text_like", small)
    patch.setattr(text, "INFORMATIVE", 4)
    return text.train("fisher_score", 1)


def _nerva(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    original_epoch = topology._epoch
    patch.setattr(
        topology,
        "_epoch",
        lambda method, rows, columns, *others: original_epoch(method, 200, 24, *others),
    )
    return topology.nerva_epoch("topology")


#: Benchmarks, with sizes that take only a moment.
BENCHMARKS: dict[str, Callable[[pytest.MonkeyPatch], dict[str, Any]]] = {
    "checkpoints": _checkpoints,
    "concrete, training": lambda _: concrete.training(
        "batch", 1, epochs=1, batch=8, rows=32, columns=64
    ),
    "concrete, parts": _concrete_parts,
    "concrete, torch": _concrete_step,
    "costs": lambda _: costs.step("wast"),
    "lassonet": functools.partial(_coil20, selectors.lassonet),
    "stg": functools.partial(_coil20, functools.partial(selectors.stg, 1)),
    "estimators": lambda _: selectors.first_and_second_fit(),
    "sparse, wast": lambda _: sparse.wast(64, 16, 1),
    "sparse, changes": lambda _: sparse.changes(16, 8, 0.2),
    "sparse, forms": lambda _: sparse.forms(16, 8, 0.2),
    "sparse, cosines": lambda _: sparse.cosines(),
    "sweep": functools.partial(_sweep, "swept"),
    "sweep, alone": functools.partial(_sweep, "alone"),
    "sweep, launches": functools.partial(_sweep, "launched"),
    "text": _text,
    "topology, SET": lambda _: topology.set_epoch(8, 2),
    "topology, Nerva": _nerva,
} | {
    f"growth, {method}": lambda _, method=method: growth.cost(
        method, {"D": 16, "N": 64, "K": 4, "hidden": 8, "seeds": 2}
    )._asdict()
    for method in growth.METHODS
}

#: The others compile much or start processes.
FAST = ("checkpoints", "growth, wast", "sparse, wast", "sweep, alone", "text")


@slow_ids("checkpoints", "growth, wast", "sparse, wast", "sweep, alone")
@pytest.mark.parametrize("name", some_long(BENCHMARKS, {*BENCHMARKS} - {*FAST}))
def test_every_benchmark_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Repeated measurements draw the same numbers.
    with jax.debug_key_reuse(False):
        measured = BENCHMARKS[name](monkeypatch)
    numbers = [value for value in measured.values() if isinstance(value, float)]
    assert numbers and np.isfinite(numbers).all()


def test_no_launcher_is_forgotten() -> None:
    folder = ROOT / "experiments"
    launchers = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in folder.rglob("*.py")
        if 'if __name__ == "__main__":' in path.read_text()
    }
    assert launchers == set(LAUNCHERS) | set(OF_PROCESSES)
