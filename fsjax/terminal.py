"""What commands print: control characters are escaped, and a reader that leaves is no error."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Exit code of a command whose output nobody reads any more: 128 and the number of SIGPIPE.
NO_READER = 141

#: What moves the cursor, colours, or turns the direction of text: all but the line end and the tab.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Text with its control characters escaped, as in ``\x1b[31mred``.

    Names of columns and labels come from files, which could tell a terminal anything.
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


@contextmanager
def end_with_reader() -> Iterator[None]:
    """Ends the process quietly where the reader of its output left, as ``head`` does.

    Raises:
      SystemExit: with 141, in place of a BrokenPipeError of standard output or standard error.
    """
    try:
        try:
            yield
        finally:
            # Python itself would do so at its end, and complain.
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        if not any(map(_has_no_reader, (1, 2))):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        sys.exit(NO_READER)


def _has_no_reader(descriptor: int) -> bool:
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
