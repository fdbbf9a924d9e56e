"""fsjax: neural feature selection and sparse training in JAX."""

import importlib
from types import ModuleType

from fsjax import concrete, data, methods, tasks
from fsjax.engine import (
    FitResult,
    fit,
    fit_sizes,
    fit_subsamples,
    use_compilation_cache,
    use_cpu_devices,
)
from fsjax.errors import ConfigError, DataError, FsjaxError, NonFiniteLossError
from fsjax.method import Batch, Method, Snapshot, Spec, TrainState, create_state
from fsjax.persist import load, save

__version__ = "0.1.0"

#: Imported where they are first used: they bring in scikit-learn's and Matplotlib's modules.
_LATER = ("estimators", "evaluation", "nets", "report", "sparsity")


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"fsjax.{name}")
    raise AttributeError(f"module 'fsjax' has no attribute {name!r}")


__all__ = [
    "Batch",
    "ConfigError",
    "DataError",
    "FitResult",
    "FsjaxError",
    "Method",
    "NonFiniteLossError",
    "Snapshot",
    "Spec",
    "TrainState",
    "concrete",
    "create_state",
    "data",
    "fit",
    "fit_sizes",
    "fit_subsamples",
    "load",
    "methods",
    "save",
    "tasks",
    "use_compilation_cache",
    "use_cpu_devices",
]
