"""``python -m fsjax`` is the command ``fsjax``."""

import sys

from fsjax.cli import main

if __name__ == "__main__":
    sys.exit(main())
