"""Writes the tables of methods and tasks in README.md and docs, from the registrations.

    python docs/make_tables.py

A test fails where a table is not what this would write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fsjax.methods import METHODS
from fsjax.registry import Registration, about_of
from fsjax.storage.atomic_files import write_text
from fsjax.tasks import TABLE, TASKS

ROOT = Path(__file__).parents[1]

#: Around a table that is generated, of what it is about.
BEGIN, END = "<!-- {}: written by docs/make_tables.py -->", "<!-- {}: end -->"

#: What the tasks are called in the tables.
LETTERS = {name: TABLE[name].letter for name in TASKS}


def readme_table() -> str:
    """Paper, function, estimator and configuration of every method."""
    rows = []
    for one in _registrations():
        own = Path("configs") / f"{one.name}.py"
        config = str(own) if (ROOT / own).exists() else f"configs/any.py:{one.name}"
        rows.append((f"`fsjax.methods.{one.name}`", one.paper, f"`{one.estimator}`", f"`{config}`"))
    return _markdown(("method", "paper", "estimator", "config"), rows)


def choosing_table() -> str:
    """What every method looks at and optimises, and how it arrives at K columns."""
    header = ("estimator", "labels", "tasks", "sparse X", "number of columns", "what it optimises")
    rows = []
    for one in _registrations():
        about = about_of(one)
        tasks = ", ".join(LETTERS[task] for task in about.tasks)
        labels = "yes"
        if "reconstruction" in about.tasks:
            labels = "no" if len(about.tasks) == 1 else "yes, or no for U"
        number = "ranking"
        if about.gates:
            number = "its own, or a search for K"
        elif about.num_features is not None:
            number = "made for K"
        sparse = "yes" if about.sparse else "no"
        rows.append((f"`{one.estimator}`", labels, tasks, sparse, number, one.optimises))
    return _markdown(header, rows)


def tasks_table() -> str:
    """What y is for every task, what a network gives, and how it is judged."""
    rows = []
    for name in TASKS:
        task = TABLE[name]
        loss = task.loss.__name__.replace("_", " ")
        rows.append((f"`{name}`", task.target, task.outputs, loss, task.score_name))
    return _markdown(("task", "y", "outputs of a network", "loss", "`score`"), rows)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables() -> dict[Path, str]:
    """The text of every page with a table, with the table made anew."""
    found = {
        ROOT / "README.md": ("methods", readme_table()),
        ROOT / "docs" / "choosing.md": ("methods", choosing_table()),
        ROOT / "docs" / "targets.md": ("tasks", tasks_table()),
    }
    return {page: _replaced(page.read_text(), *table) for page, table in found.items()}


def _registrations() -> list[Registration]:
    ours = [build.registration for build in METHODS.values()]
    return [one for one in ours if one.build.__module__.startswith("fsjax.methods")]


def _replaced(text: str, about: str, table: str) -> str:
    first, last = BEGIN.format(about), END.format(about)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"there is no {first} ... {last} in the page")
    return f"{before}{first}\n{table}\n{last}{after}"


if __name__ == "__main__":
    for _page, _text in tables().items():
        write_text(_page, _text)
        print(_page.relative_to(ROOT))
