"""``make chaos``: runs that are disturbed in every way, and a table of what became of them.

    python -m tests.chaos --seed=0 --minutes=60
    python -m tests.chaos --only=kills --first=12 --tries=1 --show

Ends with status 1 if one try ended as none may; ``docs/robustness.md`` says what is tried.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from . import company, damage, disks, kills
from .launcher import Reference
from .outcomes import ALL, FORBIDDEN, Outcome

Attempt = Callable[[int, int, Reference, Path], Outcome]

#: All kinds of tries, and how many are made of each.
KINDS: dict[str, tuple[Attempt, int]] = {
    "kills and signals": (kills.attempt, 200),
    "damage, half-finished": (damage.of_half_finished, 560),
    "damage, finished": (damage.of_finished, 140),
    "two at once": (company.attempt, 50),
    "n-th operation fails": (disks.nth_operation, 480),
    "files cannot grow": (disks.largest_file, 42),
}


def main() -> int:
    """Makes all tries; the status of the process."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="other tries for another number")
    parser.add_argument("--tries", type=int, default=None, help="of each kind; all by default")
    parser.add_argument("--minutes", type=float, default=120.0, help="after which no try begins")
    parser.add_argument("--only", choices=list(KINDS), help="one kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--show", action="store_true", help="print every outcome")
    given = parser.parse_args()
    rows, started = {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fsjax-chaos-") as scratch:
        reference = Reference(Path(scratch))
        for kind in KINDS:
            if given.only in (None, kind):
                end = started + 60 * given.minutes
                rows[kind] = _counted(kind, given, reference, Path(scratch), end)
    table = pd.DataFrame(rows).T.reindex(columns=["tries", *ALL]).fillna(0).astype(int)
    print(f"\n{table.to_string()}\n{time.monotonic() - started:.0f} s, seed {given.seed}")
    return int(table[list(FORBIDDEN)].to_numpy().any())


def _counted(
    kind: str, given: argparse.Namespace, reference: Reference, scratch: Path, end: float
) -> Counter[str]:
    (attempt, usual), found = KINDS[kind], Counter()
    for number in range(given.first, given.first + (given.tries or usual)):
        if time.monotonic() > end:
            print(f"the time was up before all tries of: {kind} (--minutes)")
            break
        outcome, told = attempt(number, given.seed, reference, scratch)
        found.update((outcome, "tries"))
        if given.show or outcome in FORBIDDEN:
            line = " ".join(told.split())[-700:]
            print(f"{kind} {number}: {outcome}: {line}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
