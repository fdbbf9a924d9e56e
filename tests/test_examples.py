"""The examples run as they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_sparse_cnn(capsys: pytest.CaptureFixture[str]) -> None:
    results = load("sparse_cnn").main(epochs=8)
    accuracy, zeros = results["dense"]
    assert accuracy > 0.9 and zeros == 0
    accuracy, zeros = results["RigL"]
    assert accuracy > 0.7 and zeros >= 0.8 - 1e-3
    assert "RigL   accuracy" in capsys.readouterr().out


def test_sparse_cnn_marks_its_few_added_lines() -> None:
    text = (EXAMPLES / "sparse_cnn.py").read_text()
    assert sum(line.endswith("  # sparse") for line in text.splitlines()) == 3


@pytest.mark.slow
def test_binmask_cnn() -> None:
    example = load("binmask_cnn")
    accuracy, closed = example.train(1e-4, epochs=10)
    assert accuracy > 0.85
    assert sorted(closed) == ["Conv_0/kernel", "Conv_1/kernel", "Dense_0/kernel"]
    assert closed["Dense_0/kernel"] > 0.3


@pytest.mark.slow
def test_pixels_of_digits(tmp_path: Path) -> None:
    accuracy = load("digits_pixels").main(n_seeds=2, num_epochs=15, out=tmp_path / "a.png")
    assert accuracy["all"] > accuracy["selected"] > accuracy["random"] + 0.05
    assert (tmp_path / "a.png").exists()


@pytest.mark.slow
def test_informative_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("informative_columns")
    results = example.main(num_columns=100, num_epochs=60, out=tmp_path / "a.png")
    assert len(results["STG"]["found"]) > len(results["Fisher score"]["found"])
    for found in results.values():
        assert len(found["found"]) + len(found["wrong"]) == 5
        assert len(found["found"]) + len(found["missed"]) == 5
    assert "missed" in capsys.readouterr().out
