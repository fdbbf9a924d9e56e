"""``Identity``: the record by which a folder is recognised as that of the same run.

Checkpoints, selections, converted tables and the folders of launchers store it, and are used again
only if nothing in it has changed.

Examples:
  >>> from fsjax.storage import atomic_files, file_lock, identity
  >>> first = identity.Identity(settings={"seeds": [0, 1]})
  >>> print(identity.Identity(settings={"seeds": [0]}).changes(first))
  >>> with file_lock.exclusive("run"), atomic_files.named_errors("run/notes.txt"):
  ...     atomic_files.write_text("run/notes.txt", "one process at a time writes here")
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

#: The most changes that a message names, and the most characters of a value in it.
_MAX_NAMED, _MAX_SHOWN = 4, 120


@dataclasses.dataclass(frozen=True)
class Identity:
    """What identifies a run: values by name, which may be nested, of types that JSON has.

    Attributes:
      settings: the arguments of the run.
      data: names and checksums of the data.
      code: the code that computes it, where settings do not identify it.
      versions: devices and versions, on which rounding depends. They are not compared, because a
        run may be resumed with others.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    code: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for part, values in self.to_json().items():
            # In the form in which a file returns them, with lists in place of tuples.
            object.__setattr__(self, part, json.loads(json.dumps(values)))

    def to_json(self) -> dict[str, Mapping[str, Any]]:
        """The parts by name."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, parts: object) -> Identity:
        """The inverse of :meth:`to_json`; parts that an earlier version did not write are empty."""
        fields = parts if isinstance(parts, dict) else {}
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: fields[name] for name in names if isinstance(fields.get(name), dict)})

    def changes(
        self, earlier: Identity, parts: Sequence[str] = ("settings", "data", "code")
    ) -> str:
        """The differences to an earlier run, such as ``seeds was [0, 1], is [0]``; empty if none.

        A missing value counts as ``None``.
        """
        was, now = (
            {name: value for part in parts for name, value in _flat(getattr(run, part)).items()}
            for run in (earlier, self)
        )
        names = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
        changes = [
            f"{name} was {_short(was.get(name))}, is {_short(now.get(name))}"
            for name in names[:_MAX_NAMED]
        ]
        if len(names) > _MAX_NAMED:
            changes.append(f"and {len(names) - _MAX_NAMED} more")
        return "; ".join(changes)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their names, joined with dots."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, dict) and value
        flat |= _flat(value, f"{prefix}{name}.") if nested else {prefix + name: value}
    return flat


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
