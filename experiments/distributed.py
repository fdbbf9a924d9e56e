"""The flag ``--distributed`` of the launchers: one run on several processes.

Only process 0 reads and writes the user's folders. At startup the other processes receive a copy
of the files, in a temporary folder of their own, so that all of them start from the same files and
no network drive is needed.
"""

from __future__ import annotations

import atexit
import io
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

from absl import flags

import fsjax
from fsjax.engine.distributed import is_lead, process_count, share
from fsjax.engine.distributed.same import check_same, code
from fsjax.errors import ConfigError

#: Flags that identify this process and may differ between processes.
PLACE = ("process_id", "coordinator", "coordinator_timeout")

#: Launchers that train nothing or measure time, which differs between processes, and the reasons.
SINGLE = {
    "report": "trains nothing",
    "benchmark": "measures single processes",
    "growth": "measures single processes",
    "processes": "starts processes of its own",
    "arena": "starts processes of its own",
    "discoveries": "consists of short fits",
}

#: Flags that name files and folders of the user; only process 0 reads and writes them.
FILES = ("workdir", "results", "reasons", "page", "out")


def define_flags() -> None:
    """Defines the flags, once."""
    if "distributed" in flags.FLAGS:
        return
    flags.DEFINE_bool("distributed", False, "Train one run on several processes.")
    flags.DEFINE_string(
        "coordinator", None, "HOST:PORT of process 0; detected under Slurm and Open MPI."
    )
    flags.DEFINE_integer("num_processes", None, "Number of processes.")
    flags.DEFINE_integer("process_id", None, "Index of this process, from 0.")
    flags.DEFINE_float("coordinator_timeout", 120.0, "Seconds to wait for the other processes.")


def begin(launcher: str) -> None:
    """Connects to the other processes if ``--distributed`` is given.

    Args:
      launcher: the name of the launcher, such as ``run``.

    Raises:
      ConfigError: if flags contradict each other, or a process is missing or runs other code or
        another configuration.
    """
    options = flags.FLAGS
    names = ("coordinator", "num_processes", "process_id")
    set_names = [name for name in names if options[name].value is not None]
    if not options.distributed:
        if set_names:
            raise ConfigError(f"--{set_names[0]} is for --distributed; add --distributed")
        return
    if launcher in SINGLE:
        raise ConfigError(
            f"experiments.{launcher} {SINGLE[launcher]}; run it without --distributed"
        )
    if "cluster" in options and options.cluster is not None:
        raise ConfigError(
            "--cluster trains each experiment on one worker, --distributed one experiment on "
            "several processes; use only one of them"
        )
    if "minutes" in options and options.minutes:
        raise ConfigError(
            "--minutes stops each process at a different moment; omit it with --distributed"
        )
    fsjax.use_cpu_devices()  # has no effect after the first exchange between the processes
    fsjax.initialize_distributed(
        *(options[name].value for name in names), coordinator_timeout=options.coordinator_timeout
    )
    if process_count() == 1:
        return
    not_compared = {"distributed", *PLACE, *FILES}
    common = {
        name: options[name].value
        for name in options
        if not options[name].using_default_value and name not in not_compared
    }
    # The configuration itself, not its path: files of the same name may differ between machines.
    check_same(code=code(), configuration=(launcher, common))
    _isolate_other_processes()


def _isolate_other_processes() -> None:
    """Gives all processes but process 0 temporary folders, and silences them."""
    options = flags.FLAGS
    values = {name: options[name].value for name in FILES if name in options}
    paths = {name: str(value) for name, value in values.items() if value}
    if is_lead():
        share("files", _packed(paths))
        return
    scratch = Path(tempfile.mkdtemp(prefix="fsjax-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    _unpacked(share("files", b""), scratch)
    for name, path in paths.items():
        options[name].value = str(scratch / name / Path(path).name)
    warnings.simplefilter("ignore")
    quiet = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(quiet, 1)


def _packed(paths: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, location in paths.items():
            root = Path(location)
            files = sorted(root.rglob("*")) if root.is_dir() else [root] if root.exists() else []
            if root.is_dir():
                packed.writestr(f"{name}/{root.name}/", b"")
            for path in files:
                inner = path.relative_to(root.parent)
                if not path.is_file() or "checkpoints" in inner.parts:
                    continue
                packed.writestr(f"{name}/{inner.as_posix()}", path.read_bytes())
    return buffer.getvalue()


def _unpacked(data: bytes, folder: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        packed.extractall(folder)
