"""The first fit of every estimator in a fresh process, with a cold and a warm compilation cache.

The module has few imports of its own, as it is the main module of the processes that are measured:
``python -m experiments.benchmarks.first_fit IPCAE`` prints what the first fit of one estimator
spends on each program. Without a name, all estimators are measured one after the other, and
``docs/tables/first_fit.md`` is written.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.benchmarks.timing import Case

#: Columns to select from the 30 of scikit-learn's breast cancer data.
COLUMNS = 5

#: The table of all estimators.
TABLE = "docs/tables/first_fit.md"

#: What is measured of a program: it is loaded from its file, or JAX traces it to a jaxpr and lowers
#: that to StableHLO, and XLA compiles it (and JAX stores it); then it runs.
PARTS = ("loading", "tracing", "lowering", "compiling", "running")

#: The columns of the table of all estimators.
SHOWN = tuple((part, "cold") for part in (*PARTS[1:], "fit")) + tuple(
    (part, "warm") for part in ("loading", "running", "fit", "again")
)

#: Work outside of the compiled programs.
CHECK, OTHER = "check_functions", "other"

#: The row of a whole fit.
ALL = "all"

#: CPU seconds by program and part.
Spent = dict[str, dict[str, float]]


def first_fit(name: str) -> dict[str, Any]:
    """Fits an estimator with default arguments in this fresh process.

    Args:
      name: of the estimator's class.

    Returns:
      CPU seconds: ``imports`` (including the interpreter's start), the ``PARTS`` summed over
      programs, ``other`` (the rest: checks of the data, transfers, Python), ``fit`` (all but the
      imports), ``total``, and ``again``, those of a second fit. ``programs`` has the parts of each
      program; programs of one name are counted together. ``check_functions`` is the trace of the
      method's functions.
    """
    from sklearn.datasets import load_breast_cancer

    from fsjax import estimators

    table = load_breast_cancer(return_X_y=True)
    spent = _watched()
    imported = time.process_time()
    getattr(estimators, name)(COLUMNS).fit(*table)
    total = time.process_time()
    programs = {program: dict(parts) for program, parts in spent.items()}
    sums = {part: sum(of.get(part, 0.0) for of in programs.values()) for part in PARTS}
    other = total - imported - sum(sums.values())
    getattr(estimators, name)(COLUMNS).fit(*table)
    again = time.process_time() - total
    return {
        "imports": imported,
        **sums,
        "other": other,
        "fit": total - imported,
        "total": total,
        "again": again,
        "programs": programs,
    }


def _watched() -> Spent:
    """Starts to count CPU seconds by program and part; returns the dict that holds them."""
    import jax

    from fsjax.engine import check_run, program_files, programs

    spent: Spent = {}
    names, nested = [OTHER], [0.0]

    @contextmanager
    def counted(part: str, name: str) -> Iterator[None]:
        """Counts the seconds of a block, without those of blocks inside it."""
        names.append(name)
        nested.append(0.0)
        started = time.process_time()
        try:
            yield
        finally:
            seconds = time.process_time() - started
            of_program = spent.setdefault(names.pop(), {})
            of_program[part] = of_program.get(part, 0.0) + seconds - nested.pop()
            nested[-1] += seconds

    def watch(owner: Any, function: str, part: str, name_of: Callable[[Any], str]) -> None:
        inner = getattr(owner, function)

        @functools.wraps(inner)
        def timed(*args: Any, **options: Any) -> Any:
            with counted(part, name_of(args[0])):
                output = jax.block_until_ready(inner(*args, **options))
            if isinstance(output, jax.stages.Compiled):
                name_of_compiled.setdefault(id(output), name_of(args[0]))
            return output

        setattr(owner, function, timed)

    name_of_compiled: dict[int, str] = {}
    watch(programs.Program, "compiled", "tracing", lambda program: program.__name__)
    watch(program_files, "_load", "loading", lambda _: names[-1])
    watch(jax.stages.Traced, "lower", "lowering", lambda _: names[-1])
    watch(jax.stages.Lowered, "compile", "compiling", lambda _: names[-1])
    watch(jax.stages.Compiled, "__call__", "running", lambda run: name_of_compiled[id(run)])
    watch(check_run, "check_functions", "tracing", lambda _: CHECK)
    return spent


def cold_and_warm(name: str) -> dict[str, dict[str, Any]]:
    """Runs :func:`first_fit` in two processes that share a compilation cache, at first empty."""
    values: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cache in ("cold", "warm"):
            command = [sys.executable, "-m", "experiments.benchmarks.first_fit", name]
            # Bytecode is cached, as for an installed package.
            environment = os.environ | {"FSJAX_CACHE": folder, "PYTHONDONTWRITEBYTECODE": ""}
            process = subprocess.run(
                command, env=environment, check=True, text=True, stdout=subprocess.PIPE
            )
            values[cache] = json.loads(process.stdout.splitlines()[-1])
    return values


def sums(name: str) -> dict[str, float]:
    """The measurements of :func:`cold_and_warm` without those of single programs."""
    return {
        f"{cache}_{part}": seconds
        for cache, parts in cold_and_warm(name).items()
        for part, seconds in parts.items()
        if part != "programs"
    }


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of an estimator in the table: one for all of the fit, and one for each program."""
    measured = cold_and_warm(name)
    programs = {cache: {ALL: values} | values["programs"] for cache, values in measured.items()}
    rows = []
    for program in programs["cold"]:
        row = {"estimator": name, "program": program}
        for part, cache in SHOWN:
            seconds = programs[cache].get(program, {}).get(part)
            row[f"{part}, {cache}"] = "" if seconds is None else f"{seconds:.2f}"
        rows.append(row)
    return rows


def estimators() -> list[str]:
    """The names of all estimators."""
    from fsjax.estimators import ESTIMATORS

    return [estimator.__name__ for estimator in ESTIMATORS.values()]


def write_table(path: str) -> None:
    """Measures all estimators on one core and writes the table after each."""
    import pandas as pd

    from experiments.artifacts.markdown import as_rows

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows: list[dict[str, str]] = []
    for name in estimators():
        rows += rows_of(name)
        Path(path).write_text(as_rows(pd.DataFrame(rows)), encoding="utf-8")


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    from experiments.benchmarks.timing import case

    return {f"first_fit/{name}": case(sums, name) for name in estimators()}


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(first_fit(sys.argv[1])))
    else:
        write_table(TABLE)
