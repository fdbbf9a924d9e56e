"""Files that appear complete or not at all."""

import errno

import pytest

from fsjax.storage.atomic_files import atomic_open, remove_leftovers


def test_failed_write_leaves_the_older_file(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_open(path) as file:
        file.write(b"old")
    with pytest.raises(RuntimeError), atomic_open(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_a_failed_write_tells_the_name_that_the_user_knows(tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(OSError) as told, atomic_open(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert told.value.filename == str(path) and told.value.errno == errno.ENOSPC


def test_leftovers_of_killed_writers_go_and_files_of_others_stay(tmp_path):
    left = tmp_path / ".result.json.0123456789ab.tmp"
    mine = [tmp_path / name for name in (".mine.tmp", "a.0123456789ab.tmp", ".a.0123456789AB.tmp")]
    for path in (left, *mine):
        path.write_text("x")
    remove_leftovers(tmp_path)
    assert not left.exists() and all(path.exists() for path in mine)
