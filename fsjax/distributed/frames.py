"""Messages between the processes of a run: a few fields as JSON, and bytes.

Nothing is unpickled: what a stranger sends to the port is refused or read as plain data.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from typing import Any

#: What every message begins with; other programs that find the port are turned away.
MAGIC = b"fsjx"

#: Most bytes of the fields: the names of files are the largest; a greeting has two numbers.
MAX_FIELDS, MAX_GREETING = 2**28, 2**10

#: Bytes that are sent in one piece.
PIECE = 2**20

_HEAD = struct.Struct(">4sQQ")

#: The fields, and the bytes.
Frame = tuple[dict[str, Any], bytes]


class Stranger(Exception):
    """Something else than a process of a run speaks."""


class Line:
    """A connection to another process. Several threads may send, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._lock = connection, threading.Lock()
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def silence(self, seconds: float) -> None:
        """How long :meth:`receive` and :meth:`send` wait for the next bytes to move."""
        self._connection.settimeout(seconds)

    def send(self, fields: dict[str, Any], data: bytes = b"") -> None:
        """Sends a message.

        Raises:
          OSError: if the connection is lost, or nothing moves.
        """
        text = json.dumps(fields).encode()
        whole = memoryview(_HEAD.pack(MAGIC, len(text), len(data)) + text + data)
        with self._lock:
            # In pieces: the time limit is that of a call.
            for begin in range(0, len(whole), PIECE):
                self._connection.sendall(whole[begin : begin + PIECE])

    def receive(self) -> Frame:
        """The next message.

        Raises:
          OSError: if the connection is lost, or nothing moves.
          Stranger: for anything else than a message.
        """
        return self._receive(MAX_FIELDS, 2**63, None)

    def receive_greeting(self, seconds: float) -> dict[str, Any]:
        """The fields of a first message, which is short and whole within some seconds.

        Raises:
          OSError: if the connection is lost, or the seconds are over.
          Stranger: for anything else than a short message.
        """
        return self._receive(MAX_GREETING, 0, time.monotonic() + seconds)[0]

    def _receive(self, most_fields: int, most_data: int, deadline: float | None) -> Frame:
        magic, length, data = _HEAD.unpack(self._exactly(_HEAD.size, deadline))
        if magic != MAGIC or length > most_fields or data > most_data:
            raise Stranger
        try:
            fields = json.loads(bytes(self._exactly(length, deadline)))
        except (ValueError, RecursionError):
            raise Stranger from None
        if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
            raise Stranger
        return fields, bytes(self._exactly(data, deadline))

    def close(self) -> None:
        """Ends the connection, also for a thread that waits for a message."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, count: int, deadline: float | None) -> bytearray:
        received = bytearray()
        while len(received) < count:
            if deadline is not None:
                self._connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            part = self._connection.recv(min(count - len(received), PIECE))
            if not part:
                raise ConnectionError("closed by the other side")
            received += part
        return received
