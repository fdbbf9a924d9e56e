"""What may become of a try, and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsjax.errors import FsjaxError

#: A clear error, or what was right in spite of the damage.
CLEAR, RIGHT = "clear error", "right"

#: Accepted, and different: values that could have been written, in a format without checksums.
POSSIBLE = "possible values"

#: What must not be: another error than ours, other values without a word, the end of the process,
#: more than ten seconds, more memory than allowed.
FOREIGN, WRONG, CRASH = "foreign error", "silently wrong", "crash"
SLOW, MEMORY = "over 10 s", "over memory"

ALL = (CLEAR, RIGHT, POSSIBLE, FOREIGN, WRONG, CRASH, SLOW, MEMORY)
FORBIDDEN = (FOREIGN, WRONG, CRASH, SLOW, MEMORY)

#: The outcome of a try, and what to show of it.
Outcome = tuple[str, str]


def outcome_of(
    attempt: Callable[[], Any],
    judge: Callable[[Any], Outcome],
    allowed: tuple[type[Exception], ...] = (FsjaxError,),
) -> Outcome:
    """What becomes of an attempt whose result, if there is one, is judged."""
    try:
        result = attempt()
    except MemoryError as error:
        return MEMORY, str(error)
    except allowed as error:
        # A reader's own error may have been turned into ours.
        message = str(error)
        return (MEMORY, message) if "Unable to allocate" in message else (CLEAR, message)
    except Exception as error:
        return FOREIGN, f"{type(error).__name__}: {error}"
    return judge(result)
