"""Folders that one thread of one process works in at a time."""

import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

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
    # Processes need not share the folder of temporary files.
    other_environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=other_environment
    ) as other:
        assert other.stdout.readline() == "held\n"
        try:
            told = f"in use by the process {other.pid}; wait"
            with pytest.raises(ConfigError, match=told), exclusive(folder):
                pass
            # By another name for the same folder, too.
            (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
            with pytest.raises(ConfigError, match=told), exclusive(tmp_path / "link" / "run"):
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


@pytest.mark.parametrize("work", [_nothing, _select, _fit])
def test_another_thread_is_kept_out(work: Callable[[Path], None], tmp_path: Path) -> None:
    with held_by_another_thread(tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ConfigError, match="in use by another thread of this process; wait"):
            work(tmp_path)
        assert sorted(tmp_path.iterdir()) == before
    _nothing(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_forked_process_does_not_inherit_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getpid()
    with exclusive(tmp_path):
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: parent + 1)
            with pytest.raises(ConfigError, match=f"in use by the process {parent}; wait"):
                _nothing(tmp_path)
        assert (tmp_path / NAME).exists()
    # Nor does it remove the lock of its parent at the end of the block in which it was forked.
    lock = exclusive(tmp_path)
    lock.__enter__()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: parent + 1)
        lock.__exit__(None, None, None)
    assert (tmp_path / NAME).exists()
    _nothing(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with exclusive(tmp_path / "runs" / "new"):
        assert [path.name for path in (tmp_path / "runs" / "new").iterdir()] == [NAME]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="file, or is inside one"):
        (tmp_path / "file").write_text("")
        with exclusive(tmp_path / "file"):
            pass


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "other user"])
def test_what_others_prepared_is_refused_and_left_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, target = tmp_path / "run", tmp_path / "precious"
    folder.mkdir()
    target.write_text("as it was")
    if kind == "link":
        (folder / NAME).symlink_to(target)
    elif kind == "hard link":
        (folder / NAME).hardlink_to(target)
    elif kind == "pipe":
        os.mkfifo(folder / NAME)
    else:
        (folder / NAME).write_text("")
        monkeypatch.setattr(os, "getuid", lambda: -1)
    messages = {
        "link": "is a symbolic link",
        "hard link": "is a file with 2 names",
        "pipe": "is not a regular file",
        "other user": "belongs to the user",
    }
    with pytest.raises(ConfigError, match=f"{NAME} {messages[kind]}.*remove it"):
        with exclusive(folder):
            pass
    assert target.read_text() == "as it was"
    assert os.path.lexists(folder / NAME)


def test_a_link_to_a_missing_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "missing")
    with pytest.raises(ConfigError, match="is a symbolic link"), exclusive(tmp_path):
        pass
    assert not (tmp_path / "missing").exists()


def test_a_read_only_folder_is_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(path: Path, *_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fspath(path))

    monkeypatch.setattr(os, "open", read_only)
    with exclusive(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_gets_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match="has no locks .* not noticed"), exclusive(tmp_path):
        pass


def _try(folder: Path, temporary: Path, connection: Connection) -> None:
    """Says whether it got the folder, which it keeps until it is answered."""
    tempfile.tempdir = str(temporary)
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
    temporaries = [tmp_path / "first", tmp_path / "second"]
    for temporary in temporaries:
        temporary.mkdir()
    for _ in range(50):
        pipes = [context.Pipe() for _ in temporaries]
        processes = [
            context.Process(target=_try, args=(tmp_path / "run", temporary, theirs))
            for temporary, (_, theirs) in zip(temporaries, pipes, strict=True)
        ]
        for process in processes:
            process.start()
        answers = sorted(ours.recv() for ours, _ in pipes)
        assert "run is in use by the process" in answers[0] and answers[1] == "runs"
        for ours, _ in pipes:
            ours.send("end")
        for process in processes:
            process.join()
            assert process.exitcode == 0
    # Nobody removes the folder if the process that was refused had made it.
    assert not list((tmp_path / "run").glob("*"))
