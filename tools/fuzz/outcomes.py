"""The possible outcomes of a try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsjax.errors import FsjaxError

#: A clear error, or the right values in spite of the damage.
CLEAR, RIGHT = "clear error", "right"

#: Accepted with other, valid values, in a format without checksums.
POSSIBLE = "possible values"

#: Forbidden outcomes: an error that is not fsjax's, wrong values without an error, the death of the
#: process, more than ten seconds, more memory than allowed.
FOREIGN, WRONG, CRASH = "foreign error", "silently wrong", "crash"
SLOW, MEMORY = "over 10 s", "over memory"

ALL = (CLEAR, RIGHT, POSSIBLE, FOREIGN, WRONG, CRASH, SLOW, MEMORY)
FORBIDDEN = (FOREIGN, WRONG, CRASH, SLOW, MEMORY)

#: The outcome of a try, and a message to print.
Outcome = tuple[str, str]


def outcome_of(
    attempt: Callable[[], Any],
    judge: Callable[[Any], Outcome],
    allowed: tuple[type[Exception], ...] = (FsjaxError,),
) -> Outcome:
    """The outcome of an attempt: by its error, or by ``judge`` if it returns a result."""
    try:
        result = attempt()
    except MemoryError as error:
        return MEMORY, str(error)
    except allowed as error:
        # fsjax may have converted a MemoryError of the reader.
        message = str(error)
        return (MEMORY, message) if "Unable to allocate" in message else (CLEAR, message)
    except Exception as error:
        return FOREIGN, f"{type(error).__name__}: {error}"
    return judge(result)
