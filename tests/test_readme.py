"""What the README shows runs, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import optax
from sklearn.pipeline import Pipeline

import fsjax

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_python_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    pipeline = names["pipeline"]
    assert isinstance(pipeline, Pipeline)
    assert pipeline[0].get_support().sum() == 10
    params = names["params"]
    assert isinstance(params, dict)
    assert (params["kernel"] != 0).sum() == 64
    assert isinstance(names["tx"], optax.GradientTransformation)


def test_named_files_exist() -> None:
    for path in re.findall(r"(?:configs|experiments|fsjax|tests)/[\w/]+\.py", TEXT):
        assert (ROOT / path).is_file(), path
    for module in re.findall(r"python -m (experiments\.\w+)", TEXT):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert links
    for path in links:
        assert (ROOT / path).is_file(), path


def test_every_method_is_named() -> None:
    for name in fsjax.methods.METHODS:
        assert f"fsjax.methods.{name}" in TEXT, name


def test_counts_of_methods_are_right() -> None:
    rows = re.findall(r"^\| `fsjax\.methods\.\w+` \| (.*?) \|", TEXT, flags=re.MULTILINE)
    controls = sum(paper == "control" for paper in rows)
    numbers = re.search(r"(\d+)\s+published\s+methods\s+and\s+(\w+)\s+controls", TEXT)
    assert numbers is not None
    assert (int(numbers[1]), numbers[2]) == (len(rows) - controls, "four") and controls == 4


def test_it_is_read_in_minutes() -> None:
    assert TEXT.count("\n") <= 120
