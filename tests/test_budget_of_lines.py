"""A budget of lines for each wing: whoever raises a number here has decided that it is worth it."""

from __future__ import annotations

import pytest

from tools.architecture import ROOT

#: Lines of ``.py`` files, docstrings and blank lines included, that each wing may have.
BUDGETS = {
    "fsjax/auto": 13_000,
    "fsjax/sparsity": 6_100,
    "the core": 29_000,
    "experiments": 13_700,
    "tools": 2_000,
    "tests": 34_750,
}

#: Folders of ``fsjax`` with a budget of their own; the core is the rest.
WINGS = ("fsjax/auto", "fsjax/sparsity")

#: Most entries on the first level of ``fsjax``.
MAX_ENTRIES = 23

#: Most modules of the wing ``fsjax/sparsity``.
MAX_SPARSITY_MODULES = 33


def lines(folder: str) -> int:
    return sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")
    )


@pytest.mark.parametrize("wing", BUDGETS)
def test_a_wing_stays_within_its_budget(wing: str) -> None:
    count = lines("fsjax") - sum(map(lines, WINGS)) if wing == "the core" else lines(wing)
    assert 0 < count <= BUDGETS[wing], "remove something, or decide to raise the budget"


def test_the_first_level_stays_short() -> None:
    entries = {path.name for path in (ROOT / "fsjax").iterdir()} - {"__pycache__"}
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


def test_the_sparsity_wing_stays_small() -> None:
    assert 0 < len(list((ROOT / "fsjax/sparsity").rglob("*.py"))) <= MAX_SPARSITY_MODULES
