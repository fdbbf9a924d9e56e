"""Are the comparisons of ``fsjax select`` right, and how often do they say anything?

    python -m experiments.studies.selection.comparisons --workdir=runs/study --draws=30

Ten kinds of tables: the selection is compared with all columns, random ones and the selections of
other methods, over rows (as the library does) and over the folds of cross-validation with the error
of Nadeau and Bengio. The truth is the difference of the scores on 20,000 fresh rows of models that
are fitted to the whole table. "Better" where the true difference is not above 0, and "worse" where
it is not below, are false claims; the power is the share of comparisons with a true difference
above the margin that are decided. Rows of ``comparisons.csv`` are not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import beta
from threadpoolctl import threadpool_limits

from experiments.launch import cli
from experiments.launch.csv_rows import add_rows, read_rows
from fsjax.auto.certainty.comparisons import paired_difference
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.differences import BETTER, WORSE, difference
from fsjax.auto.contest.fold_records import chance_level
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.contest.judge import judged, judges_of
from fsjax.auto.contest.method_names import ALL, RANDOM
from fsjax.auto.contest.problem import Problem, on_rows, sizes_of
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.row_rankings import full_order, on_all_rows
from fsjax.auto.contest.rule import nested_scores
from fsjax.auto.contest.scoring import choose_metric
from fsjax.auto.reading.columns import design_of_array
from fsjax.storage.atomic_files import write_text

#: Fresh rows for the truth, and draws of random columns.
_FRESH, _RANDOM = 20_000, 10

#: The contenders of the study.
_METHODS = (RANDOM, "univariate", "l1")


class Rows(NamedTuple):
    """Rows of a table: ``X (N, D)``, ``y (N,)``, and groups ``(N,)`` of rows, if there are any."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None


class Kind(NamedTuple):
    """A kind of tables: how rows are drawn, how many, the task, and the judge."""

    draw: Callable[[np.random.Generator, int], Rows]
    rows: int
    task: str
    judge: str = "linear"


def _linear(columns: int, relevant: int, noise: float) -> Callable[..., Rows]:
    def draw(rng: np.random.Generator, rows: int) -> Rows:
        X = rng.normal(size=(rows, columns))
        return Rows(X, X[:, :relevant].sum(axis=1) + noise * rng.normal(size=rows))

    return draw


def _classes(of: Callable[..., Rows], share: float = 0.5) -> Callable[..., Rows]:
    def draw(rng: np.random.Generator, rows: int) -> Rows:
        X, y, groups = of(rng, rows)
        # The threshold is that of many rows.
        threshold = np.quantile(of(np.random.default_rng(1), 20_000).y, 1.0 - share)
        return Rows(X, (y > threshold).astype(int), groups)

    return draw


def _copies(rng: np.random.Generator, rows: int) -> Rows:
    signal = rng.normal(size=rows)
    X = signal[:, None] + 0.7 * rng.normal(size=(rows, 20))
    return Rows(X, signal + rng.normal(size=rows))


def _heavy(rng: np.random.Generator, rows: int) -> Rows:
    X = rng.standard_t(2.5, size=(rows, 20))
    return Rows(X, np.clip(X[:, 0] - X[:, 1], -3, 3) + rng.standard_t(3, size=rows))


def _patients(rng: np.random.Generator, rows: int) -> Rows:
    groups = np.arange(rows) // 5
    centre = rng.normal(size=(groups[-1] + 1, 20))[groups]
    X = centre + 0.5 * rng.normal(size=centre.shape)
    shift = rng.normal(size=groups[-1] + 1)[groups]
    return Rows(X, X[:, :2].sum(axis=1) + shift + 0.5 * rng.normal(size=rows), groups)


def _ring(rng: np.random.Generator, rows: int) -> Rows:
    X = rng.normal(size=(rows, 12))
    return Rows(X, np.square(X[:, :2]).sum(axis=1) + 0.3 * rng.normal(size=rows))


def _counts(rng: np.random.Generator, rows: int) -> Rows:
    X = rng.normal(size=(rows, 20))
    return Rows(X, rng.poisson(np.exp(0.5 * X[:, 0] - 0.4 * X[:, 1])).astype(float))


def _survival(rng: np.random.Generator, rows: int) -> Rows:
    X = rng.normal(size=(rows, 20))
    time = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1]))
    limit = rng.exponential(2.0, size=rows)
    return Rows(X, np.stack([np.minimum(time, limit), time <= limit], axis=1).astype(float))


KINDS: dict[str, Kind] = {
    "linear": Kind(_linear(20, 3, 2.0), 150, "regression"),
    "two classes": Kind(_classes(_linear(30, 3, 1.5)), 200, "classification"),
    "copies": Kind(_copies, 150, "regression"),
    "heavy tails": Kind(_classes(_heavy), 250, "classification"),
    "rare class": Kind(_classes(_linear(20, 2, 1.5), 0.08), 500, "classification"),
    "patients": Kind(_patients, 200, "regression"),
    "ring": Kind(_classes(_ring), 200, "classification", "rbf"),
    "wide": Kind(_classes(_linear(300, 5, 1.0)), 80, "classification"),
    "counts": Kind(_counts, 200, "counts"),
    "survival": Kind(_survival, 150, "survival"),
}


def contest_of(kind: Kind, rows: Rows, seed: int) -> Contest:
    """The contest of a few methods on rows of a kind, all folds run."""
    design = design_of_array(rows.X, None, None)
    judge = next(judge for judge in judges_of(kind.task) if judge.name == kind.judge)
    metric = choose_metric(None, kind.task, rows.y)
    problem = Problem(
        design, rows.y, kind.task, metric, [], _METHODS, seed,
        sizes=sizes_of(design.num_units), judge=judge, row_groups=rows.groups,
    )  # fmt: skip
    problem = on_rows(problem, np.arange(len(rows.y)))
    contest = Contest(problem, Ledger(None), Clock(1e9))
    contest.run_needed(1.0)
    contest.run_simple(1.0)
    contest.run_further_rounds(1.0)
    return contest


def compared(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each comparison of one table, if the selection is better than no column."""
    kind = KINDS[name]
    rng = np.random.default_rng((seed, list(KINDS).index(name)))
    rows, fresh = kind.draw(rng, kind.rows), kind.draw(rng, _FRESH)
    contest = contest_of(kind, rows, seed)
    problem, scores, choice = contest.problem, contest.records.scores(), contest.choice()
    honest = nested_scores(scores, problem.folds, problem.metric.margin)
    if choice is None or choice.method == ALL:
        return
    if not np.nanmean(honest - chance_level(problem)[: problem.folds]) > 0:
        return
    truth = _Truth(contest, fresh)
    selected = full_order(on_all_rows(problem, contest, choice))[: choice.size]
    own = truth.score(selected)
    for other, size in ((ALL, problem.design.num_units), *((m, choice.size) for m in _METHODS)):
        if other == choice.method or (other, size) not in scores:
            continue
        by_rows = paired_difference(contest, choice, other)
        if by_rows is None:
            raise ValueError(f"{name}, {other}: no scores of rows")
        first, second = scores[choice.method, choice.size], scores[other, size]
        by_folds = difference(first, second, problem.share)
        yield {
            "kind": name,
            "draw": seed,
            "against": other,
            "size": choice.size,
            "truth": own - truth.of(other, choice.size, rng),
            "margin": problem.metric.margin,
            "rows_difference": by_rows.mean,
            "rows_verdict": by_rows.verdict(problem.metric.margin),
            "folds_difference": by_folds.mean,
            "folds_verdict": by_folds.verdict(problem.metric.margin),
        }


class _Truth:
    """Scores on fresh rows of models fitted to the whole table."""

    def __init__(self, contest: Contest, fresh: Rows) -> None:
        problem = contest.problem
        count = len(problem.y)
        if problem.task == "survival":
            # Pairs of rows are compared.
            fresh = Rows(fresh.X[:2_000], fresh.y[:2_000])
        design = design_of_array(np.concatenate([problem.design.X, fresh.X]), None, None)
        y = np.concatenate([problem.y, fresh.y])
        fold = Fold(np.arange(count), np.arange(count, len(y)))
        self._contest, self._sides = contest, parts(design, y, fold)

    def score(self, units: np.ndarray) -> float:
        problem = self._contest.problem
        return judged(
            self._contest.judge, problem.metric, problem.task, *self._sides, np.sort(units)
        ).score

    def of(self, name: str, size: int, rng: np.random.Generator) -> float:
        units = self._contest.problem.design.num_units
        if name == ALL:
            return self.score(np.arange(units))
        if name == RANDOM:
            draws = [rng.choice(units, size, replace=False) for _ in range(_RANDOM)]
            return float(np.mean([self.score(draw) for draw in draws]))
        choice = self._contest.choice()._replace(method=name, size=size)  # type: ignore[union-attr]
        ranking = on_all_rows(self._contest.problem, self._contest, choice)
        return self.score(full_order(ranking)[:size])


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """False claims and power by kind and for all, over rows and over folds, in percent."""
    lines = []
    for name, part in [*table.groupby("kind", sort=False), ("all", table)]:
        line: dict[str, Any] = {"kind": name, "comparisons": len(part)}
        matters = part["truth"].abs() > part["margin"]
        for over in ("rows", "folds"):
            verdict = part[f"{over}_verdict"]
            false = int(
                (((verdict == BETTER) & (part["truth"] <= 0))
                 | ((verdict == WORSE) & (part["truth"] >= 0))).sum()
            )  # fmt: skip
            right = np.where(part["truth"] > 0, verdict == BETTER, verdict == WORSE) & matters
            line[f"false claims, {over}"] = f"{100 * false / len(part):.1f}"
            if name == "all":
                low, high = beta.ppf(
                    [0.025, 0.975], [false, false + 1], [len(part) - false + 1, len(part) - false]
                )
                low = np.nan_to_num(low)
                line[f"false claims, {over}"] += f" ({100 * low:.1f} to {100 * high:.1f})"
            line[f"power, {over}"] = (
                f"{100 * right.sum() / matters.sum():.0f}" if matters.any() else ""
            )
        lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Entry point."""
    settings = flags.FLAGS
    path = Path(settings.workdir) / "comparisons.csv"
    table = read_rows(path)
    done = set() if table.empty else set(zip(table["kind"], table["draw"], strict=True))
    with threadpool_limits(1):
        for seed in range(settings.draws):
            for name in settings.kinds:
                if (name, seed) not in done and (rows := list(compared(name, seed))):
                    table = add_rows(table, rows, path)
    text = summary(table).to_markdown(index=False, disable_numparse=True)
    print(text)
    if settings.publish:
        write_text(Path(settings.publish) / "selection_study_comparisons.md", text + "\n")


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_integer("draws", 30, "Tables of each kind.", lower_bound=1)
    flags.DEFINE_list("kinds", list(KINDS), "Kinds of tables.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown table.")
    flags.DEFINE_string("workdir", None, "Folder for comparisons.csv.")


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
