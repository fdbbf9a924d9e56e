"""Settings of JAX that must be made before its first array: devices and the compilation cache."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import joblib

from fsjax.errors import ConfigError


def use_compilation_cache(folder: str | Path | None = None) -> Path:
    """Keeps compiled programs on disk, so that a second process starts at once.

    The thresholds of JAX would leave the cache empty for programs as small as these, hence zero.

    Args:
      folder: where to keep them; ``None`` takes ``$FSJAX_CACHE/xla``, or ``~/.cache/fsjax/xla``.

    Returns:
      The folder.
    """
    cache = os.environ.get("FSJAX_CACHE", Path.home() / ".cache" / "fsjax")
    path = Path(folder or Path(cache) / "xla")
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path


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
        if len(jax.devices("cpu")) != count:
            raise ConfigError(
                "use_cpu_devices() comes too late, JAX has its devices already; call it before "
                "anything that makes a JAX array"
            ) from None
    return count
