"""``make fuzz``: tries many damaged files.

    python -m tools.fuzz --seed=0 --minutes=10
    python -m tools.fuzz --tries=100 --only="damaged data files" --show

Prints a table of the outcomes, whose columns ``docs/robustness.md`` explains. The exit status is 1
after a forbidden outcome.
"""

from __future__ import annotations

import sys
from functools import partial

from tools.campaign import campaign, parse_options

from .outcomes import ALL, FORBIDDEN
from .worker import KINDS, outcomes


def main() -> int:
    """Makes all tries; returns the exit status."""
    options = parse_options("tools.fuzz", __doc__, KINDS, minutes=10.0)
    kinds = {kind: (partial(outcomes, attempt), usual) for kind, (attempt, usual) in KINDS.items()}
    return campaign(kinds, options, ALL, FORBIDDEN)


if __name__ == "__main__":
    sys.exit(main())
