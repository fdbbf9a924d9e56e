"""Two and three processes give what one gives, and go on from each other's checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from processes import workers
from worker import one_batch, wast

import fsjax


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("processes")


def assert_same_bits(found: fsjax.FitResult, wanted: fsjax.FitResult) -> None:
    for name in ("selected", "scores", "best_epoch"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for part in ("history", "metrics"):
        assert getattr(found, part).keys() == getattr(wanted, part).keys()
        for name, values in getattr(wanted, part).items():
            np.testing.assert_array_equal(getattr(found, part)[name], values, err_msg=name)


def test_two_processes_then_one_is_lost_then_three_go_on(folder: Path) -> None:
    alone, first = wast(), workers(2, folder, "whole", "split", "killed")
    assert_same_bits(fsjax.load(folder / "whole.npz"), alone)

    # A batch over two processes.
    split, single = fsjax.load(folder / "split.npz"), one_batch(1)
    for name, values in single.history.items():
        np.testing.assert_allclose(split.history[name], values, atol=1e-5, err_msg=name)

    # The survivor says who is lost, and what to do.
    assert [one.code for one in first] == [75, -9]
    assert first[0].err.count("error: ") == 1
    assert "process 1 of 2 is lost" in first[0].err
    assert "goes on from the newest checkpoint" in first[0].err

    second = workers(3, folder, "resumed", "other_data")
    assert (folder / "trained.txt").read_text() == "5"
    assert_same_bits(fsjax.load(folder / "resumed.npz"), alone)

    # All is refused once the last process has other rows, and process 0 says so.
    assert [one.code for one in second] == [2, 2, 2]
    assert "the data of process 2 is not that of process 0" in second[0].err
