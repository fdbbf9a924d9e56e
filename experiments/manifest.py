"""What a finished run left in its folder, by length and SHA-256, so that damage is found."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fsjax.seal import DamagedError, read_sealed, sha256_of_file, sha256_of_json, write_sealed

NAME = "manifest.json"


def write_manifest(workdir: Path, config: Mapping[str, Any], names: Iterable[str]) -> None:
    """Records the files of a run, of ``names`` those that are there; the last thing to be written.

    OSError where that cannot be.
    """
    files = {
        name: {"bytes": (workdir / name).stat().st_size, "sha256": sha256_of_file(workdir / name)}
        for name in sorted(names)
        if (workdir / name).is_file()
    }
    write_sealed(workdir / NAME, {"config_sha256": _sum_of(config), "files": files})


def is_of(workdir: Path, config: Mapping[str, Any]) -> bool:
    """Whether a whole manifest says that the folder is that of this configuration."""
    try:
        return read_sealed(workdir / NAME)["config_sha256"] == _sum_of(config)
    except DamagedError:
        return False


def damaged(workdir: Path) -> list[str]:
    """The recorded files that are gone or are not what was written.

    Empty without a manifest, as of an unfinished run or one of an older version; the manifest
    itself where that is damaged.
    """
    path = workdir / NAME
    if not path.exists():
        return []
    try:
        files = read_sealed(path)["files"]
    except DamagedError:
        return [NAME]
    return [name for name, recorded in files.items() if not _is_whole(workdir / name, recorded)]


def _sum_of(config: Mapping[str, Any]) -> str:
    # Whatever the order of its fields.
    return sha256_of_json(json.loads(json.dumps(config, sort_keys=True)))


def _is_whole(path: Path, recorded: Mapping[str, Any]) -> bool:
    try:
        whole = path.stat().st_size == recorded["bytes"]
        return whole and sha256_of_file(path) == recorded["sha256"]
    except OSError:
        return False
