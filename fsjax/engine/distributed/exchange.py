"""Exchange of values between the processes of a run, by JAX's collectives.

All processes must make these calls in the same order. A single process gets its own values back.
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
    """The number of processes of this run; does not initialise JAX's devices."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_lead() -> bool:
    """Whether this is process 0, the only one that prints and writes files."""
    return process_count() == 1 or jax.process_index() == 0


def gathered_processes(name: str, value: T) -> list[T]:
    """The values of all processes, in the order of their numbers.

    Args:
      name: a name for the exchange, the same in all processes.
      value: a value that JSON can represent.

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
            f"process {', '.join(map(str, different))} and process 0 are at different points of "
            f"the program (this process: {name!r}); all must run the same command with the same "
            "files"
        )
    # JSON may end with spaces, so texts are padded with them to one length.
    padded = text.ljust(_padded(int(heads[:, 1].max())))
    rows = multihost_utils.process_allgather(np.frombuffer(padded, np.uint8))
    return [json.loads(row.tobytes()) for row in rows]


def agreed(name: str, value: T) -> T:
    """The value of process 0, in all processes; otherwise as :func:`gathered_processes`."""
    return gathered_processes(name, value)[0]


def share(name: str, data: bytes) -> bytes:
    """The bytes of process 0, in all processes; the argument of the others is ignored."""
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
    """Distributes ``function(items)``, one value per item, over the processes.

    Args:
      name: as in :func:`gathered_processes`.
      items: the same in all processes.
      function: maps some of the items to their values, which JSON can represent.

    Returns:
      The values of all items, in all processes.
    """
    count = process_count()
    if count == 1:
        return function(items)
    shares = gathered_processes(name, function(items[jax.process_index() :: count]))
    values: list[Any] = [None] * len(items)
    for number, part in enumerate(shares):
        values[number::count] = part
    return values


def _padded(length: int) -> int:
    """The next power of two, because JAX compiles a program for each different length."""
    return 1 << max(length - 1, 1).bit_length()
