"""Tests of tools.site_versions: sites of several versions side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.site_versions import publish

ADDRESS = "https://example.org/docs/"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("new")
    return folder


def test_versions_are_listed_and_the_newest_release_is_the_entrance(
    site: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    for version in ("1.9.0", "dev", "1.10.0"):
        publish(site, pages, version, ADDRESS)
    entries = json.loads((pages / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == ["1.10.0", "1.9.0", "dev"]
    assert [entry.get("preferred", False) for entry in entries] == [True, False, False]
    assert entries[0]["url"] == "https://example.org/docs/1.10.0/"
    assert "url=1.10.0/" in (pages / "index.html").read_text()


def test_a_version_replaces_its_earlier_pages_only(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    for version in ("dev", "1.0.0"):
        (pages / version).mkdir(parents=True)
        (pages / version / "index.html").write_text("old")
        (pages / version / "removed.html").write_text("old")
    publish(site, pages, "dev", ADDRESS)
    assert (pages / "dev" / "index.html").read_text() == "new"
    assert not (pages / "dev" / "removed.html").exists()
    assert (pages / "1.0.0" / "removed.html").read_text() == "old"
