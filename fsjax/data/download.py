"""Fetch a file from its public source: checked, and in place only when it is complete."""

import hashlib
import http.client
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from fsjax.data.sniff import sniff
from fsjax.errors import DataError

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Remote:
    """A file, by the name it gets on disk, and its addresses, which are tried in order.

    Its checksum is hexadecimal; where none is known, that of the first download is recorded.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


def fetch(remote: Remote, folder: Path) -> Path:
    """Download one file into a folder, with ``<file>.sha256`` beside it; returns its path.

    The folder is created if needed, and a file that is there already is kept. DataError, with each
    reason, if no address can be reached or what comes is not the file.
    """
    target = folder / remote.file
    if target.exists():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot create {folder} for the download of {remote.file}: {error.strerror}; "
            "set data.dir to a folder you may write to"
        ) from None
    reasons = []
    for url in remote.urls:
        try:
            return _fetch_one(url, remote, target)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reasons.append(f"{url} ({getattr(error, 'reason', None) or error})")
    raise DataError("; ".join(reasons))


def check_recorded(path: Path) -> None:
    """DataError if a file has changed since its checksum, if any, was recorded beside it."""
    record = path.with_name(path.name + ".sha256")
    if not record.is_file():
        return
    expected = record.read_text(encoding="utf-8").split()
    given = _sha256(path)
    if expected and expected[0] != given:
        raise DataError(
            f"{path} has changed since it was downloaded: sha256 {given}, recorded "
            f"{expected[0]}; delete the file to download it again, or delete {record.name} if the "
            "change is yours"
        )


def _fetch_one(url: str, remote: Remote, target: Path) -> Path:
    # scikit-learn's fetch_file has no time limit: a source that hangs would hide its mirrors.
    request = urllib.request.Request(url, headers={"User-Agent": "fsjax"})
    with tempfile.TemporaryDirectory(prefix=f".{remote.file}.", dir=target.parent) as scratch:
        arrived = Path(scratch, remote.file)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            announced = answer.headers.get("Content-Length")
            with arrived.open("wb") as file:
                shutil.copyfileobj(answer, file)
        received = arrived.stat().st_size
        if announced is not None and received != int(announced):
            raise DataError(f"the download stopped after {received} of {announced} bytes")
        with arrived.open("rb") as file:
            kind = sniff(file.read(512))
        if kind == "empty" or kind.startswith(("a web page", "a Git LFS")):
            raise DataError(f"what came is {kind}, not {remote.file}")
        digest = _sha256(arrived)
        if remote.sha256 not in (None, digest):
            raise DataError(f"sha256 {digest}, expected {remote.sha256}")
        arrived.replace(target)
    record = target.with_name(target.name + ".sha256")
    record.write_text(f"{digest}  {target.name}\n", encoding="utf-8")
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
