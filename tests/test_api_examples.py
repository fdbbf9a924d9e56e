"""Every public name has an example on the API pages, and the examples run."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest
from marks import slow_ids

import fsjax
from tools.api_examples import FILE, Example, examples, preamble
from tools.public_api import documented, lookup

EXAMPLES = examples()
DISTINCT = {example.names[0]: example for example in EXAMPLES.values()}


def test_every_public_name_has_an_example() -> None:
    names = {name for name in documented() if not isinstance(lookup(name), ModuleType)}
    assert names - set(EXAMPLES) == set(), "add them to docs/api/examples.toml"
    assert {name for name in EXAMPLES if not name.startswith("fsjax.estimators.")} <= names


def test_examples_of_functions_call_them() -> None:
    for name, example in EXAMPLES.items():
        if inspect.isfunction(lookup(name)):
            assert name.split(".")[-1] in example.code, name


def test_the_index_shows_the_preamble() -> None:
    assert f"```python\n{preamble()}```" in (FILE.parent / "index.md").read_text()


@slow_ids(
    "fsjax.Method",
    "fsjax.estimators.AutoSelector",
    "fsjax.fit",
    "fsjax.fit_sizes",
    "fsjax.fit_subsamples",
    "fsjax.report.path_of",
    "fsjax.report.plot_curves",
    "fsjax.select",
    "fsjax.sweep",
)
@pytest.mark.parametrize("name", [name for name in DISTINCT if DISTINCT[name].runs])
def test_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(preamble() + DISTINCT[name].code, names)


@pytest.mark.parametrize("name", [name for name in DISTINCT if not DISTINCT[name].runs])
def test_other_examples_are_accepted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of the library's methods are checked without training."""
    example: Example = DISTINCT[name]
    compile(example.code, name, "exec")
    if name.startswith("fsjax.methods."):
        names: dict[str, object] = {}
        exec(preamble(), names)
        monkeypatch.setattr(fsjax, "fit", fsjax.plan)
        exec(example.code.split("\n")[0], names)
    elif name.startswith("fsjax.estimators."):
        exec(example.code.split("\n")[0], {"fsjax": fsjax})
