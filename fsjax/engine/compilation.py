"""Settings that JAX needs before its first array: CPU devices and the compilation cache."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import jax
import joblib
from jax.experimental.compilation_cache import compilation_cache

from fsjax.engine.environment.jax_settings import processor_type, setting
from fsjax.errors import ConfigError

#: The size limit of the compilation cache in bytes; it holds the programs of some thousand fits.
MAX_BYTES = 2**28

#: Whether the user or a first fit has already chosen the folder.
_decided = False


def use_compilation_cache(folder: str | Path | None = None, *, on: bool = True) -> Path | None:
    """Keeps compiled programs on disk, so that another process need not compile them again.

    Estimators and launchers use a cache by default; call this function first to choose another
    folder, or none. It changes settings of JAX for all programs of the process. JAX's minimum
    compile time and size are set to 0, because the programs are small and would not be cached
    otherwise. If a process finds more than :data:`MAX_BYTES`, it deletes the oldest programs.

    Args:
      folder: the folder of the cache; ``None`` chooses one for this type of processor below
        ``$FSJAX_CACHE`` or ``~/.cache/fsjax``.
      on: ``False`` disables the cache, like ``FSJAX_CACHE=off`` in the environment.

    Returns:
      The folder, or ``None`` if the cache is disabled.

    Raises:
      ConfigError: for a folder that cannot be written to.

    Examples:
      >>> fsjax.use_compilation_cache()  # doctest: +SKIP
      >>> # compiled programs are kept for the next process
      >>> fsjax.use_compilation_cache(on=False)  # doctest: +SKIP
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
    """Uses the default cache, unless one was chosen before or its folder cannot be written to."""
    global _decided
    if _decided or setting("jax_compilation_cache_dir") is not None:
        return
    _decided = True
    path = default_folder()
    if path is not None and _writable(path):
        _use(path)


def default_folder() -> Path | None:
    """The default folder of the cache for this processor; ``None`` if ``FSJAX_CACHE=off``."""
    folder_name = os.environ.get("FSJAX_CACHE", "")
    if folder_name.lower() == "off":
        return None
    cache = Path(folder_name) if folder_name else Path(os.path.expanduser("~")) / ".cache" / "fsjax"
    return cache / "xla" / processor_type()


def _use(path: Path | None) -> None:
    jax.config.update("jax_compilation_cache_dir", None if path is None else str(path))
    if path is not None:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        # JAX's own size limit reads the times of all entries at each write, which takes seconds.
        jax.config.update("jax_compilation_cache_max_size", -1)
        _prune(path)
    # JAX checks only once whether there is a cache, possibly before this call.
    compilation_cache.reset_cache()


def _prune(path: Path) -> None:
    """Deletes the oldest programs, down to half of :data:`MAX_BYTES`, if there are more bytes.

    Another process may do the same at the same time; a missing program is compiled again.
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

    Seeds then run in parallel, which small operations within one seed cannot. Call it before JAX
    makes its first array; it has no effect on accelerators.

    Args:
      num_devices: number of devices; ``None`` takes one per core that this process may use.

    Returns:
      The number of devices.

    Raises:
      ConfigError: if JAX has already initialised another number of devices.

    Examples:
      >>> # before any JAX array: each core is a device for some of the seeds
      >>> fsjax.use_cpu_devices()  # doctest: +SKIP
    """
    count = num_devices or joblib.cpu_count()
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        if jax.local_device_count("cpu") != count:
            raise ConfigError(
                "use_cpu_devices() comes too late: JAX has already initialised its devices; call "
                "it before anything that makes a JAX array"
            ) from None
    return count


def check_platform() -> None:
    """Starts JAX; raises ConfigError if it cannot, for example without the chosen platform."""
    try:
        jax.devices()
    # JAX raises AssertionError for a platform whose plug-in is not installed.
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or "the platform is not installed"
        raise ConfigError(
            f"JAX cannot start with JAX_PLATFORMS={setting('jax_platforms')!r}: {reason}; unset "
            "it, or install JAX for that platform"
        ) from None
