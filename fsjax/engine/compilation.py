"""Settings of JAX that must be made before its first array: devices and the compilation cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
from pathlib import Path

import jax
import joblib
from jax.experimental.compilation_cache import compilation_cache

from fsjax.environment.jax_settings import setting
from fsjax.errors import ConfigError

#: Most bytes of the programs that are kept on disk: those of some thousand fits.
MAX_BYTES = 2**28

#: Whether the user, or a first fit, has chosen where programs are kept.
_decided = False


def use_compilation_cache(folder: str | Path | None = None, *, on: bool = True) -> Path | None:
    """Keeps compiled programs on disk, so that a second process starts at once.

    Estimators and launchers do so by themselves; this chooses another folder, or none. Call it
    before they compile anything. It makes settings of JAX, for all programs of the process; the
    thresholds of JAX would leave the cache empty for programs as small as these, hence zero. The
    oldest ones go when a process finds more than :data:`MAX_BYTES`.

    Args:
      folder: where to keep them; ``None`` takes one below ``$FSJAX_CACHE`` or ``~/.cache/fsjax``
        that is this kind of processor's own.
      on: ``False`` keeps none, as ``FSJAX_CACHE=off`` in the environment does.

    Returns:
      The folder, or ``None`` where none is used.

    Raises:
      ConfigError: for a folder that cannot be written to.
    """
    global _decided
    _decided = True
    path = (default_folder() if folder is None else Path(folder)) if on else None
    if path is not None and not _writable(path):
        raise ConfigError(
            f"the compilation cache cannot write to {path}; give another folder, or "
            "use_compilation_cache(on=False)"
        )
    _use(path)
    return path


def cache_by_default() -> None:
    """:func:`use_compilation_cache`, unless somebody has decided on a cache, or it cannot be."""
    global _decided
    if _decided or setting("jax_compilation_cache_dir") is not None:
        return
    _decided = True
    path = default_folder()
    if path is not None and _writable(path):
        _use(path)


def default_folder() -> Path | None:
    """Where programs are kept unless another folder is given; ``None`` where none are wanted.

    A home may be shared by machines whose processors do not run each other's programs.
    """
    folder_name = os.environ.get("FSJAX_CACHE", "")
    if folder_name.lower() == "off":
        return None
    cache = Path(folder_name) if folder_name else Path(os.path.expanduser("~")) / ".cache" / "fsjax"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    cpu_lines = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    known = [platform.machine(), *sorted(set(cpu_lines or lines))]
    return cache / "xla" / hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _use(path: Path | None) -> None:
    jax.config.update("jax_compilation_cache_dir", None if path is None else str(path))
    if path is not None:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        # JAX's own bound reads the times of all entries at every write: seconds of a fit.
        jax.config.update("jax_compilation_cache_max_size", -1)
        _prune(path)
    # JAX looks once whether there is a cache, which may have been before this.
    compilation_cache.reset_cache()


def _prune(path: Path) -> None:
    """Removes the oldest programs, down to half of :data:`MAX_BYTES`, where there are more.

    Another process may do the same at the same time; a program that is gone is compiled again.
    """
    files = []
    for entry in os.scandir(path):
        with contextlib.suppress(OSError):
            facts = entry.stat()
            if entry.is_file():
                files.append((max(facts.st_atime, facts.st_mtime), facts.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    if total <= MAX_BYTES:
        return
    for _, size, name in sorted(files):
        with contextlib.suppress(OSError):
            os.unlink(name)
        total -= size
        if total <= MAX_BYTES // 2:
            return


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def use_cpu_devices(num_devices: int | None = None) -> int:
    """Splits the CPU into several JAX devices, over which ``fit`` shards its seeds.

    Seeds then run side by side, where small operations cannot be split over cores. Call it before
    JAX makes its first array; it has no effect on accelerators.

    Args:
      num_devices: number of devices; ``None`` takes one for each core this process may use.

    Returns:
      The number that was asked for.

    Raises:
      ConfigError: if JAX has made an array already and has another number of devices.
    """
    count = num_devices or joblib.cpu_count()
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        if jax.local_device_count("cpu") != count:
            raise ConfigError(
                "use_cpu_devices() comes too late, JAX has its devices already; call it before "
                "anything that makes a JAX array"
            ) from None
    return count


def check_platform() -> None:
    """Starts JAX; ConfigError if it cannot, as on a platform that this machine does not have."""
    try:
        jax.devices()
    # Of a platform whose plug-in is not installed, JAX's own assertion fails.
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or "the platform is not installed"
        raise ConfigError(
            f"JAX cannot start with JAX_PLATFORMS={setting('jax_platforms')!r}: {reason}; unset "
            "it, or install JAX for that platform"
        ) from None
