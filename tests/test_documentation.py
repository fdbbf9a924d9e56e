"""What README, pages, tutorials, examples and docstrings show runs, and what they name exists."""

from __future__ import annotations

import doctest
import re
import runpy
import tomllib
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest
from marks import slow_ids

import fsjax
from experiments.launch.config import load_config
from experiments.launch.sweep import read_grid
from fsjax.estimators import ESTIMATORS
from tools.api_examples import BLOCK, examples, preamble, shown_by
from tools.public_api import documented, lookup

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN = [page for page in PAGES if BLOCK.search(page.read_text())]
TUTORIALS = [page for page in RUN if page.parent.name == "tutorials"]
#: A block that is a file, which later blocks import, on a page and in a tutorial.
SAVED = re.compile(r"Save this as\s`(\w+\.py)`[^`]*\Z")
WRITTEN = re.compile(r"\A%%writefile (\w+\.py)\n")
#: Addresses of the repository's files, as pages and as they are.
FILES = "https://github.com/fsjax/fsjax/blob/main/"
PICTURES = "https://raw.githubusercontent.com/fsjax/fsjax/main/"


def id_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(forget_registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, whose modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    matplotlib.use("Agg")
    return tmp_path


# Pages that take longer than some seconds: nearly all.
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] * (page in TUTORIALS)) for page in RUN],
    ids=id_of,
)
def test_blocks_run(page: Path, folder: Path) -> None:
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        code = re.sub(r"\A---\n.*?^---\n|\A(:.*\n)+", "", block[1], flags=re.DOTALL | re.MULTILINE)
        file = SAVED.search(text[: block.start()]) or WRITTEN.match(code)
        if file:
            (folder / file[1]).write_text(WRITTEN.sub("", code))
            continue
        # Blank lines before the block, so that an error tells its line of the page.
        above = "\n" * text.count("\n", 0, block.start(1))
        code = re.sub("^%matplotlib inline$", "", code, flags=re.MULTILINE)
        exec(compile(above + code, str(page), "exec"), names)


@pytest.mark.long
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=id_of)
def test_example_runs_as_a_script(script: Path, folder: Path) -> None:
    runpy.run_path(str(script), run_name="__main__")


class _Checker(doctest.OutputChecker):
    """Compares the output where an example shows it."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


@slow_ids("fsjax.Progress", "fsjax.evaluation.retrain_metrics", "fsjax.export", "fsjax.fit*")
@slow_ids("fsjax.estimators.AutoSelector", "fsjax.estimators.load", "fsjax.register", "fsjax.save")
@slow_ids("fsjax.report.*", "fsjax.select", "fsjax.sweep", "fsjax.sparsity", "fsjax.sparsity.Layer")
@slow_ids("fsjax.sparsity.*ste", "*.check_rule", "fsjax.sparsity.compress", "fsjax.sparsity.grasp")
@slow_ids("fsjax.sparsity.brain_surgeon", "fsjax.sparsity.degrees")
@pytest.mark.parametrize("name", examples())
def test_examples_of_docstrings_run(name: str, folder: Path) -> None:
    test = examples()[name]
    test.globs["__name__"] = "__main__"
    exec(preamble(), test.globs)
    said: list[str] = []
    doctest.DocTestRunner(_Checker(), verbose=False).run(test, out=said.append, clear_globs=True)
    assert not said, "".join(said)


def test_every_public_name_has_an_example() -> None:
    generated = {f"fsjax.estimators.{estimator.__name__}" for estimator in ESTIMATORS.values()}
    generated |= {f"fsjax.methods.{name}" for name in fsjax.methods.METHODS}
    names = {name for name in documented() if not isinstance(lookup(name), ModuleType)}
    assert not [name for name in sorted(names - generated) if shown_by(name) is None]


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_named_files_and_modules_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"(?:configs|experiments|examples|fsjax|tests)/[\w/]+\.py", text):
        assert (ROOT / path).is_file(), path
    for module in re.findall(r"python -m (experiments(?:\.\w+)+)", text):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module


def test_tables_and_numbers_are_those_of_their_sources() -> None:
    for page, text in runpy.run_path(str(DOCS / "make_tables.py"))["tables"]().items():
        assert page.read_text() == text, f"{page.name}: run python docs/make_tables.py"


def test_every_example_and_tutorial_has_a_page() -> None:
    gallery = DOCS / "examples"
    for example in (ROOT / "examples").glob("*.py"):
        assert f":link: {example.stem}\n" in (gallery / "index.md").read_text(), example.stem
        for file in (
            f"{example.stem}.md",
            f"output/{example.stem}.png",
            f"output/{example.stem}.txt",
        ):
            assert (gallery / file).is_file(), file
    for page in TUTORIALS:
        assert f":link: {page.stem}\n" in (DOCS / "tutorials" / "index.md").read_text(), page.stem


def test_sweeps_of_the_papers_ablations_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "reproducing.md").read_text()
    commands = re.findall(r"`--config=(\S+) ((?:--sweep=\S+ ?)+)`", text)
    assert commands
    monkeypatch.chdir(ROOT)
    for config, flags in commands:
        sweeps = [flag.removeprefix("--sweep=") for flag in flags.split()]
        grid = read_grid(load_config(config), sweeps)
        assert all(len(values) > 1 for values in grid.values()), config


@pytest.mark.parametrize(
    ("page", "start", "trait"),
    [
        ("choosing", "K then counts groups", "takes_groups"),
        ("faq", "selected as a group?", "takes_groups"),
        ("coming-from", "n_features_to_select=None", "gates"),
        ("first-steps", "keeps half of them", "gates"),
        ("glossary", "A column whose gate is 0", "gates"),
    ],
)
def test_pages_name_all_methods_with_a_trait(page: str, start: str, trait: str) -> None:
    sentence = (DOCS / f"{page}.md").read_text().split(start)[1][:300]
    for name, estimator in ESTIMATORS.items():
        if getattr(fsjax.methods.METHODS[name]().about, trait):
            assert f"`{estimator.__name__}`" in sentence, estimator.__name__


def test_links_of_the_readme_work_outside_of_the_repository() -> None:
    text = (ROOT / "README.md").read_text()
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    for target in [address["Documentation"], *re.findall(r"\]\(([^)]+)\)", text)]:
        assert target.startswith((FILES, PICTURES)), f"not an absolute address: {target}"
        file = target.removeprefix(FILES).removeprefix(PICTURES).partition("#")[0]
        assert (ROOT / file).is_file(), target


def test_the_readme_names_and_counts_the_methods() -> None:
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `fsjax\.methods\.(\w+)` \| (.*?) \|", text, flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(fsjax.methods.METHODS)
    controls = sum(paper == "control" for _, paper in rows)
    numbers = re.search(r"(\d+)\s+published\s+methods\s+and\s+(\w+)\s+controls", text)
    assert numbers is not None
    assert (int(numbers[1]), numbers[2]) == (len(rows) - controls, "four") and controls == 4
