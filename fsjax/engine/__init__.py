"""The engine, which trains any method with many seeds; start at ``fit`` and ``plan``."""

from fsjax.engine.compilation import use_compilation_cache, use_cpu_devices
from fsjax.engine.control import Progress, log_to
from fsjax.engine.export import export
from fsjax.engine.fit import fit, fit_sizes, plan
from fsjax.engine.planned import Plan
from fsjax.engine.result import FitResult
from fsjax.engine.subsamples import fit_subsamples
from fsjax.engine.sweep import Sweep, sweep

__all__ = [
    "FitResult",
    "Plan",
    "Progress",
    "Sweep",
    "export",
    "fit",
    "fit_sizes",
    "fit_subsamples",
    "log_to",
    "plan",
    "sweep",
    "use_compilation_cache",
    "use_cpu_devices",
]
