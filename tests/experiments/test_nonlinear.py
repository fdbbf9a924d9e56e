"""The experiment on columns that matter in pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.studies import nonlinear
from fsjax.data import ring_xor_sum


def test_best_k_counts_true_columns_on_rows_of_the_paper() -> None:
    seen = []

    def first_true(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
        seen.append((X.shape, X.min() < -0.9, X.max() > 0.9, len(y)))
        true = ring_xor_sum(1000, 12, "ring", seed).informative
        others = np.setdiff1d(np.arange(12), true)
        return np.array([true[0], others[0]])

    assert nonlinear.best_k(first_true, "ring", 12, 2) == 0.5
    assert seen == [((833, 12), True, True, 833)] * 2


def test_rows_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, measured = tmp_path / "table.md", []

    def measure(rule: str, columns: int, seeds: int) -> dict[str, str]:
        measured.append((rule, columns, seeds))
        return {"rule": f"{rule}, {columns}", "forest": "1.00", "published": ""}

    monkeypatch.setattr(nonlinear, "measure", measure)
    nonlinear.run([("ring", 32)], out, 3)
    table = nonlinear.run([("ring", 32), ("xor", 64)], out, 3)
    assert measured == [("ring", 32, 3), ("xor", 64, 3)]
    assert table["rule"].tolist() == ["ring, 32", "xor, 64"]
