"""Writes tables and numbers of README.md, docs and configs, from registrations and measurements.

    python docs/make_tables.py

The tables of methods and tasks come from the registrations, the numbers of measurements from their
files (``tools/documented_values.py``), and so do the tables of the papers' verdicts
(``docs/make_verdicts.py``). The arena's ratings stand in README and in the page on choosing, and
give the order in which methods compete in ``fsjax select``. A test fails if a page differs from
what this would write.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from fsjax.auto.contest.network_settings import COSTS
from fsjax.methods import METHODS
from fsjax.registry import Registration, about_of
from fsjax.storage.atomic_files import write_text
from fsjax.tasks import TABLE, TASKS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from experiments.arena import conclusions, ratings, rows  # noqa: E402
from experiments.arena.launch import RECORDED  # noqa: E402
from experiments.arena.verdict import SHAPES  # noqa: E402
from tools import documented_values  # noqa: E402

#: The lines before and after a generated table, with its subject.
BEGIN, END = "<!-- {}: written by docs/make_tables.py -->", "<!-- {}: end -->"

#: The letter of each task in the tables.
LETTERS = {name: TABLE[name].words.letter for name in TASKS}


def readme_table() -> str:
    """Table of the function, paper, estimator and configuration of every method."""
    rows = []
    for method in _registrations():
        file = Path("configs") / f"{method.name}.py"
        config = str(file) if (ROOT / file).exists() else f"configs/any.py:{method.name}"
        function, estimator = f"`fsjax.methods.{method.name}`", f"`{method.estimator}`"
        rows.append((function, method.paper, estimator, f"`{config}`"))
    return _markdown(("method", "paper", "estimator", "config"), rows)


def choosing_table() -> str:
    """Table of what every method uses and optimizes, and how it arrives at K columns."""
    header = ("estimator", "labels", "tasks", "sparse X", "number of columns", "what it optimises")
    rows = []
    for method in _registrations():
        about = about_of(method)
        tasks = ", ".join(LETTERS[task] for task in about.tasks)
        labels = "yes"
        if "reconstruction" in about.tasks:
            labels = "no" if len(about.tasks) == 1 else "yes, or no for U"
        number = "ranking"
        if about.gates:
            search = METHODS[method.name]().search
            number = "its own, or a search for K" if search else "its own, or a ranking"
        elif about.num_features is not None:
            number = "made for K"
        sparse = "yes" if about.sparse else "no"
        rows.append((f"`{method.estimator}`", labels, tasks, sparse, number, method.optimises))
    return _markdown(header, rows)


def tasks_table() -> str:
    """Table of the targets, network outputs, loss and score of every task."""
    rows = []
    for name in TASKS:
        task = TABLE[name]
        loss = task.objective.loss.__name__.replace("_", " ")
        words = task.words
        rows.append((f"`{name}`", words.target, words.outputs, loss, words.score_name))
    return _markdown(("task", "y", "outputs of a network", "loss", "`score`"), rows)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def contender_order() -> str:
    """The module that holds the order of the contenders: filters first, then networks, by rating.

    Filters take a second or less, so that they do not keep networks from competing.
    """
    scores = ratings.scored(rows.read(RECORDED))
    lines = []
    for name, shapes in (("NARROW", set(SHAPES) - {"wide"}), ("WIDE", {"wide"})):
        order = conclusions.contender_order(scores, shapes, list(COSTS))
        order.sort(key=lambda method: COSTS[method].steps != 1)
        lines.append(f"{name}: Final = (\n" + "".join(f'    "{m}",\n' for m in order) + ")\n")
    return (
        '"""The order in which methods compete, by ratings in the arena; written by '
        'docs/make_tables.py."""\n\nfrom typing import Final\n\n'
        "#: The most promising first: on tables of more rows than columns, and on the others.\n"
        + "".join(lines)
    )


def tables() -> dict[Path, str]:
    """Text of every page that has a generated table or number, with these up to date."""
    best = (ROOT / "docs" / "tables" / "arena_best.md").read_text().strip()
    generated = {
        ROOT / "README.md": {"methods": readme_table(), "ratings": best},
        ROOT / "docs" / "choosing.md": {"methods": choosing_table(), "ratings": best},
        ROOT / "docs" / "targets.md": {"tasks": tasks_table()},
    }
    texts = runpy.run_path(str(ROOT / "docs" / "make_verdicts.py"))["tables"]()
    texts[ROOT / "fsjax" / "auto" / "contest" / "contender_order.py"] = contender_order()
    for page in documented_values.files():
        text = page.read_text()
        for subject, table in generated.get(page, {}).items():
            text = _replaced(text, subject, table)
        texts[page] = documented_values.filled(page, text)
    return texts


def _registrations() -> list[Registration]:
    registrations = [build.registration for build in METHODS.values()]
    return [entry for entry in registrations if entry.build.__module__.startswith("fsjax.methods")]


def _replaced(text: str, subject: str, table: str) -> str:
    first, last = BEGIN.format(subject), END.format(subject)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page has no lines {first} and {last}; add them around the table")
    return f"{before}{first}\n{table}\n{last}{after}"


if __name__ == "__main__":
    for _page, _text in tables().items():
        if _text != _page.read_text():
            write_text(_page, _text)
            print(_page.relative_to(ROOT))
