"""Two and three processes give the result of one, and resume from each other's checkpoints.

Covers ``fsjax.storage.checkpoints``.
"""

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


@pytest.mark.slow
def test_two_processes_then_one_is_lost_then_three_go_on(folder: Path) -> None:
    alone, first = wast(), workers(2, folder, "whole", "split", "killed")
    assert_same_bits(fsjax.load(folder / "whole.npz"), alone)

    # A batch that is split over two processes.
    split, single = fsjax.load(folder / "split.npz"), one_batch(1)
    for name, values in single.history.items():
        np.testing.assert_allclose(split.history[name], values, atol=1e-5, err_msg=name)

    # The survivor ends as well: with what its collective reports, or as JAX's service aborts it.
    survivor, victim = first
    assert survivor.code in (1, -6) and victim.code == -9
    if survivor.code == 1:
        assert "another process was lost. The same command" in survivor.err
        assert "resumes from the newest checkpoint" in survivor.err

    second = workers(3, folder, "resumed", "other_data")
    assert (folder / "trained.txt").read_text() == "5"
    assert_same_bits(fsjax.load(folder / "resumed.npz"), alone)

    # All processes refuse to train if the last one has other rows.
    for process in second:
        assert process.code == 1
        assert "the data of process 2 is not that of process 0" in process.err
