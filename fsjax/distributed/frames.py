"""Messages between the processes of a run: a few fields as JSON, and bytes.

Nothing is unpickled: what a stranger sends to the port is refused or read as plain data.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from typing import Any

#: What every message begins with; other programs that find the port are turned away.
MAGIC = b"fsjx"

#: Most bytes of the fields: the names of files are the largest.
MAX_FIELDS = 2**28

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
        magic, fields, data = _HEAD.unpack(self._exactly(_HEAD.size))
        if magic != MAGIC or fields > MAX_FIELDS:
            raise Stranger
        try:
            return json.loads(bytes(self._exactly(fields))), bytes(self._exactly(data))
        except ValueError:
            raise Stranger from None

    def close(self) -> None:
        """Ends the connection, also for a thread that waits for a message."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, count: int) -> bytearray:
        found = bytearray()
        while len(found) < count:
            part = self._connection.recv(min(count - len(found), PIECE))
            if not part:
                raise ConnectionError("closed by the other side")
            found += part
        return found
