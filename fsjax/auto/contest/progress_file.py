"""Records finished work in ``progress.jsonl``, so that a selection can be resumed.

Each piece of work is a line of JSON, written as soon as it is finished, with a checksum of the line
and of the request that it belongs to. A selection of the same table with the same settings
continues from these lines. Lines that were cut off or changed, or that belong to another request,
do not match their checksums; their work is repeated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fsjax import ConfigError
from fsjax.storage.atomic_files import named_errors, write_text
from fsjax.storage.identity import Identity

NAME = "progress.jsonl"

_IDENTITY = "identity"


class Ledger:
    """Finished pieces of work by key, in memory and, with a folder, in a file.

    Args:
      folder: folder of ``progress.jsonl``, or ``None``.
      identity: of the data and settings that the pieces belong to, with a folder.

    Attributes:
      damaged: number of lines of the file that did not match their checksums, because they were
        damaged or belong to another request.

    Raises:
      ConfigError: if the folder cannot be written, or holds pieces of another selection.
    """

    def __init__(self, folder: Path | None, identity: Identity | None = None) -> None:
        self._done: dict[str, Any] = {}
        self._path: Path | None = None
        self._request = ""
        self.damaged = 0
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / NAME
            self._open(self._path, identity or Identity())
        except FileExistsError:
            raise ConfigError(f"{folder} is a file; name a folder for the report") from None
        except OSError as error:
            raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None

    def _open(self, path: Path, identity: Identity) -> None:
        theirs, pieces, self.damaged = _read(path)
        if theirs is not None and (changes := identity.changes(theirs)):
            raise ConfigError(
                f"{path.parent} holds another selection ({changes}); choose another folder, or "
                "remove this one"
            )
        self._done, self._request = pieces, _request_of(identity)
        # Whoever reads it checks this line by itself: it says what the others belong to.
        lines = [_line(_IDENTITY, identity.to_json(), "")]
        lines += [_line(key, value, self._request) for key, value in pieces.items()]
        write_text(path, "".join(lines))

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def __getitem__(self, key: str) -> Any:
        return self._done[key]

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The piece with a key, as a JSON value; computed by ``make`` and recorded if missing."""
        if key not in self._done:
            value = json.loads(json.dumps(make()))
            if self._path is not None:
                with named_errors(self._path), self._path.open("a") as file:
                    file.write(_line(key, value, self._request))
                    file.flush()
                    os.fsync(file.fileno())
            self._done[key] = value
        return self._done[key]

    def timed(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """As :meth:`get`, of a piece that also has the ``seconds`` that it took."""

        def work() -> dict[str, Any]:
            start = time.monotonic()
            piece = make()
            return {**piece, "seconds": time.monotonic() - start}

        return self.get(key, work)


class Section(Ledger):
    """The part of a ledger whose keys begin with a prefix.

    Args:
      ledger: the whole ledger.
      prefix: of the keys.
    """

    def __init__(self, ledger: Ledger, prefix: str) -> None:
        super().__init__(None)
        self._ledger, self._prefix = ledger, prefix

    def __contains__(self, key: str) -> bool:
        return self._prefix + key in self._ledger

    def __getitem__(self, key: str) -> Any:
        return self._ledger[self._prefix + key]

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """As :meth:`Ledger.get`."""
        return self._ledger.get(self._prefix + key, make)


def json_number(value: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity: these become ``None``."""
    return float(value) if math.isfinite(value) else None


def _line(key: str, value: Any, request: str) -> str:
    return json.dumps({"key": key, "value": value, "sum": _checksum(key, value, request)}) + "\n"


def _checksum(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _request_of(identity: Identity) -> str:
    """A checksum of what identifies a request; versions do not."""
    return _checksum({**identity.to_json(), "versions": None})


def _read(path: Path) -> tuple[Identity | None, dict[str, Any], int]:
    """The identity in a file, its pieces by key, and the number of lines that are not believed.

    Without an identity it is unknown what pieces belong to, and there are none.
    """
    if not path.exists():
        return None, {}, 0
    identity, request = None, ""
    pieces: dict[str, Any] = {}
    damaged = 0
    for text in path.read_bytes().decode("utf-8", "replace").split("\n"):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            key, value, checksum = line["key"], line["value"], line["sum"]
        except (ValueError, TypeError, KeyError, RecursionError):
            damaged += 1
            continue
        if identity is None and key == _IDENTITY and checksum == _checksum(key, value, ""):
            identity = Identity.from_json(value)
            request = _request_of(identity)
        elif identity and isinstance(key, str) and checksum == _checksum(key, value, request):
            pieces[key] = value
        else:
            damaged += 1
    return identity, pieces, damaged
