"""Many tries of several kinds, counted by how each ended: what the tools chaos and fuzz share."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pandas as pd

#: The tries of a kind with these numbers and a seed: their number, outcome, and what was told.
Tries = Callable[[Iterable[int], int], Iterator[tuple[int, tuple[str, str]]]]


def asked(tool: str, told: str, kinds: Iterable[str], minutes: float) -> argparse.Namespace:
    """What the command line of a tool asks for; ``minutes`` by default."""
    parser = argparse.ArgumentParser(prog=f"python -m {tool}", description=told.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="other tries for another number")
    parser.add_argument("--tries", type=int, default=None, help="of each kind; all by default")
    parser.add_argument("--minutes", type=float, default=minutes, help="after which no try begins")
    parser.add_argument("--only", choices=list(kinds), help="one kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--show", action="store_true", help="print every outcome")
    return parser.parse_args()


def campaign(
    kinds: Mapping[str, tuple[Tries, int]],
    given: argparse.Namespace,
    outcomes: Sequence[str],
    forbidden: Sequence[str],
) -> int:
    """Makes the tries and prints their table, also if Ctrl-C or the minutes end them early.

    Args:
      kinds: by its name, what makes the tries of a kind, and how many are usual.
      given: of :func:`asked`.
      outcomes: all there are, in the order of the columns.
      forbidden: those that may not be, each of which is printed.

    Returns:
      The status of the process: 1 after a forbidden outcome, else 130 after Ctrl-C, else 0.
    """
    found: dict[str, Counter[str]] = {}
    started, stopped = time.monotonic(), False
    end = started + 60 * given.minutes
    chosen = [kind for kind in kinds if given.only in (None, kind)]
    try:
        for kind in chosen:
            tries, usual = kinds[kind]
            found[kind] = Counter()
            numbers = range(given.first, given.first + (given.tries or usual))
            _count(found[kind], kind, tries(_until(end, numbers), given.seed), given, forbidden)
            seconds = time.monotonic() - started
            print(f"{kind}: {found[kind]['tries']} tries, {seconds:.0f} s so far", flush=True)
    except KeyboardInterrupt:
        stopped = True
    table = pd.DataFrame(found).T.reindex(columns=["tries", *outcomes]).fillna(0).astype(int)
    print(f"\n{table.to_string()}\n{time.monotonic() - started:.0f} s, seed {given.seed}")
    wanted = {kind: given.tries or kinds[kind][1] for kind in chosen}
    if short := [kind for kind in chosen if found.get(kind, Counter())["tries"] < wanted[kind]]:
        why = "stopped" if stopped else "the time was up (--minutes)"
        print(f"{why} before all tries of: {', '.join(short)}")
    return 1 if table[list(forbidden)].to_numpy().any() else 130 * stopped


def _until(end: float, numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if time.monotonic() > end:
            return
        yield number


def _count(
    found: Counter[str],
    kind: str,
    made: Iterator[tuple[int, tuple[str, str]]],
    given: argparse.Namespace,
    forbidden: Sequence[str],
) -> None:
    for number, (outcome, told) in made:
        found.update((outcome, "tries"))
        if given.show or outcome in forbidden:
            print(f"{kind} {number}: {outcome}: {' '.join(told.split())[-700:]}", flush=True)
