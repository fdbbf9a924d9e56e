"""The processes of a run: what they agree on, and what happens when one of them is lost.

JAX watches over the processes as well, but it can only abort them, with a message of its service.
Here each worker keeps a connection to process 0, the lead, which answers within seconds to
what becomes of any of them, and can say it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from fsjax.distributed.frames import Line, Stranger
from fsjax.errors import ConfigError

T = TypeVar("T")

#: Seconds without a sign of life after which a process counts as lost, and between two signs.
SILENCE, SIGN = 30.0, 3.0

#: Exit codes: of a mistake, of a job that the same command can take up again, after Ctrl-C.
MISTAKE, LOST, INTERRUPTED = 2, 75, 130

#: Seconds in which what is behind a failure comes out: a lost process, or a mistake that all made.
GRACE = 2.0


class Group:
    """The N processes of a run, which make the same calls in the same order.

    Args:
      number: of this process; 0 is the lead.
      count: N.
      lines: connections, of the lead to all others by their number, of the others to 0.
    """

    def __init__(self, number: int, count: int, lines: Mapping[int, Line]) -> None:
        self.number, self.count, self._lines = number, count, dict(lines)
        self._inbox: dict[int, queue.Queue] = {other: queue.Queue() for other in lines}
        self._ended: set[int] = set()
        self._all_ended, self._closed = threading.Event(), threading.Event()
        self._over, self._leaving = threading.Lock(), False
        for other, line in self._lines.items():
            line.silence(SILENCE)
            threading.Thread(target=self._listen, args=(other, line), daemon=True).start()
        threading.Thread(target=self._give_signs, daemon=True).start()

    def gather(self, what: str, value: Any, data: bytes = b"") -> tuple[list[Any], bytes]:
        """What each process gives, in the order of their numbers, and the bytes of the lead.

        Args:
          what: a name; that of all processes is the same.
          value: what JSON can hold.
          data: of the lead; no others are sent.

        Raises:
          ConfigError: if the processes are not at the same place, or one has ended already.
        """
        if self.number:
            self._send(0, {"kind": "part", "what": what, "value": value})
            fields, data = self._next(0, what)
            return fields["values"], data
        parts = {other: self._next(other, what)[0]["value"] for other in self._lines}
        values = [value, *(parts[other] for other in sorted(parts))]
        for other in self._lines:
            self._send(other, {"kind": "all", "what": what, "values": values}, data)
        return values, data

    def leave(self) -> None:
        """Waits until all processes have come to their end."""
        self._leaving = True
        self._tell({"kind": "bye"})
        self._all_ended.wait()

    def close(self) -> None:
        """Lets go of the other processes, whatever becomes of them."""
        self._leaving = True
        self._ended |= set(self._lines)
        self._closed.set()
        for line in self._lines.values():
            line.close()

    def fail(self, text: str, code: int = MISTAKE) -> NoReturn:
        """Ends all processes, with one message: that of the lead, or the first one's."""
        with self._over:
            if not self.number:
                _say(text)
            self._tell({"kind": "fail", "text": text, "code": code})
            if self.number:
                # The lead tells the user, and ends this process.
                time.sleep(2 * GRACE)
            self._end(code)

    def _next(self, other: int, what: str) -> tuple[dict[str, Any], bytes]:
        found = self._inbox[other].get()
        if found is None:
            raise ConfigError(
                f"process {other} has ended, where this one still has work to do; all processes "
                "must make the same calls"
            )
        if found[0]["what"] != what:
            raise ConfigError(
                f"process {other} is at {found[0]['what']!r}, process {self.number} at {what!r}; "
                "all processes must run the same command with the same files"
            )
        return found

    def _listen(self, other: int, line: Line) -> None:
        while True:
            try:
                fields, data = line.receive()
            except (OSError, Stranger):
                self._lost(other)
                return
            try:
                self._take(other, fields, data)
            except (KeyError, TypeError):  # not what a process of the run says
                self._lost(other)
                return

    def _take(self, other: int, fields: dict[str, Any], data: bytes) -> None:
        kind = fields["kind"]
        if kind in ("part", "all"):
            self._inbox[other].put((fields, data))
        elif kind == "bye":
            self._ended.add(other)
            self._inbox[other].put(None)
            if len(self._ended) == len(self._lines):
                self._all_ended.set()
        elif kind == "fail":
            self._failed(other, fields["text"], fields["code"])
        elif kind == "lost":
            self._give_up(fields["number"])

    def _lost(self, other: int) -> None:
        if other in self._ended and self._leaving:
            return
        if not self.number:
            self._tell({"kind": "lost", "number": other})
        self._give_up(other)

    def _give_up(self, other: int) -> NoReturn:
        with self._over:
            _say(
                f"process {other} of {self.count} is lost: it was killed, its machine failed, or "
                f"it did not answer for {SILENCE:.0f} s. All processes end; the same command, "
                "also with another number of processes, goes on from the newest checkpoint"
            )
            self._end(LOST)

    def _failed(self, other: int, text: str, code: int) -> None:
        if not self.number:
            # The same mistake is usually everybody's, and the lead is about to say so.
            time.sleep(GRACE)
            with self._over:
                _say(f"process {other}: {text}")
                self._tell({"kind": "fail", "text": text, "code": code})
                self._end(code)
        self._end(code)

    def _end(self, code: int) -> NoReturn:
        # Not by way of exit handlers: those of JAX would wait for the other processes.
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    def _give_signs(self) -> None:
        while not self._closed.wait(SIGN):
            self._tell({"kind": "sign"})

    def _tell(self, fields: dict[str, Any]) -> None:
        for line in self._lines.values():
            with contextlib.suppress(OSError):
                line.send(fields)

    def _send(self, other: int, fields: dict[str, Any], data: bytes = b"") -> None:
        try:
            self._lines[other].send(fields, data)
        except OSError:
            # The thread that listens knows more, and ends the process.
            time.sleep(SILENCE)
            raise


_group: Group | None = None


def enter(found: Group) -> None:
    """Makes these the processes of this program."""
    global _group
    _group = found


def group() -> Group | None:
    """The processes of this run, or ``None`` where there is but one."""
    return _group


def is_lead() -> bool:
    """Whether this process speaks to the user and writes files."""
    return _group is None or _group.number == 0


def agreed(what: str, value: T) -> T:
    """The value of the lead, in all processes; such as JSON can hold."""
    return value if _group is None else _group.gather(what, value)[0][0]


def share(what: str, data: bytes) -> bytes:
    """The bytes of the lead, in all processes."""
    return data if _group is None else _group.gather(what, None, data)[1]


def shared_out(
    what: str, items: Sequence[Any], function: Callable[[Sequence[Any]], list[T]]
) -> list[T]:
    """``function(items)``, a value for each, to which every process contributes its share.

    The values are such as JSON can hold.
    """
    if _group is None:
        return function(items)
    parts = _group.gather(what, function(items[_group.number :: _group.count]))[0]
    found: list[Any] = [None] * len(items)
    for number, part in enumerate(parts):
        found[number :: _group.count] = part
    return found


def _say(text: str) -> None:
    # At once, past whatever the main thread holds.
    with contextlib.suppress(OSError):
        os.write(2, f"\rerror: {text}\n".encode())
