"""What the README shows runs, and the files it names exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import optax
import pytest
from sklearn.pipeline import Pipeline

import fsjax

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()

#: Addresses of the repository's files, as pages and as they are.
FILES = "https://github.com/fsjax/fsjax/blob/main/"
PICTURES = "https://raw.githubusercontent.com/fsjax/fsjax/main/"


@pytest.mark.slow
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


def test_links_and_pictures_work_outside_of_the_repository() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(targets) > 10
    for target in targets:
        assert target.startswith((FILES, PICTURES)), f"not an absolute address: {target}"
        assert _file(target).is_file(), target
    (picture,) = re.findall(r"!\[[^]]*\]\(([^)]+)\)", TEXT)
    assert picture.startswith(PICTURES)  # the other addresses are pages about files


def test_the_documentation_that_is_linked_reads_well_as_plain_markdown() -> None:
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert f"({address['Documentation']})" in TEXT
    page = _file(address["Documentation"])
    text = page.read_text()
    assert not re.search(r"^\s*(:::|`{3,}\{|---$)|\{\w+\}`", text, flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (page.parent / target).is_file(), target


@pytest.mark.parametrize("page", ["README.md", "docs/first-steps.md"])
def test_what_installs_today_comes_first(page: str) -> None:
    text = (ROOT / page).read_text()
    clone = text.index("git clone https://github.com/fsjax/fsjax")
    assert clone < text.index("pip install -e") < text.index("pip install fsjax")
    assert "Once a version is" in text[clone : text.index("pip install fsjax")]


def _file(address: str) -> Path:
    """The file of this repository at an address on GitHub."""
    return ROOT / address.removeprefix(FILES).removeprefix(PICTURES).partition("#")[0]


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
