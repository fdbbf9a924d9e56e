"""Standard output of commands: no error for a closed pipe, or for what an encoding lacks."""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Exit code of a command whose output pipe was closed: 128 plus the number of SIGPIPE.
NO_READER = 141

#: Names in messages: of standard output, and of a file that the system does not name.
_OUTPUT = "standard output"
_UNNAMED = "standard output, or a file that the system does not name"

#: ASCII for the signs of reports; without its sign a number would be another.
_ASCII = {"\N{MINUS SIGN}": "-", "\N{PLUS-MINUS SIGN}": "+-", "\N{MULTIPLICATION SIGN}": "x"}


def describe(error: OSError) -> str:
    """An error as ``NAME: REASON`` for the user; without a name, it may concern standard output."""
    if error.filename is None:
        try:
            _flush()
        except OSError as of_output:
            error = of_output
    reason = error.strerror or str(error)
    return f"{_UNNAMED if error.filename is None else error.filename}: {reason}"


@contextmanager
def end_with_reader() -> Iterator[None]:
    """Ends the process quietly if the reader of its output closes the pipe, as ``head`` does.

    Within it, characters that the encoding of standard output lacks are printed in ASCII.

    Raises:
      SystemExit: with code 141 instead of a BrokenPipeError of standard output or standard error;
        with code 2, after a message, if standard output cannot be written to.
    """
    try:
        try:
            with _any_character():
                yield
        finally:
            # Otherwise Python flushes at exit and prints a traceback if that fails.
            _flush()
    except BrokenPipeError:
        if not any(map(_has_no_reader, (1, 2))):
            raise
        _discard(1, 2)
        sys.exit(NO_READER)
    except OSError as error:
        if error.filename != _OUTPUT:
            raise
        print(f"error: {describe(error)}", file=sys.stderr)
        sys.exit(2)


@contextmanager
def _any_character() -> Iterator[None]:
    """Without it, a table with umlauts, or a minus sign, ends in an error after minutes of work."""
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    errors = stream.errors
    codecs.register_error("fsjax.ascii", _in_ascii)
    stream.reconfigure(errors="fsjax.ascii")
    try:
        yield
    finally:
        stream.reconfigure(errors=errors)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_ASCII.get(mark) or ascii(mark)[1:-1] for mark in missing), error.end


def _flush() -> None:
    """Flushes standard output; an error names it, and later output is discarded."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(1)
        raise OSError(error.errno, error.strerror, _OUTPUT) from error


def _discard(*descriptors: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _has_no_reader(descriptor: int) -> bool:
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
