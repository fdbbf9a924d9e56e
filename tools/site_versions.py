"""Puts a built site beside those of other versions, for the host of the documentation.

    python -m tools.site_versions build/site pages 1.0.0 https://fsjax.github.io/fsjax

replaces ``pages/1.0.0`` by ``build/site``, lists the versions in ``pages/versions.json``, which the
menu of every version reads, and redirects ``pages/index.html`` to the newest release. The version
of the main branch is ``dev``. ``make site`` calls this.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

DEVELOPMENT = "dev"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def newest_first(versions: list[str]) -> list[str]:
    """Releases from the newest to the oldest, then the version of the main branch."""
    releases = [version for version in versions if version != DEVELOPMENT]
    releases.sort(key=lambda version: tuple(map(int, version.split("."))), reverse=True)
    return releases + [DEVELOPMENT] * (DEVELOPMENT in versions)


def publish(site: Path, pages: Path, version: str, address: str) -> None:
    """Copies a site to the folder of its version, and writes the list and the redirection.

    Args:
      site: folder of the built site.
      pages: folder with one folder per version.
      version: a release such as ``1.0.0``, or ``dev``.
      address: URL of ``pages``.

    Raises:
      SystemExit: if the version is neither a release nor ``dev``, or if there is no site.
    """
    if version != DEVELOPMENT and not _RELEASE.fullmatch(version):
        sys.exit(f"version {version!r}; give a release such as 1.0.0, or {DEVELOPMENT}")
    if not (site / "index.html").is_file():
        sys.exit(f"no site in {site}; run make docs")
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(site, pages / version)
    present = [path.parent.name for path in pages.glob("*/index.html")]
    versions = newest_first(
        [name for name in present if name == DEVELOPMENT or _RELEASE.match(name)]
    )
    entries = [
        {"name": name, "version": name, "url": f"{address.rstrip('/')}/{name}/"}
        for name in versions
    ]
    if versions[0] != DEVELOPMENT:
        entries[0] |= {"name": f"{versions[0]} (newest)", "preferred": True}
    (pages / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (pages / ".nojekyll").touch()  # else the host drops folders that begin with an underscore
    (pages / "index.html").write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
        f'<a href="{versions[0]}/">fsjax {versions[0]}</a>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
