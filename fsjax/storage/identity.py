"""What makes two runs the same: one record for all that is continued, or found again, in a folder.

Checkpoints, selections, conversions of tables and the folders of launchers keep it, and are used
again only where nothing in it has changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Changes that a message names, and characters of a value in it.
_MOST_NAMED, _MOST_SHOWN = 4, 120


@dataclasses.dataclass(frozen=True)
class Identity:
    """What a run is: values by name, which JSON holds and which may be nested.

    Attributes:
      settings: what was asked for.
      data: of which data: names and checksums.
      code: what computes it, as far as no setting tells.
      versions: devices and versions, on which the last bits depend. They make no other run, as one
        may go on under others.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    code: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for part, values in self.to_json().items():
            # As they come back from a file, where tuples are lists.
            object.__setattr__(self, part, json.loads(json.dumps(values)))

    def to_json(self) -> dict[str, Mapping[str, Any]]:
        """The parts by name."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, parts: object) -> Identity:
        """The inverse of :meth:`to_json`; parts that an earlier version did not have are empty."""
        fields = parts if isinstance(parts, dict) else {}
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: fields[name] for name in names if isinstance(fields.get(name), dict)})

    def changes(
        self, earlier: Identity, parts: Sequence[str] = ("settings", "data", "code")
    ) -> str:
        """What is not as in an earlier run, such as ``seeds was [0, 1], is [0]``; or nothing.

        A value that is missing counts as ``None``.
        """
        was, now = (
            {name: value for part in parts for name, value in _flat(getattr(run, part)).items()}
            for run in (earlier, self)
        )
        names = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
        changes = [
            f"{name} was {_short(was.get(name))}, is {_short(now.get(name))}"
            for name in names[:_MOST_NAMED]
        ]
        if len(names) > _MOST_NAMED:
            changes.append(f"and {len(names) - _MOST_NAMED} more")
        return "; ".join(changes)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their names with dots between them."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, dict) and value
        flat |= _flat(value, f"{prefix}{name}.") if nested else {prefix + name: value}
    return flat


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
