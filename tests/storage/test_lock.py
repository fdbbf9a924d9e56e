"""Folders that one thread of one process works in at a time."""

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import fsjax
from fsjax.errors import ConfigError
from fsjax.storage.file_lock import NAME, exclusive

HOLD = """
import sys, time
from fsjax.storage.file_lock import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_another_process_is_kept_out_until_the_holder_dies(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        try:
            message = "in use by another process, or another thread of this one; wait"
            with pytest.raises(ConfigError, match=message), exclusive(folder):
                pass
            # By another name for the same folder, too.
            (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
            with pytest.raises(ConfigError, match=message), exclusive(tmp_path / "link" / "run"):
                pass
            X, y = np.random.default_rng(0).normal(size=(60, 3)), np.resize([0, 1], 60)
            with pytest.raises(ConfigError, match="in use"):
                fsjax.select(X, y, workdir=folder)
            with exclusive(tmp_path / "other"):
                pass
        finally:
            other.send_signal(signal.SIGKILL)
    assert (folder / NAME).exists()
    with exclusive(folder):
        pass
    assert list(folder.iterdir()) == []


def test_the_holder_may_ask_again_and_gives_it_back(tmp_path: Path) -> None:
    with exclusive(tmp_path), exclusive(tmp_path / "."):
        pass
    with pytest.raises(RuntimeError), exclusive(tmp_path):
        raise RuntimeError
    code = """if True:
        import sys
        from fsjax.storage.file_lock import exclusive
        with exclusive(sys.argv[1]):
            print("free")
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "free\n"


@contextmanager
def held_by_another_thread(folder: Path) -> Iterator[None]:
    with ThreadPoolExecutor(1) as pool:
        lock = exclusive(folder)
        pool.submit(lock.__enter__).result()
        try:
            yield
        finally:
            pool.submit(lock.__exit__, None, None, None).result()


def _select(folder: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.resize([0, 1], 60)
    fsjax.select(X, y, workdir=folder)


def _fit(folder: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.resize([0, 1], 60)
    fsjax.fit(fsjax.methods.stg(num_features=2), (X, y), num_epochs=1, checkpoint_dir=folder)


def _nothing(folder: Path) -> None:
    with exclusive(folder):
        pass
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("work", [_nothing, _select, _fit])
def test_another_thread_is_kept_out(work: Callable[[Path], None], tmp_path: Path) -> None:
    with held_by_another_thread(tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ConfigError, match="in use by .* another thread of this one; wait"):
            work(tmp_path)
        assert sorted(tmp_path.iterdir()) == before
    _nothing(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_a_forked_process_does_not_inherit_the_folder(tmp_path: Path) -> None:
    lock = exclusive(tmp_path)
    lock.__enter__()
    child = os.fork()
    if not child:
        try:
            with exclusive(tmp_path):
                os._exit(1)
        except ConfigError:
            # Nor does it release or remove the lock of its parent at the end of the block.
            lock.__exit__(None, None, None)
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / NAME).exists()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigError, match="in use by another"):
        pool.submit(_nothing, tmp_path).result()
    lock.__exit__(None, None, None)
    _nothing(tmp_path)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with exclusive(tmp_path / "runs" / "new"):
        assert [path.name for path in (tmp_path / "runs" / "new").iterdir()] == [NAME]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match="file, or is inside one"), exclusive(folder):
            pass


@pytest.mark.parametrize(
    ("code", "warned"), [(errno.EROFS, []), (errno.ENOLCK, ["has no locks .* not noticed"])]
)
def test_a_folder_that_cannot_be_locked_is_used_all_the_same(
    code: int, warned: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(FileLock, "acquire", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with exclusive(tmp_path):
            pass
    assert len(caught) == len(warned)
    for warning, pattern in zip(caught, warned, strict=True):
        assert re.search(pattern, str(warning.message))


def _try(folder: Path, connection: Connection) -> None:
    """Sends whether it got the folder, which it keeps until it is answered."""
    try:
        with exclusive(folder):
            connection.send("runs")
            connection.recv()
    except ConfigError as error:
        connection.send(str(error))


@pytest.mark.long
def test_of_each_of_fifty_pairs_one_runs_and_one_is_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fsjax.storage.file_lock"])
    for _ in range(50):
        pipes = [context.Pipe() for _ in range(2)]
        processes = [
            context.Process(target=_try, args=(tmp_path / "run", theirs)) for _, theirs in pipes
        ]
        for process in processes:
            process.start()
        answers = sorted(ours.recv() for ours, _ in pipes)
        assert "run is in use by another process" in answers[0] and answers[1] == "runs"
        for ours, _ in pipes:
            ours.send("end")
        for process in processes:
            process.join()
            assert process.exitcode == 0
