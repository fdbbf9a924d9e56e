"""What is done is kept, and believed only where it fits its checksum."""

import errno
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsjax.auto.contest.progress_file import NAME, Ledger, Section
from fsjax.errors import ConfigError
from fsjax.storage.identity import Identity


def filled(folder) -> Ledger:
    ledger = Ledger(folder, Identity({"seed": 0}))
    assert ledger.get("a", lambda: {"value": 1.5}) == {"value": 1.5}
    assert ledger.get("b", lambda: 25) == 25
    return ledger


def test_it_goes_on_after_a_cut_line(tmp_path):
    filled(tmp_path)
    path = tmp_path / NAME
    path.write_text(path.read_text()[:-4])
    again = Ledger(tmp_path, Identity({"seed": 0}))
    assert "a" in again and "b" not in again and again.damaged == 1
    assert again.get("a", lambda: pytest.fail("it was done")) == {"value": 1.5}
    again.get("b", lambda: 3)
    whole = Ledger(tmp_path, Identity({"seed": 0}))
    assert whole["b"] == 3 and whole.damaged == 0
    with pytest.raises(ConfigError, match="another selection .seed was 0, is 1"):
        Ledger(tmp_path, Identity({"seed": 1}))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.floats(0, 1), content=st.binary(max_size=12), length=st.integers(0, 30))
def test_damage_of_any_kind_costs_pieces_and_nothing_else(tmp_path_factory, place, content, length):
    folder = tmp_path_factory.mktemp("ledger")
    filled(folder)
    path = folder / NAME
    before = path.read_bytes()
    start = int(place * len(before))
    path.write_bytes(before[:start] + content + before[start + length :])
    again = Ledger(folder, Identity({"seed": 0}))
    assert again.get("a", lambda: {"value": 1.5}) == {"value": 1.5}
    assert again.get("b", lambda: 25) == 25


@pytest.mark.parametrize("line", ["5", "[]", '{"key": 1}', "null", "[" * 100_000, '{"key": {}}'])
def test_lines_that_are_no_pieces(tmp_path, line):
    filled(tmp_path)
    path = tmp_path / NAME
    path.write_text(path.read_text() + line + "\n")
    assert Ledger(tmp_path, Identity({"seed": 0})).damaged == 1


def test_pieces_of_nobody_knows_what_are_not_believed(tmp_path):
    filled(tmp_path)
    path = tmp_path / NAME
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    assert "a" not in Ledger(tmp_path, Identity({"seed": 0}))


def test_lines_of_another_request_are_not_believed(tmp_path):
    other = Ledger(tmp_path / "other", Identity({"seed": 7}))
    other.get("c", lambda: {"value": 0.0})
    other.get("a", lambda: {"value": 0.0})
    (*_, foreign) = (tmp_path / "other" / NAME).read_text().splitlines(keepends=True)
    folder = tmp_path / "mine"
    filled(folder)
    for text in (foreign, (tmp_path / "other" / NAME).read_text()):
        with (folder / NAME).open("a") as file:
            file.write(text)
        again = Ledger(folder, Identity({"seed": 0}))
        assert again["a"] == {"value": 1.5} and "c" not in again
        assert again.damaged == len(text.splitlines())
    # Rounding depends on versions; the request does not.
    assert "a" in Ledger(folder, Identity({"seed": 0}, versions={"jax": "another"}))
    assert "a" in Ledger(folder, Identity({"seed": 0}))


def test_sections_do_not_see_each_other(tmp_path):
    ledger = filled(tmp_path)
    part = Section(ledger, "part/")
    assert "a" not in part and part.get("a", lambda: 7) == 7 and ledger["a"] == {"value": 1.5}
    assert Section(Ledger(tmp_path, Identity({"seed": 0})), "part/")["a"] == 7


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        Ledger(tmp_path / "file")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    ledger = filled(tmp_path)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("/dev/full")
    with pytest.raises(OSError) as error:
        ledger.get("c", lambda: 1)
    assert error.value.filename == str(tmp_path / NAME) and error.value.errno == errno.ENOSPC
