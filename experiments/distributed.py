"""``--distributed`` of the launchers: one run on several processes, of which one has the folder.

Process 0 alone works in the user's folders. The others get what lies there as the run begins, in a
folder of their own that is thrown away, so that all go the same way from the same files, and no
network drive is needed.
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
from fsjax.distributed import is_lead, process_count, share
from fsjax.distributed.same import check_same, code
from fsjax.errors import ConfigError

#: Flags that say what this process is, and may differ between processes.
PLACE = ("process_id", "coordinator", "coordinator_timeout")

#: Launchers that train nothing, or that measure time, on which all processes would disagree.
SINGLE = {
    "report": "trains nothing",
    "benchmark": "measures single processes",
    "growth": "measures single processes",
    "processes": "starts processes of its own",
    "compare_selectors": "goes by the seconds of each selector",
    "discoveries": "is made of short fits",
    "nonlinear": "is made of short fits",
    "recovery": "is made of short fits",
}

#: Flags that name files and folders of the user, which process 0 alone reads and writes.
FILES = ("workdir", "results", "reasons", "page", "out")


def define_flags() -> None:
    """Defines the flags, once."""
    if "distributed" in flags.FLAGS:
        return
    flags.DEFINE_bool("distributed", False, "One run on several processes.")
    flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0; clusters tell it themselves.")
    flags.DEFINE_integer("num_processes", None, "Processes of the run.")
    flags.DEFINE_integer("process_id", None, "Number of this process, from 0.")
    flags.DEFINE_float("coordinator_timeout", 120.0, "Seconds to wait for the other processes.")


def begin(launcher: str) -> None:
    """Joins the other processes, if the flags say so.

    Args:
      launcher: its name.

    Raises:
      ConfigError: for flags that do not fit, and processes that do not come or differ.
    """
    options = flags.FLAGS
    names = ("coordinator", "num_processes", "process_id")
    set_names = [name for name in names if options[name].value is not None]
    if not options.distributed:
        if set_names:
            raise ConfigError(f"--{set_names[0]} is for --distributed; give that too")
        return
    if launcher in SINGLE:
        raise ConfigError(
            f"experiments.{launcher} {SINGLE[launcher]}; start it without --distributed"
        )
    if "cluster" in options and options.cluster is not None:
        raise ConfigError(
            "--cluster gives each experiment one worker, --distributed one experiment several "
            "processes; choose one of them"
        )
    if "minutes" in options and options.minutes:
        raise ConfigError(
            "--minutes stops each process at a moment of its own; leave it out with --distributed"
        )
    fsjax.use_cpu_devices()  # has no effect once the processes have exchanged something
    fsjax.initialize_distributed(
        *(options[name].value for name in names), coordinator_timeout=options.coordinator_timeout
    )
    if process_count() == 1:
        return
    of_process = {"distributed", *PLACE, *FILES}
    common = {
        name: options[name].value
        for name in options
        if not options[name].using_default_value and name not in of_process
    }
    # With the configuration as it was read: files of one name may differ.
    check_same(code=code(), configuration=(launcher, common))
    _work_beside()


def _work_beside() -> None:
    """Gives all but process 0 folders that nobody else sees, and no voice."""
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
