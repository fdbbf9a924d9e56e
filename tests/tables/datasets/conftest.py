"""Fixtures for tests of registered data sets."""

import dataclasses
from pathlib import Path

import pytest

from fsjax.tables.datasets.catalog import ENTRIES


@pytest.fixture
def only_tmp(tmp_path, monkeypatch) -> Path:
    """Keep the tests away from the user's own files."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("FSJAX_DATA", raising=False)
    return home


@pytest.fixture
def shrink(monkeypatch):
    """Make a registered data set small, so that a test can write its files."""

    def change(name: str, **values: object) -> None:
        monkeypatch.setitem(ENTRIES, name, dataclasses.replace(ENTRIES[name], **values))

    return change
