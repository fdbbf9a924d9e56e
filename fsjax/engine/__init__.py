"""The engine: runs any method for many seeds."""

from fsjax.engine.compilation import use_compilation_cache, use_cpu_devices
from fsjax.engine.fit import fit
from fsjax.engine.result import FitResult

__all__ = ["FitResult", "fit", "use_compilation_cache", "use_cpu_devices"]
