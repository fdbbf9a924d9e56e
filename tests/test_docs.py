"""What the documentation shows runs, and it names every method."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import matplotlib
import pytest
from marks import slow_ids

import fsjax
from experiments.launch.config import load_config
from experiments.launch.sweep import read_grid

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
#: A block that is a file, which later blocks import.
SAVED = re.compile(r"Save this as\s`(\w+\.py)`[^`]*\Z")
PAGES = [
    str(page.relative_to(DOCS))
    for page in sorted(DOCS.rglob("*.md"))
    if BLOCK.search(page.read_text())
]
#: Pages that take longer than 5 seconds; ``make test-all`` runs them.
LONG = (
    "faq.md",
    "first-steps.md",
    "methods/ctre.md",
    "methods/rivals.md",
    "methods/sparse.md",
    "methods/wast.md",
    "own-task.md",
    "own-training.md",
    "selecting.md",
    "sparse-training/after-training.md",
    "sparse-training/before-training.md",
    "sparse-training/moving.md",
    "stability.md",
    "targets.md",
    "writing-a-method.md",
    "writing-a-rule.md",
)


@slow_ids(
    "choosing.md",
    "coming-from.md",
    "index.md",
    "large-data.md",
    "methods/baselines.md",
    "methods/concrete.md",
    "methods/gates.md",
    "methods/lassonet.md",
    "methods/probmask.md",
    "methods/unsupervised.md",
    "sparse-training/frameworks.md",
    "sparse-training/index.md",
    "sparse-training/learned-masks.md",
    "sparse-training/pruning.md",
)
@slow_ids(*LONG)
@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    page = DOCS / name
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.syspath_prepend(tmp_path)
    for block in BLOCK.finditer(text):
        if saved := SAVED.search(text[: block.start()]):
            (tmp_path / saved[1]).write_text(block[1])
            continue
        # Blank lines before the block, so that an error tells its line of the page.
        above = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(above + block[1], str(page), "exec"), names)


def test_tables_and_numbers_are_those_of_their_sources() -> None:
    make_tables = runpy.run_path(str(DOCS / "make_tables.py"))
    for page, text in make_tables["tables"]().items():
        assert page.read_text() == text, f"{page.name}: run python docs/make_tables.py"


def test_the_answers_on_which_method_to_use_agree() -> None:
    choosing = (DOCS / "choosing.md").read_text()
    answer = (
        (DOCS / "faq.md").read_text().split("### Which method should I use?")[1].split("###")[0]
    )
    for case in (
        r"\*\*You predict classes\*\*: begin with `(\w+)`",
        r"have time for a network\*\*: `(\w+)`",
        r"\*\*You have no labels\*\*: `(\w+)` or `(\w+)`",
    ):
        names = re.search(case, choosing)
        assert names is not None, case
        for name in names.groups():
            assert f"`{name}`" in answer, f"docs/faq.md does not name {name}, as choosing.md does"
            answer = answer.partition(f"`{name}`")[2]  # in the same order
    assert not re.search("`[A-Z]", answer), "docs/faq.md names a method that choosing.md does not"


def test_every_example_has_a_page() -> None:
    gallery = DOCS / "examples"
    cards = (gallery / "index.md").read_text()
    for example in (DOCS.parent / "examples").glob("*.py"):
        assert (gallery / f"{example.stem}.md").is_file(), example.stem
        assert f":link: {example.stem}\n" in cards, example.stem
        for kind in ("png", "txt"):  # written by docs/make_examples.py
            assert (gallery / "output" / f"{example.stem}.{kind}").is_file(), example.stem


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "api" / "fsjax.md").read_text()
    for name in fsjax.__all__:
        if not inspect.ismodule(getattr(fsjax, name)):
            assert re.search(rf":: (fsjax\.)?{name}$", page, flags=re.MULTILINE), name


def test_named_files_exist() -> None:
    root = DOCS.parent
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    for path in re.findall(r"(?:configs|experiments|examples|fsjax|tests)/[\w/]+\.py", text):
        assert (root / path).is_file(), path
    for module in re.findall(r"python -m (experiments(?:\.\w+)+)", text):
        assert (root / f"{module.replace('.', '/')}.py").is_file(), module


def test_sweeps_of_the_papers_ablations_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "reproducing.md").read_text()
    found = re.findall(r"`--config=(\S+) ((?:--sweep=\S+ ?)+)`", text)
    assert found
    monkeypatch.chdir(DOCS.parent)
    for config, flags in found:
        sweeps = [one.removeprefix("--sweep=") for one in flags.split()]
        grid = read_grid(load_config(config), sweeps)
        assert all(len(values) > 1 for values in grid.values()), config
