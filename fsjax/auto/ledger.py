"""What is done, kept as it is done: a line of JSON for each piece of work.

A selection that is started again with the same table and settings finds its pieces here and goes
on; a last line that was cut by a kill is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fsjax.atomic import write_text
from fsjax.errors import ConfigError

NAME = "progress.jsonl"


class Ledger:
    """Pieces of work by key; in memory, and in a file where a folder is given.

    Args:
      folder: where ``progress.jsonl`` is kept, or ``None``.
      identity: what the pieces are of (hashes of the table, settings): JSON values by name.

    Raises:
      ConfigError: if the folder cannot be written, or holds pieces of something else.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, Any]) -> None:
        self._done: dict[str, Any] = {}
        self._path = None
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / NAME
            self._open(json.loads(json.dumps(identity)))
        except FileExistsError:
            raise ConfigError(f"{folder} is a file; name a folder for the report") from None
        except OSError as error:
            raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None

    def _open(self, identity: Mapping[str, Any]) -> None:
        assert self._path is not None
        lines = _whole_lines(self._path)
        if not lines:
            write_text(self._path, json.dumps({"identity": identity}) + "\n")
            return
        theirs = lines[0].get("identity")
        if theirs != identity:
            differing = [n for n in identity if not theirs or theirs.get(n) != identity[n]]
            raise ConfigError(
                f"{self._path.parent} holds another selection (it differs in "
                f"{', '.join(differing)}); name another folder, or remove this one"
            )
        self._done = {line["key"]: line["value"] for line in lines[1:]}
        # A cut line would swallow the next one.
        write_text(self._path, "".join(json.dumps(line) + "\n" for line in lines))

    @property
    def keeps(self) -> bool:
        """Whether the pieces outlive the process."""
        return self._path is not None

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def __getitem__(self, key: str) -> Any:
        return self._done[key]

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The piece of that key, made by ``make`` and kept if it is not there yet."""
        if key not in self._done:
            value = json.loads(json.dumps(make()))
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"key": key, "value": value}) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            self._done[key] = value
        return self._done[key]


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text(errors="replace").split("\n"):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found if found and "identity" in found[0] else []
