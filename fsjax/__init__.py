"""fsjax: neural feature selection and sparse training in JAX."""

import importlib
from typing import Any

from fsjax.collector import paused

with paused(for_good=True):
    from fsjax import concrete, data, methods, tasks
    from fsjax.distributed import initialize_distributed
    from fsjax.engine import (
        FitResult,
        Plan,
        Progress,
        Sweep,
        export,
        fit,
        fit_sizes,
        fit_subsamples,
        log_to,
        plan,
        sweep,
        use_compilation_cache,
        use_cpu_devices,
    )
    from fsjax.errors import ConfigError, DataError, FsjaxError, NonFiniteLossError
    from fsjax.errors import unknown_attribute as _unknown_attribute
    from fsjax.matplotlib_backend import check_backend
    from fsjax.method import (
        About,
        Batch,
        Method,
        Search,
        Selection,
        Snapshot,
        Spec,
        TrainState,
        create_state,
    )
    from fsjax.publish import register
    from fsjax.storage.results import load, save
    from fsjax.version import __version__ as __version__

check_backend()

#: Imported where they are first used: they bring in scikit-learn's and Matplotlib's modules.
_LATER = ("auto", "estimators", "evaluation", "nets", "report", "sparsity", "testing")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"fsjax.{name}")
    if name == "select":
        return importlib.import_module("fsjax.auto").select
    if name == "false_discoveries":
        return importlib.import_module("fsjax.knockoffs").false_discoveries
    raise _unknown_attribute(__name__, name, (*__all__, *_LATER))


__all__ = [
    "About",
    "Batch",
    "ConfigError",
    "DataError",
    "FitResult",
    "FsjaxError",
    "Method",
    "NonFiniteLossError",
    "Plan",
    "Progress",
    "Search",
    "Selection",
    "Snapshot",
    "Spec",
    "Sweep",
    "TrainState",
    "concrete",
    "create_state",
    "data",
    "export",
    "false_discoveries",
    "fit",
    "fit_sizes",
    "fit_subsamples",
    "initialize_distributed",
    "load",
    "log_to",
    "methods",
    "plan",
    "register",
    "save",
    "select",
    "sweep",
    "tasks",
    "use_compilation_cache",
    "use_cpu_devices",
]
