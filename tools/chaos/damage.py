"""Damages one file of a half-finished or finished folder, and gives the same command again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from .launcher import CONFIGS, Reference, arguments, outcome, run
from .outcomes import Outcome, judge

KINDS = ("flipped", "flipped", "flipped", "cut", "emptied", "removed", "replaced")


def half_finished(name: str, reference: Reference) -> Path:
    """A folder that was left after two of four epochs; it is made once."""
    folder = reference.folder / f"half-{name}"
    if not folder.exists():
        done = run(arguments(name, folder), reference.folder / "log", prepare=_die_after_two_epochs)
        if done.status != 9:
            raise RuntimeError(f"the run of {name} did not stop after two epochs: {done.output}")
    return folder


def _die_after_two_epochs() -> None:
    import os

    from fsjax.storage.checkpoints import Checkpoints

    save = Checkpoints.save

    def save_and_die(self: Checkpoints, epoch: int, *args: object) -> None:
        save(self, epoch, *args)
        if epoch == 2:
            os._exit(9)

    Checkpoints.save = save_and_die


def of_half_finished(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Damages one file of a half-finished folder."""
    name = CONFIGS[number % len(CONFIGS)]
    return _attempt(number, seed, half_finished(name, reference), name, reference, folder)


def of_finished(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Damages one file of a finished folder; its results must not be read as if undamaged."""
    name = CONFIGS[number % len(CONFIGS)]
    return _attempt(number, seed, reference.folder / name, name, reference, folder)


def _attempt(
    number: int, seed: int, source: Path, name: str, reference: Reference, folder: Path
) -> Outcome:
    rng = np.random.default_rng((seed, 2, number))
    workdir = folder / "run"
    shutil.rmtree(workdir, ignore_errors=True)
    shutil.copytree(source, workdir)
    files = sorted(path for path in workdir.rglob("*") if path.is_file())
    # The files in turn, with another kind of damage in each round.
    round_, place = divmod(number // len(CONFIGS), len(files))
    kind, path = KINDS[round_ % len(KINDS)], files[place]
    spoil(path, kind, files[int(rng.integers(len(files)))], rng)
    done = run(arguments(name, workdir), folder / "log")
    verdict, message = judge(done, outcome(workdir), reference.expected[name])
    return verdict, f"{path.relative_to(workdir)} {kind}: {message}"


def spoil(path: Path, kind: str, other: Path, rng: np.random.Generator) -> None:
    """Damages a file in one of the :data:`KINDS`."""
    data = bytearray(path.read_bytes())
    if kind == "removed":
        path.unlink()
        return
    if kind == "flipped" and data:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del data[int(rng.integers(len(data) + 1)) :]
    elif kind == "emptied":
        data.clear()
    elif kind == "replaced":
        data = bytearray(other.read_bytes())
    path.write_bytes(data)
