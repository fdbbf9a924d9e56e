"""``make fuzz``: many damaged files, lying files, bad calls and mistakes, and a table of outcomes.

    python -m tests.fuzz --seed=0 --minutes=10
    python -m tests.fuzz --tries=100 --only="bad calls" --show

Ends with status 1 if one try ended as none may; ``docs/robustness.md`` says what each column means.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter

import pandas as pd

from .outcomes import ALL, FORBIDDEN
from .worker import KINDS, outcomes


def main() -> int:
    """Makes all tries; the status of the process."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="other tries for another number")
    parser.add_argument("--tries", type=int, default=None, help="of each kind; all by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="after which no try begins")
    parser.add_argument("--only", choices=list(KINDS), help="one kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--show", action="store_true", help="print every outcome")
    given = parser.parse_args()
    rows, started = {}, time.monotonic()
    for kind, (_, usual) in KINDS.items():
        if given.only in (None, kind):
            numbers = range(given.first, given.first + (given.tries or usual))
            end = started + 60 * given.minutes
            some = itertools.takewhile(lambda _, end=end: time.monotonic() < end, numbers)
            rows[kind] = _counted(kind, some, given.seed, given.show)
            seconds = time.monotonic() - started
            print(f"{kind}: {rows[kind]['tries']} tries, {seconds:.0f} s so far", flush=True)
    table = pd.DataFrame(rows).T.reindex(columns=["tries", *ALL]).fillna(0).astype(int)
    print(f"\n{table.to_string()}\n{time.monotonic() - started:.0f} s, seed {given.seed}")
    if short := [kind for kind in rows if rows[kind]["tries"] < (given.tries or KINDS[kind][1])]:
        print(f"the time was up before all tries of: {', '.join(short)} (--minutes)")
    return int(table[list(FORBIDDEN)].to_numpy().any())


def _counted(kind: str, numbers: itertools.takewhile, seed: int, show: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    for number, (outcome, told) in outcomes(KINDS[kind][0], numbers, seed):
        found[outcome] += 1
        found["tries"] += 1
        if show or outcome in FORBIDDEN:
            print(f"{kind} {number}: {outcome}: {' '.join(told.split())[:400]}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
