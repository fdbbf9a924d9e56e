"""Runs many tries of several kinds and counts their outcomes, for the tools chaos and fuzz."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pandas as pd

#: Makes the tries of a kind, given their numbers and a seed; yields number, outcome and message.
Tries = Callable[[Iterable[int], int], Iterator[tuple[int, tuple[str, str]]]]


def stretched(seconds: float) -> float:
    """A limit of wall time, longer if more processes want to run than there are cores."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def parse_options(
    tool: str, description: str, kinds: Iterable[str], minutes: float
) -> argparse.Namespace:
    """Parses the command line of a module, whose docstring describes it."""
    first_line = description.split("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m {tool}", description=first_line)
    parser.add_argument("--seed", type=int, default=0, help="seed of the tries")
    parser.add_argument("--tries", type=int, help="number of tries of each kind; all by default")
    parser.add_argument("--minutes", type=float, default=minutes, help="start no try after these")
    parser.add_argument("--only", choices=list(kinds), help="make tries of this kind only")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--show", action="store_true", help="print every outcome")
    return parser.parse_args()


def campaign(
    kinds: Mapping[str, tuple[Tries, int]],
    options: argparse.Namespace,
    outcomes: Sequence[str],
    forbidden: Sequence[str],
) -> int:
    """Makes the tries and prints a table of outcomes, also after Ctrl-C or when the time is up.

    Args:
      kinds: for each kind, the function that makes its tries, and the default number of them.
      options: from :func:`parse_options`.
      outcomes: all outcomes, in the order of the table's columns.
      forbidden: outcomes that must not occur; each one is printed.

    Returns:
      The exit status: 1 after a forbidden outcome, else 0.
    """
    counts: dict[str, Counter[str]] = {}
    started, short = time.monotonic(), list[str]()
    chosen = [kind for kind in kinds if options.only in (None, kind)]
    try:
        for kind in chosen:
            tries, usual = kinds[kind]
            counts[kind] = Counter()
            numbers = range(options.first, options.first + (options.tries or usual))
            for number, (outcome, message) in tries(numbers, options.seed):
                counts[kind].update((outcome, "tries"))
                if options.show or outcome in forbidden:
                    print(f"{kind} {number}: {outcome}: {' '.join(message.split())[-700:]}")
                if time.monotonic() > started + 60 * options.minutes:
                    short.append(kind)
                    break
            print(f"{kind}: {counts[kind]['tries']} tries", flush=True)
    except KeyboardInterrupt:
        short = chosen[len(counts) - 1 :]
    table = pd.DataFrame(counts).T.reindex(columns=["tries", *outcomes]).fillna(0).astype(int)
    print(f"\n{table.to_string()}\n{time.monotonic() - started:.0f} s, seed {options.seed}")
    if short:
        print(f"stopped before all tries of: {', '.join(short)}")
    return int(table[list(forbidden)].to_numpy().any())
