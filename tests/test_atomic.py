"""Files that appear complete or not at all."""

import pytest

from fsjax.atomic import atomic_open


def test_failed_write_leaves_the_older_file(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_open(path) as file:
        file.write(b"old")
    with pytest.raises(RuntimeError), atomic_open(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]
