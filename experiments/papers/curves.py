"""Cells that compare the curves of several runs: CTRE's training delay, IP-CAE's speed-up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.artifacts.statistics.comparison import training_delay
from experiments.launch.run_folder import recorded_accuracy
from experiments.papers.cells import Cell, Run, run_of
from fsjax.errors import ConfigError

#: The methods whose runs a cell needs, by metric; they include the cell's own method.
COMPARED = {
    # Table 6 of CTRE: relative to the best of them.
    "training_delay_pct": ("set", "snip", "rigl", "ctre_sim", "ctre_seq"),
    # Table 3 of IP-CAE: relative to CAE.
    "speedup": ("cae", "ip_cae"),
}


def compared_with(cell: Cell) -> dict[str, Run]:
    """The runs that a cell compares, by method; empty for a cell of a single run."""
    methods = COMPARED.get(cell.row.metric, ())
    return {
        method: run_of(cell._replace(row=cell.row._replace(method=method))) for method in methods
    }


def compared_values(cell: Cell, finished: Mapping[Run, Mapping[str, Any]]) -> list[float] | None:
    """The values of a cell that compares runs, for the seeds that have one.

    Returns ``None`` if a run is not finished or no seed has a value.
    """
    folders = {}
    for method, run in compared_with(cell).items():
        if run not in finished:
            return None
        folders[method] = Path(finished[run]["folder"])
    of_metric = _delays if cell.row.metric == "training_delay_pct" else _speedups
    return [float(value) for value in of_metric(cell, folders) if np.isfinite(value)] or None


def _delays(cell: Cell, folders: Mapping[str, Path]) -> np.ndarray:
    curves = {method: _accuracy(folder) for method, folder in folders.items()}
    best = max(float(np.nanmax(curve.mean(axis=0))) for curve in curves.values())
    return training_delay(curves[cell.row.method], best, cell.row.options["th"])


def _accuracy(folder: Path) -> np.ndarray:
    accuracy = recorded_accuracy(folder)
    if accuracy is None:
        raise ConfigError(
            f"{folder} has no accuracy after each epoch; delete the folder and run it again"
        )
    return accuracy


def _speedups(cell: Cell, folders: Mapping[str, Path]) -> np.ndarray:
    """All epochs divided by those that a seed needs to surpass CAE's mean value at the end.

    The value is the accuracy or the loss on the validation rows; NaN for a seed that never does.
    """
    metric = "accuracy" if run_of(cell).task == "classification" else "loss"
    sign = 1.0 if metric == "accuracy" else -1.0
    cae, method = (sign * _validation(folders[name], metric) for name in ("cae", cell.row.method))
    better = method > cae[:, -1].mean()
    first = np.where(better.any(axis=1), better.argmax(axis=1) + 1, np.nan)
    return cae.shape[1] / first


def _validation(folder: Path, metric: str) -> np.ndarray:
    """``(S, E)``: a metric on the validation rows after each epoch."""
    table = pd.read_csv(folder / "metrics.csv")
    table = table[(table["split"] == "valid") & (table["metric"] == metric)]
    return table.pivot(index="seed", columns="epoch", values="value").to_numpy(float)
