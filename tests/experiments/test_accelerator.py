"""The measurements of an accelerator: what agrees, and what resumes.

Covers ``experiments.benchmarks.accelerator``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.benchmarks.accelerator import agreement
from experiments.benchmarks.accelerator.pieces import append, finished

SAME = np.tile(np.arange(5), (3, 1))


def write(folder: Path, name: str, selected: np.ndarray) -> None:
    folder.mkdir(exist_ok=True)
    scores = np.zeros((3, 30))
    np.put_along_axis(scores, selected, np.arange(5.0, 0.0, -1.0)[None], axis=1)
    np.savez(folder / f"{name}.npz", scores=scores, selected=selected)


@pytest.mark.parametrize(
    ("there", "control", "agrees"), [(0, 0, 1), (1, 0, 1), (2, 0, 0), (2, 1, 1)]
)
def test_a_method_agrees_if_rounding_changes_as_much(
    there: int, control: int, agrees: int, tmp_path: Path
) -> None:
    # ``there`` and ``control`` other columns per seed.
    write(tmp_path / "cpu", "m", SAME)
    write(tmp_path / "cpu", "m-control", SAME + control)
    assert agreement.compare("m", tmp_path / "cpu", tmp_path / "gpu") is None
    write(tmp_path / "gpu", "m", SAME + there)
    values = agreement.compare("m", tmp_path / "cpu", tmp_path / "gpu")
    assert values is not None
    assert (values["common"], values["agrees"]) == (15 - 3 * there, agrees)
    assert (values["rank_correlation"] > 0.999) == (there == 0)


def test_pieces_of_this_device_without_errors_are_finished(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    assert finished(rows, "a") == set()
    append(rows, "step/x, 1 seeds", {"ms_per_step": 0.123456, "forms": "dense, dense"}, "a")
    append(rows, "step/y, 1 seeds", {"error": 'ValueError: "no"'}, "a")
    append(rows, "step/z, 1 seeds", {"ms_per_step": 1.0}, "b")
    assert finished(rows, "a") == {"step/x, 1 seeds"}
