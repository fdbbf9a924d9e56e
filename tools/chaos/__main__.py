"""``make chaos``: disturbs runs in many ways and prints a table of the outcomes.

    python -m tools.chaos --seed=0 --minutes=60
    python -m tools.chaos --only="kills and signals" --first=12 --tries=1 --show

The exit status is 1 after a forbidden outcome; ``docs/robustness.md`` describes the tries.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.campaign import Tries, campaign, parse_options

from . import damage, kills
from .launcher import Reference
from .outcomes import ALL, FORBIDDEN, Outcome

Attempt = Callable[[int, int, Reference, Path], Outcome]

#: All kinds of tries, and the default number of each.
KINDS: dict[str, tuple[Attempt, int]] = {
    "kills and signals": (kills.attempt, 200),
    "damage, half-finished": (damage.of_half_finished, 560),
    "damage, finished": (damage.of_finished, 140),
}


def main() -> int:
    """Makes all tries; returns the exit status."""
    options = parse_options("tools.chaos", __doc__, KINDS, minutes=120.0)
    with tempfile.TemporaryDirectory(prefix="fsjax-chaos-") as scratch:
        folder = Path(scratch)
        try:
            reference = Reference(folder)
        except KeyboardInterrupt:
            print("stopped before the first try")
            return 130

        def tries(attempt: Attempt) -> Tries:
            return lambda numbers, seed: (
                (number, attempt(number, seed, reference, folder)) for number in numbers
            )

        kinds = {kind: (tries(attempt), usual) for kind, (attempt, usual) in KINDS.items()}
        return campaign(kinds, options, ALL, FORBIDDEN)


if __name__ == "__main__":
    sys.exit(main())
