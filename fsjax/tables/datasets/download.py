"""Download of a file from its public source; it is verified, and appears only when complete."""

import hashlib
import http.client
import tempfile
import urllib.request
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsjax.errors import DataError
from fsjax.storage.atomic_files import named_errors, write_text
from fsjax.tables.readers.file_type import sniff

_TIMEOUT_SECONDS = 30.0

#: Bytes that are read at a time.
_PIECE = 2**20


class _ToHttps(urllib.request.HTTPRedirectHandler):
    """Refuses redirects to unencrypted addresses, whose contents others could change."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.lower().startswith("https://"):
            raise DataError(f"it redirects to {newurl}, which does not start with https://")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_ToHttps)


@dataclass(frozen=True)
class Remote:
    """A file to download.

    Attributes:
        file: its name on disk.
        urls: its addresses, which are tried in order.
        sha256: its hexadecimal checksum; if None, that of the first download is recorded.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


def fetch(remote: Remote, folder: Path) -> Path:
    """Download one file to a folder, with ``<file>.sha256`` beside it; returns its path.

    The folder is created if needed, and an existing file is kept. Warns if the file may be
    truncated because neither its length nor its checksum is known.

    Raises:
        DataError: with each reason, if no address gives the file; if the folder cannot be created;
            and if an existing file does not have its checksum.
    """
    target = folder / remote.file
    if target.exists():
        check_recorded(target, remote.sha256)
        digest = None if remote.sha256 is None else _sha256(target)
        if digest != remote.sha256:
            raise DataError(
                f"{target} is not the published file: sha256 {digest}, expected {remote.sha256}; "
                "delete it to download it again"
            )
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
            return _download(url, remote, target)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reasons.append(f"{url} ({getattr(error, 'reason', None) or error})")
    raise DataError("; ".join(reasons))


def check_recorded(path: Path, sha256: str | None = None) -> None:
    """DataError if a downloaded file does not have its checksum.

    This is the published ``sha256`` or else the one that was recorded by the download. Files
    without a record are not checked, because the user put them there.
    """
    record = path.with_name(path.name + ".sha256")
    if not record.is_file():
        return
    recorded = record.read_text(encoding="utf-8", errors="replace").split()
    if not recorded and sha256 is None:
        raise DataError(
            f"{record} is empty, so that {path.name} cannot be checked; delete both to download it "
            f"again, or only {record.name} if you trust the file"
        )
    expected, digest = sha256 or recorded[0], _sha256(path)
    if expected != digest:
        raise DataError(
            f"{path} has changed since it was downloaded: sha256 {digest}, "
            f"{'published' if sha256 else 'recorded'} {expected}; delete the file to download it "
            f"again, or delete {record.name} if the change is yours"
        )


def _download(url: str, remote: Remote, target: Path) -> Path:
    # scikit-learn's fetch_file has no time limit: no mirror is tried if the first source hangs.
    request = urllib.request.Request(url, headers={"User-Agent": "fsjax"})
    with tempfile.TemporaryDirectory(prefix=f".{remote.file}.", dir=target.parent) as scratch:
        arrived = Path(scratch, remote.file)
        with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            announced = answer.headers.get("Content-Length")
            # Chunks have lengths of their own, so that truncation is noticed.
            chunked = "chunked" in answer.headers.get("Transfer-Encoding", "").lower()
            with arrived.open("wb") as file:
                while piece := answer.read(_PIECE):
                    with named_errors(target):
                        file.write(piece)
                        file.flush()
        received = arrived.stat().st_size
        if announced is not None and received != int(announced):
            raise DataError(f"the download stopped after {received} of {announced} bytes")
        with arrived.open("rb") as file:
            kind = sniff(file.read(512))
        if kind == "empty" or kind.startswith(("a web page", "a Git LFS")):
            raise DataError(f"the download is {kind}, not {remote.file}")
        if announced is None and not chunked and remote.sha256 is None:
            warnings.warn(
                f"{url} does not give the length of {remote.file}, and no checksum is known: the "
                f"{received:,} bytes that were received may be truncated",
                stacklevel=4,
            )
        digest = _sha256(arrived)
        if remote.sha256 not in (None, digest):
            raise DataError(f"sha256 {digest}, expected {remote.sha256}")
        arrived.replace(target)
    record = target.with_name(target.name + ".sha256")
    write_text(record, f"{digest}  {target.name}\n")
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
