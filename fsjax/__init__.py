"""fsjax: neural feature selection and sparse training in JAX.

Public names are imported on first use, so ``import fsjax`` itself is fast.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from fsjax.engine.environment.garbage_collection import paused as _paused
from fsjax.errors import ConfigError, DataError, FsjaxError, NonFiniteLossError
from fsjax.errors import unknown_attribute as _unknown_attribute

if TYPE_CHECKING:
    from fsjax import auto as auto
    from fsjax import concrete as concrete
    from fsjax import data as data
    from fsjax import estimators as estimators
    from fsjax import evaluation as evaluation
    from fsjax import methods as methods
    from fsjax import nets as nets
    from fsjax import report as report
    from fsjax import sparsity as sparsity
    from fsjax import tasks as tasks
    from fsjax import testing as testing
    from fsjax.auto import select
    from fsjax.auto.knockoffs import false_discoveries
    from fsjax.engine.compilation import use_compilation_cache, use_cpu_devices
    from fsjax.engine.control import Progress, log_to
    from fsjax.engine.distributed import initialize_distributed
    from fsjax.engine.export import export
    from fsjax.engine.fit import fit, fit_sizes, plan
    from fsjax.engine.plan import Plan
    from fsjax.engine.result import FitResult
    from fsjax.engine.subsamples import fit_subsamples
    from fsjax.engine.sweep import Sweep, sweep
    from fsjax.estimators.factory import register
    from fsjax.method import (
        About,
        Batch,
        Method,
        Phase,
        Search,
        Selection,
        Snapshot,
        Spec,
        TrainState,
        create_state,
    )
    from fsjax.storage.results import load, save

#: The version of the package; tools read it here.
__version__ = "1.0.0"

#: Public subpackages that are not in ``__all__``.
_PACKAGES = ("auto", "estimators", "evaluation", "nets", "report", "sparsity", "testing")

#: The module of each public name.
_MODULES = {
    "engine.compilation": ("use_compilation_cache", "use_cpu_devices"),
    "engine.control": ("Progress", "log_to"),
    "engine.distributed": ("initialize_distributed",),
    "engine.export": ("export",),
    "engine.fit": ("fit", "fit_sizes", "plan"),
    "engine.plan": ("Plan",),
    "engine.result": ("FitResult",),
    "engine.subsamples": ("fit_subsamples",),
    "engine.sweep": ("Sweep", "sweep"),
    "auto.knockoffs": ("false_discoveries",),
    "method": (
        "About",
        "Batch",
        "Method",
        "Phase",
        "Search",
        "Selection",
        "Snapshot",
        "Spec",
        "TrainState",
        "create_state",
    ),
    "auto": ("select",),
    "estimators.factory": ("register",),
    "storage.results": ("load", "save"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # with __getattr__, type checkers would accept misspelt names

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            with _paused():
                value = getattr(importlib.import_module(f"fsjax.{_MODULE_OF[name]}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_") and importlib.util.find_spec(f"fsjax.{name}") is not None:
            with _paused():
                return importlib.import_module(f"fsjax.{name}")
        raise _unknown_attribute(__name__, name, (*__all__, *_PACKAGES))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})


__all__ = [
    "About",
    "Batch",
    "ConfigError",
    "DataError",
    "FitResult",
    "FsjaxError",
    "Method",
    "NonFiniteLossError",
    "Phase",
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
