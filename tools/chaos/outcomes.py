"""What may become of a try."""

from __future__ import annotations

from typing import Any, Final

from .launcher import Done

#: The results of the undisturbed run, or one clear line that says what is wrong.
EQUAL, CLEAR = "equal", "clear error"

#: What must not be.
TRACEBACK, WRONG, LOST, HUNG = "traceback", "silently wrong", "lost", "hung"

ALL: Final = (EQUAL, CLEAR, TRACEBACK, WRONG, LOST, HUNG)
FORBIDDEN: Final = (TRACEBACK, WRONG, LOST, HUNG)

#: The outcome of a try, and what to show of it.
Outcome = tuple[str, str]


def judged(done: Done, results: dict[str, Any], expected: dict[str, Any]) -> Outcome:
    """What became of a run that is to have results, from how it ended and what it left.

    A clear error leaves nothing behind that could be taken for results.
    """
    if done.status is None:
        return HUNG, done.told
    if "Traceback" in done.told or done.status < 0:
        return TRACEBACK, done.told
    if done.status == 0:
        return (EQUAL, done.told) if results == expected else (WRONG, done.told)
    errors = [line for line in done.told.splitlines() if line.startswith("error: ")]
    return (CLEAR, errors[0]) if len(errors) == 1 else (TRACEBACK, done.told)
