"""Whatever operation on the disk fails: one error that names a file, and then the same results."""

from __future__ import annotations

import errno
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from quick_configs import quick

from configs import wast
from experiments.launch import checksums
from experiments.launch.experiment import run_experiment
from tools.chaos.failing_disk import failing_disk
from tools.chaos.pictures import plain_pictures

#: Of an operation to the next one that is tried, in the ordinary tests.
STRIDE = 31


def config() -> Any:
    """Two epochs with a checkpoint after each."""
    config = quick(wast, checkpoint_every=1)
    config.train.num_epochs, config.seeds = 2, (1,)
    config.method.hidden = (8,)
    return config


def outcome(folder: Path) -> dict[str, Any]:
    """What must be equal, of a whole folder."""
    assert checksums.damaged(folder) == []
    result = json.loads((folder / "result.json").read_text())
    del result["cost"]
    return {"metrics.csv": (folder / "metrics.csv").read_text(), **result}


@pytest.fixture(scope="module", autouse=True)
def written_not_drawn() -> Iterator[None]:
    with plain_pictures():
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """The undisturbed outcome, and the number of operations that it took."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with failing_disk(folder, None) as counter:
        run_experiment(config(), folder, progress=False)
    return outcome(folder), counter.count


def try_all(numbers: range, code: int, expected: dict[str, Any], folder: Path) -> int:
    """Lets each of these operations fail, and runs again; how many of them were noticed."""
    noticed = 0
    for number in numbers:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with failing_disk(folder, number, code) as counter:
                run_experiment(config(), folder, progress=False)
        except OSError as error:
            assert error.errno in (code, errno.EIO) and error.filename, (number, error)
            noticed += 1
        assert counter.count >= number
        with warnings.catch_warnings():
            # A checkpoint that is not whole is passed over, and said so.
            warnings.simplefilter("ignore")
            run_experiment(config(), folder, progress=False)
        assert outcome(folder) == expected, number
        assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]
    return noticed


def test_some_operations_fail(undisturbed: tuple[dict[str, Any], int], tmp_path: Path) -> None:
    expected, count = undisturbed
    assert count > 60
    numbers = range(1, count + 1, STRIDE)
    assert try_all(numbers, errno.ENOSPC, expected, tmp_path / "run") > len(numbers) / 2


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_every_operation_fails(
    code: int, undisturbed: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    expected, count = undisturbed
    assert try_all(range(1, count + 1), code, expected, tmp_path / "run") > count / 2
