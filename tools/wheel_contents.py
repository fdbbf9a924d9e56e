"""Checks what a wheel of fsjax holds: the package with its stubs and tables, and nothing else.

python -m tools.wheel_contents dist/fsjax-1.0.0-py3-none-any.whl
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(wheel: Iterable[str], root: Path = ROOT) -> list[str]:
    """What is missing in a wheel, and what should not be there, a line each.

    Args:
      wheel: names of its files.
      root: the clone that it was built from.
    """
    package = root / "fsjax"
    expected = {
        path.relative_to(root).as_posix()
        for path in package.rglob("*")
        if path.suffix in (".py", ".pyi", ".toml", ".typed")
    }
    files = {name for name in wheel if ".dist-info/" not in name}
    return [
        *(f"missing: {name}" for name in sorted(expected - files)),
        *(f"not of the package: {name}" for name in sorted(files - expected)),
    ]


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = problems(archive.namelist())
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"error: {wheel} does not hold the package")
    print(f"{wheel}: {Path(wheel).stat().st_size / 2**20:.2f} MiB, complete")


if __name__ == "__main__":
    main(sys.argv[1])
