"""The engine: runs any method for many seeds."""

from fsjax.engine.compilation import use_compilation_cache, use_cpu_devices
from fsjax.engine.fit import as_dataset, fit
from fsjax.engine.result import FitResult

__all__ = ["FitResult", "as_dataset", "fit", "use_compilation_cache", "use_cpu_devices"]
