"""What the processes of a run tell each other, through JAX's collectives.

All processes make these calls in the same order. Alone, a process gets its own values back.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from fsjax.errors import ConfigError

T = TypeVar("T")


def process_count() -> int:
    """The number of processes of this run; does not make JAX look for its devices."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_lead() -> bool:
    """Whether this is process 0, which speaks to the user and writes files."""
    return process_count() == 1 or jax.process_index() == 0


def gathered(name: str, value: T) -> list[T]:
    """The values of all processes, in the order of their numbers.

    Args:
      name: of what is exchanged, the same in all processes.
      value: what JSON can hold.

    Raises:
      ConfigError: in all processes, if their names differ.
    """
    if process_count() == 1:
        return [value]
    text = json.dumps(value).encode()
    heads = multihost_utils.process_allgather(
        np.asarray([zlib.crc32(name.encode()), len(text)], np.uint32)
    )
    if different := np.flatnonzero(heads[:, 0] != heads[0, 0]).tolist():
        raise ConfigError(
            f"process {', '.join(map(str, different))} is not where process 0 is (here: {name!r}); "
            "all processes must run the same command with the same files"
        )
    # JSON may end with spaces.
    padded = text.ljust(_padded(int(heads[:, 1].max())))
    rows = multihost_utils.process_allgather(np.frombuffer(padded, np.uint8))
    return [json.loads(row.tobytes()) for row in rows]


def agreed(name: str, value: T) -> T:
    """The value of process 0, in all processes; arguments and errors of :func:`gathered`."""
    return gathered(name, value)[0]


def share(name: str, data: bytes) -> bytes:
    """The bytes of process 0, in all processes; what others give is ignored."""
    if process_count() == 1:
        return data
    length = agreed(name, len(data))
    buffer = np.zeros(_padded(length), np.uint8)
    if is_lead():
        buffer[:length] = np.frombuffer(data, np.uint8)
    return multihost_utils.broadcast_one_to_all(buffer)[:length].tobytes()


def shared_out(
    name: str, items: Sequence[Any], function: Callable[[Sequence[Any]], list[T]]
) -> list[T]:
    """``function(items)``, one value per item, of which each process computes a share.

    Args:
      name: as in :func:`gathered`.
      items: the same in all processes.
      function: of some items; its values are what JSON can hold.
    """
    count = process_count()
    if count == 1:
        return function(items)
    shares = gathered(name, function(items[jax.process_index() :: count]))
    values: list[Any] = [None] * len(items)
    for number, part in enumerate(shares):
        values[number::count] = part
    return values


def _padded(length: int) -> int:
    """The next power of two: each length is a program of its own for the compiler."""
    return 1 << max(length - 1, 1).bit_length()
