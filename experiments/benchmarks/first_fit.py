"""The first fit of every estimator in a fresh process, with a cold and a warm compilation cache.

The module has few imports of its own, as it is the main module of the processes that are measured:
``python -m experiments.benchmarks.first_fit IPCAE``.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.benchmarks.timing import Case

#: Columns to select from the 30 of scikit-learn's breast cancer data.
COLUMNS = 5


def first_fit(name: str) -> dict[str, float]:
    """Fits an estimator with default arguments in this fresh process.

    Args:
      name: of the estimator's class.

    Returns:
      CPU seconds: ``imports`` (including the interpreter's start), ``tracing`` (including
      lowering), ``compiling``, ``training`` (everything else), their sum ``total``, and ``again``,
      those of a second fit.
    """
    from sklearn.datasets import load_breast_cancer

    from fsjax import estimators

    table = load_breast_cancer(return_X_y=True)
    spent = _watched()
    imported = time.process_time()
    getattr(estimators, name)(COLUMNS).fit(*table)
    total = time.process_time()
    parts = {"imports": imported, **spent}
    parts["training"] = total - sum(parts.values())
    getattr(estimators, name)(COLUMNS).fit(*table)
    return {**parts, "total": total, "again": time.process_time() - total}


def _watched() -> dict[str, float]:
    """Starts to count CPU seconds of tracing and compiling; returns the dict that holds them."""
    import jax

    from fsjax.engine import check_run, programs

    spent, depth = {"tracing": 0.0, "compiling": 0.0}, []

    def watch(owner: Any, function: str, part: str) -> None:
        inner = getattr(owner, function)

        @functools.wraps(inner)
        def timed(*args: Any, **options: Any) -> Any:
            depth.append(0.0)  # seconds of nested calls
            started = time.process_time()
            try:
                return inner(*args, **options)
            finally:
                seconds = time.process_time() - started
                spent[part] += seconds - depth.pop()
                if depth:
                    depth[-1] += seconds

        setattr(owner, function, timed)

    watch(jax.stages.Lowered, "compile", "compiling")
    watch(programs.Program, "compiled", "tracing")
    watch(check_run, "check_functions", "tracing")
    return spent


def cold_and_warm(name: str) -> dict[str, float]:
    """Runs :func:`first_fit` in two processes that share a compilation cache, at first empty."""
    values: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cache in ("cold", "warm"):
            command = [sys.executable, "-m", "experiments.benchmarks.first_fit", name]
            # Bytecode is cached, as for an installed package.
            environment = os.environ | {"FSJAX_CACHE": folder, "PYTHONDONTWRITEBYTECODE": ""}
            process = subprocess.run(
                command, env=environment, check=True, text=True, stdout=subprocess.PIPE
            )
            parts = json.loads(process.stdout.splitlines()[-1])
            values |= {f"{cache}_{part}": seconds for part, seconds in parts.items()}
    return values


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    from experiments.benchmarks.timing import case
    from fsjax.estimators import ESTIMATORS

    names = [estimator.__name__ for estimator in ESTIMATORS.values()]
    return {f"first_fit/{name}": case(cold_and_warm, name) for name in names}


if __name__ == "__main__":
    print(json.dumps(first_fit(sys.argv[1])))
