"""Runs ``fsjax select`` as a user does, in its own process, and measures it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from absl import flags

from experiments.artifacts.markdown import as_rows
from experiments.launch.csv_rows import add_rows, read_rows
from fsjax.methods import METHODS
from fsjax.storage.atomic_files import write_text

#: A command is killed after this multiple of its budget plus these seconds.
_PATIENCE, _GRACE = 4.0, 120.0

#: Methods of the library that are not networks.
_WITHOUT_NETWORK = frozenset(
    "cife fisher_score gjsd icap l1_l21 laplacian_score mcfs random_selection rfs".split()
)

#: Metrics of ``selection.json`` that are in percent; the others are at most 1.
_PERCENT = ("accuracy", "label_accuracy")


class Question(NamedTuple):
    """A call of ``fsjax select``.

    Attributes:
      key: identifies the call: values by column of the file of results.
      write: writes the table into a folder; returns its path, and the flags that it needs.
      budget: seconds.
      flags: further flags.
    """

    key: Mapping[str, Any]
    write: Callable[[Path], tuple[Path, list[str]]]
    budget: float
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the folder of its report."""
        return "-".join(str(value).replace(" ", "_") for value in self.key.values())


class Answer(NamedTuple):
    """The outcome of a call.

    Attributes:
      seconds: from the start of the process to its end.
      cpu_seconds: of all its threads and processes, hardly affected by other work.
      peak_mib: peak resident memory.
      code: exit status; negative after a signal.
      selection: the content of ``selection.json``; empty if there is none.
      contenders: names of the methods with a score, sorted.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: float
    code: int
    selection: Mapping[str, Any]
    contenders: tuple[str, ...]

    @property
    def networks(self) -> tuple[str, ...]:
        """The contenders that are neural networks of this library."""
        return tuple(sorted(set(self.contenders) & set(METHODS) - _WITHOUT_NETWORK))

    @property
    def verdict(self) -> str:
        """The answer to whether the target can be predicted, in a word."""
        if not self.selection:
            return "no answer"
        names = {True: "something", False: "nothing", None: "undecided"}
        return names[self.selection["better_than_chance"]]

    def to_row(self) -> dict[str, Any]:
        """The row for a file of results; scores are in percent, or times 100."""
        selection = self.selection
        scale = 1.0 if selection.get("metric") in _PERCENT else 100.0
        claimed = selection.get("score")
        return {
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "peak_mib": round(self.peak_mib),
            "code": self.code,
            "verdict": self.verdict,
            "method": selection.get("method", ""),
            "k": selection.get("num_features", ""),
            "p_value": selection.get("p_value", ""),
            "claimed": "" if claimed is None else round(scale * claimed, 2),
            "metric": selection.get("metric", ""),
            "judge": judge_name(selection.get("judge")),
            "networks": len(self.networks),
            "contenders": " ".join(self.contenders),
        }


def judge_name(text: str | None) -> str:
    """The judge of the study that resembles the one of a selection.

    Args:
      text: ``judge`` in ``selection.json``; older files have none and used an SVM.
    """
    words = (text or "").lower()
    if "tree" in words or "boost" in words:
        return "boosting"
    if any(word in words for word in ("linear", "logistic", "ridge")):
        return "linear"
    return "svm"


def answer_all(
    questions: Iterable[Question],
    path: Path,
    parallel: int = 1,
    more: Callable[[Question, Answer], dict[str, Any]] = lambda question, answer: {},
) -> pd.DataFrame:
    """Runs the calls that a file of results lacks, and adds a row as each one ends.

    Args:
      questions: all with the same columns as key.
      path: the CSV file; reports are written to the folder of the same name without suffix.
      parallel: number of calls at a time.
      more: makes further columns of a row.

    Returns:
      All rows of the file.
    """
    rows, listed = read_rows(path), list(questions)
    names = list(listed[0].key) if listed else []
    done = set() if rows.empty else set(rows[names].itertuples(index=False, name=None))
    missing = [question for question in listed if tuple(question.key.values()) not in done]
    for question, answer in ask(missing, path.with_suffix(""), parallel):
        row = {**question.key, **answer.to_row(), **more(question, answer)}
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        rows = add_rows(rows, [row], path)
    # Read again, so that empty cells are the same in new and in old rows.
    return read_rows(path)


def define_study_flags(budget: int) -> None:
    """Defines the flags that :func:`run_study` uses."""
    flags.DEFINE_string("workdir", None, "Folder for the results; calls in it are not repeated.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown table; the workdir by default.")
    flags.DEFINE_integer("budget", budget, "Seconds (--budget) of fsjax select.", lower_bound=1)


def run_study(
    name: str,
    questions: Iterable[Question],
    page: Callable[[pd.DataFrame], pd.DataFrame],
    more: Callable[[Question, Answer], dict[str, Any]],
    parallel: int = 1,
) -> None:
    """Runs the calls that ``NAME.csv`` lacks; writes and prints a table of the present budget.

    Args:
      questions: as for :func:`answer_all`.
      page: makes the table, in text, from the rows.
      more: makes further columns of a row.
      parallel: number of calls at a time.
    """
    options = flags.FLAGS
    workdir = Path(options.workdir)
    rows = answer_all(questions, workdir / f"{name}.csv", parallel, more)
    table = page(rows[rows["budget"] == options.budget])
    path = Path(options.publish or workdir) / f"selection_study_{name}.md"
    write_text(path, as_rows(table))
    print(table.to_string(index=False))


class _Running(NamedTuple):
    question: Question
    process: subprocess.Popen
    started: float
    workdir: Path
    table: Path


def ask(
    questions: Iterable[Question], folder: Path, parallel: int = 1
) -> Iterator[tuple[Question, Answer]]:
    """Runs calls, several at a time.

    Args:
      folder: for the reports, each in its own subfolder, which is emptied first.
      parallel: number of calls at a time; with more than one, each has one BLAS thread.

    Yields:
      A call and its outcome, as it ends.
    """
    waiting = iter(questions)
    running: list[Any] = []
    try:
        while True:
            while len(running) < parallel:
                question = next(waiting, None)
                if question is None:
                    break
                running.append(_start(question, folder, parallel))
            if not running:
                return
            time.sleep(0.02)
            for job in list(running):
                answer = _poll(job)
                if answer is not None:
                    running.remove(job)
                    yield job.question, answer
    finally:
        for job in running:
            job.process.kill()


def _start(question: Question, folder: Path, parallel: int) -> _Running:
    workdir = folder / question.name
    shutil.rmtree(workdir, ignore_errors=True)
    workdir.mkdir(parents=True)
    (tables := folder / "tables" / question.name).mkdir(parents=True, exist_ok=True)
    path, table_flags = question.write(tables)
    command = [
        *(sys.executable, "-m", "fsjax", "select", str(path), *table_flags, *question.flags),
        *(f"--budget={question.budget:g}s", f"--workdir={workdir}", "--quiet"),
    ]
    settings = {"OMP_NUM_THREADS": "1"} if parallel > 1 else {}
    # A user's Python does not compile its libraries anew in each process.
    settings["PYTHONDONTWRITEBYTECODE"] = ""
    with (workdir / "output.txt").open("w") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **settings}
        )
    return _Running(question, process, started, workdir, tables)


def _poll(job: _Running) -> Answer | None:
    seconds = time.monotonic() - job.started
    if seconds > _PATIENCE * job.question.budget + _GRACE:
        job.process.kill()
    # Not Popen.poll: only wait4 reports the memory of this child alone.
    pid, status, usage = os.wait4(job.process.pid, os.WNOHANG)
    if not pid:
        return None
    job.process.returncode = code = os.waitstatus_to_exitcode(status)
    shutil.rmtree(job.table)
    path = job.workdir / "selection.json"
    selection = json.loads(path.read_text()) if path.exists() else {}
    contenders: tuple[str, ...] = ()
    if selection:
        contenders = tuple(sorted(set(pd.read_csv(job.workdir / "curves.csv")["method"])))
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Answer(seconds, cpu_seconds, usage.ru_maxrss / 1024, code, selection, contenders)
