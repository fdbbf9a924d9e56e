"""``make fuzz``: many damaged files, lying files, bad calls and mistakes, and a table of outcomes.

    python -m tools.fuzz --seed=0 --minutes=10
    python -m tools.fuzz --tries=100 --only="bad calls" --show

Ends with status 1 if one try ended as none may; ``docs/robustness.md`` says what each column means.
"""

from __future__ import annotations

import sys
from functools import partial

from tools.campaign import asked, campaign

from .outcomes import ALL, FORBIDDEN
from .worker import KINDS, outcomes


def main() -> int:
    """Makes all tries; the status of the process."""
    options = asked("tools.fuzz", __doc__, KINDS, minutes=10.0)
    kinds = {kind: (partial(outcomes, attempt), usual) for kind, (attempt, usual) in KINDS.items()}
    return campaign(kinds, options, ALL, FORBIDDEN)


if __name__ == "__main__":
    sys.exit(main())
