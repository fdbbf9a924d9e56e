"""A small fixed part of ``make fuzz``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tools.fuzz import data_files, outcomes, saved_files

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("attempt", "numbers"),
    [(data_files.attempt, range(0, 65, 2)), (saved_files.damaged_attempt, range(0, 60, 3))],
)
@pytest.mark.filterwarnings("ignore")
def test_a_part_of_all_tries(attempt: Callable[[int, int], Any], numbers: range) -> None:
    made = [(number, *attempt(number, 1)) for number in numbers]
    assert not [outcome for outcome in made if outcome[1] in outcomes.FORBIDDEN]
    assert sum(outcome[1] == outcomes.CLEAR for outcome in made) > len(made) / 2


def test_undamaged_files_are_right() -> None:
    for form in data_files.FORMS:
        judged = data_files._judge(form, data_files._read(form, form.data))
        assert judged == (outcomes.RIGHT, form.name)
