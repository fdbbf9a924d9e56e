"""What commands print: control characters, and readers that leave early."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fsjax.engine.environment.terminal import describe, end_with_reader
from fsjax.errors import DataError, printable

ROOT = Path(__file__).parents[3]


def test_control_characters_are_escaped() -> None:
    assert printable("\x1b[31mred\x1b[0m\r") == r"\x1b[31mred\x1b[0m\r"
    assert printable("\x9b2J\u202eevil\x7f") == r"\x9b2J\u202eevil\x7f"
    assert printable("two\n\tlines, Größe 10 €, π") == "two\n\tlines, Größe 10 €, π"
    assert str(DataError("no column \x1b[31mred")) == r"no column \x1b[31mred"


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", b"Gr\\xf6\\xdfe -1 +- 2, \\udcff"), ("cp1252", b"Gr\xf6\xdfe -1 \xb1 2, \\udcff")],
)
def test_characters_that_the_output_lacks_are_no_error(monkeypatch, encoding, printed) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    with end_with_reader():
        print("Größe \N{MINUS SIGN}1 ± 2, \udcff", end="")
    assert sys.stdout.buffer.getvalue() == printed and sys.stdout.errors == "strict"


def test_errors_of_other_pipes_stay_errors() -> None:
    with pytest.raises(BrokenPipeError), end_with_reader():
        raise BrokenPipeError


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["fsjax", "convert", "{tmp}/table.csv", "{tmp}/converted", "--target=y", "--quiet"],
        pytest.param(["experiments.report", "--help"], marks=pytest.mark.long),
    ],
)
def test_a_reader_that_left_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,y\n1,0\n2,1\n3,0\n4,1\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", *(word.format(tmp=tmp_path) for word in arguments)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_output_that_cannot_be_written_is_named() -> None:
    with open("/dev/full", "w") as full:
        code = """if True:
            from fsjax.engine.environment.terminal import end_with_reader
            with end_with_reader():
                print("text")
        """
        command = [sys.executable, "-c", code]
        environment = os.environ | {"PYTHONUNBUFFERED": ""}
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 2
    assert done.stderr == "error: standard output: No space left on device\n"


def test_an_error_without_a_name_says_so() -> None:
    text = describe(OSError(errno.EIO, "Input/output error"))
    assert text == "standard output, or a file that the system does not name: Input/output error"
    assert describe(FileNotFoundError(errno.ENOENT, "none", "a.csv")) == "a.csv: none"
