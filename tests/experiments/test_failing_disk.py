"""Each disk operation fails once: an error names the file, and a new run gives the same result."""

from __future__ import annotations

import errno
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from failing_disk import failing_disk
from quick_configs import quick

from configs import wast
from experiments.launch import checksums
from experiments.launch.experiment import run_experiment
from tools.chaos.launcher import plain_pictures

#: The step between tested operations in the ordinary tests.
STRIDE = 31


def config() -> Any:
    """Two epochs with a checkpoint after each."""
    config = quick(wast, checkpoint_every=1)
    config.train.num_epochs, config.seeds = 2, (1,)
    config.method.hidden = (8,)
    return config


def outcome(folder: Path) -> dict[str, Any]:
    """The contents of a folder that must be equal."""
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
    """Lets each operation fail and runs again; returns the number of reported failures."""
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
            # An incomplete checkpoint is skipped with a warning.
            warnings.simplefilter("ignore")
            run_experiment(config(), folder, progress=False)
        assert outcome(folder) == expected, number
        assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]
    return noticed


@pytest.mark.slow
def test_some_operations_fail(undisturbed: tuple[dict[str, Any], int], tmp_path: Path) -> None:
    expected, count = undisturbed
    assert count > 60
    numbers = range(1, count + 1, STRIDE)
    assert try_all(numbers, errno.ENOSPC, expected, tmp_path / "run") > len(numbers) / 2


@pytest.mark.long
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_every_operation_fails(
    code: int, undisturbed: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    expected, count = undisturbed
    assert try_all(range(1, count + 1), code, expected, tmp_path / "run") > count / 2
