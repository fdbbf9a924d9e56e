"""The possible outcomes of a try."""

from __future__ import annotations

from typing import Any, Final

from .launcher import Done

#: The results of the undisturbed run, or one clear line about the error.
EQUAL, CLEAR = "equal", "clear error"

#: Forbidden outcomes.
TRACEBACK, WRONG, LOST, HUNG = "traceback", "silently wrong", "lost", "hung"

ALL: Final = (EQUAL, CLEAR, TRACEBACK, WRONG, LOST, HUNG)
FORBIDDEN: Final = (TRACEBACK, WRONG, LOST, HUNG)

#: The outcome of a try, and a message to print.
Outcome = tuple[str, str]


def ended_badly(done: Done, kill: int) -> Outcome | None:
    """The forbidden outcome of a run that got a signal; ``None`` if it ended as it should."""
    if done.status is None:
        return HUNG, done.output
    if "Traceback" in done.output or done.status not in (0, -kill, 128 + kill):
        return TRACEBACK, f"signal {kill}: status {done.status}: {done.output}"
    return None


def judge(done: Done, results: dict[str, Any], expected: dict[str, Any]) -> Outcome:
    """The outcome of a run that should have given the expected results.

    Args:
      done: how its process ended.
      results: what it wrote.
      expected: the results of the undisturbed run.
    """
    if done.status is None:
        return HUNG, done.output
    if "Traceback" in done.output or done.status < 0:
        return TRACEBACK, done.output
    if done.status == 0:
        return (EQUAL, done.output) if results == expected else (WRONG, done.output)
    errors = [line for line in done.output.splitlines() if line.startswith("error: ")]
    return (CLEAR, errors[0]) if len(errors) == 1 else (TRACEBACK, done.output)
