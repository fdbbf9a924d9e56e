"""The list of stages and their shares of the budget."""

import numpy as np
import pytest

from fsjax.auto.contest import schedule


def test_the_list_has_every_stage_once():
    stages = [value for value in vars(schedule).values() if isinstance(value, schedule.Stage)]
    assert sorted(stages) == sorted(schedule.STAGES)
    assert len({stage.work for stage in stages}) == len(stages)
    assert all(0 < stage.share <= 1 for stage in stages)


@pytest.mark.parametrize(
    ("after", "usable", "share"),
    [(0.0, 100.0, 0.85), (20.0, 100.0, 0.7), (60.0, 100.0, 0.5), (60.0, np.inf, 0.85)],
)
def test_networks_leave_time_for_decoys_and_halves(after, usable, share):
    assert schedule.share_of_networks(after, usable) == pytest.approx(share)
