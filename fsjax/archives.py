"""Checksums of zip files."""

from __future__ import annotations

import zipfile
from typing import BinaryIO


def damaged_member(file: BinaryIO) -> str | None:
    """The first member of a zip file that is not what was written, ``None`` where all are.

    NumPy reads no further than the shape in a member's head tells, and so past no checksum.
    ``None``, too, for what is no zip file.
    """
    if not zipfile.is_zipfile(file):
        return None
    with zipfile.ZipFile(file) as archive:
        return archive.testzip()
