"""What the README shows runs, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import fsjax

README = Path(__file__).parents[1] / "README.md"


def test_python_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    result = names["result"]
    assert isinstance(result, fsjax.FitResult)
    assert result.selected.shape == (5, 10)
    assert result.selection_frequency.shape == (64,)


def test_named_files_and_methods_exist() -> None:
    text = README.read_text()
    for path in re.findall(r"`?((?:configs|experiments|fsjax|tests)/[\w/]+\.py)", text):
        assert (README.parent / path).is_file(), path
    for module in re.findall(r"python -m (experiments\.\w+)", text):
        assert (README.parent / f"{module.replace('.', '/')}.py").is_file(), module
    for name in fsjax.methods.METHODS:
        assert f"fsjax.methods.{name}" in text
