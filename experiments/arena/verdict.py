"""What the rows say: places, failures, the front of score and time, and what moves a conclusion."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from experiments.arena.judges import JUDGES
from experiments.arena.processes import DEFAULT
from experiments.arena.ratings import CERTAIN, MIN_TABLES, Ratings, Scores, by_split, rate, scored
from experiments.arena.rows import SCORES_OF_ALL
from experiments.arena.runs import ALL, NOT_FOR_TASK, SPLITS
from experiments.arena.selectors import RANDOM
from experiments.arena.tables import SIZES, TABLES
from experiments.artifacts.statistics.ranks import Ranks, rank
from fsjax.evaluation import nogueira_stability, selection_mask

#: Shapes of tables that are rated, in the order of the pages.
SHAPES = ("narrow", "wide", "long", "grouped")

#: Draws of half of the rivals, to see how places depend on who takes part.
_HALVES = 50

#: Columns whose stability over the splits is measured.
_FIRST = 10


def of_shapes(scores: Scores, shapes: Collection[str]) -> Scores:
    """The scores on tables of some shapes."""
    some = [TABLES[name].shape in shapes for name in scores.tables]
    names = [name for name, chosen in zip(scores.tables, some, strict=True) if chosen]
    return scores._replace(values=scores.values[some], tables=names)


def ranks(scores: Scores) -> Ranks | None:
    """Mean ranks of the selectors that have a score on every table; None without enough of them.

    Tables on which fewer than half of the selectors have run do not count.
    """
    means = scores.means()
    means = means[means.notna().mean(axis=1) >= 0.5].dropna(axis=1)
    return rank(means) if means.shape[0] > 1 and means.shape[1] > 2 else None


def places(scores: Scores) -> pd.DataFrame:
    """The smallest and largest place of a selector when some tables or rivals are left out.

    Returns:
      By selector, its ``place`` among all, and the ends of its places without each table and each
      shape of tables in turn (``least``, ``most``), and among random halves of its rivals, as
      shares of their number (``least_share``, ``most_share``, in [0, 1], 0 is the first place).
    """
    names = scores.selectors
    overall = rate(scores, 1).elo
    shapes = [TABLES[name].shape for name in scores.tables]
    without = []
    for label, of in [*((name, scores.tables) for name in scores.tables),
                      *((shape, shapes) for shape in set(shapes))]:  # fmt: skip
        some = [name != label for name in of]
        if any(some):
            kept = scores._replace(values=scores.values[some])
            without.append(rate(kept, 1).elo.rank(ascending=False))
    shares: dict[str, list[float]] = {name: [] for name in names}
    rng = np.random.default_rng(0)
    for _ in range(_HALVES):
        chosen = np.sort(rng.permutation(len(names))[: max(3, len(names) // 2)])
        part = Scores(scores.values[:, :, chosen], scores.tables, [names[i] for i in chosen])
        place = rate(part, 1).elo.rank(ascending=False)
        for name, value in place.items():
            shares[str(name)].append((value - 1) / (len(place) - 1))
    places_without = pd.DataFrame(without or [overall.rank(ascending=False)])
    return pd.DataFrame(
        {
            "place": overall.rank(ascending=False),
            "least": places_without.min(),
            "most": places_without.max(),
            "least_share": pd.Series({name: min(v, default=np.nan) for name, v in shares.items()}),
            "most_share": pd.Series({name: max(v, default=np.nan) for name, v in shares.items()}),
        }
    ).loc[overall.index]


def summary(rows: pd.DataFrame) -> tuple[pd.DataFrame, Ratings]:
    """A line for each selector, best first, and the ratings.

    Columns: ``elo``, ``low``, ``high``; the ratings by shape; ``tables`` and ``failed`` (tables on
    which a split failed, of those that are rated); ``beats all`` (share of tables on which its
    columns score no less than all columns, at the largest number); ``found`` and ``false`` (means
    over tables of shares, see :func:`runs.truth`); ``stability`` of 10 columns over the splits;
    ``seconds`` and ``memory`` (medians over selections). Failures count as random columns.
    """
    scores = scored(rows)
    ratings = rate(scores)
    table = pd.DataFrame({"elo": ratings.elo}).join(ratings.interval())
    for shape in SHAPES:
        part = of_shapes(scores, (shape,))
        if part.tables and len(elo := rate(part, 1).elo):
            table[shape] = elo
    table["tables"] = ratings.tables
    failed = rows[~rows["failure"].isin(["", NOT_FOR_TASK]) & rows["table"].isin(scores.tables)]
    table["failed"] = failed.groupby("selector")["table"].nunique()
    table["failed"] = table["failed"].fillna(0).astype(int)
    table["beats all"] = _beats_all(rows)
    for name in ("found", "false"):
        table[name] = by_split(rows, rows[name]).means().mean()
    table["stability"] = _stability(rows)
    table["seconds"] = _median(rows, "cpu_seconds", "time")
    table["memory"] = _median(rows, "memory", "memory")
    return table, ratings


def _median(rows: pd.DataFrame, name: str, failure: str) -> pd.Series:
    """The median of what selections used; those that were skipped count at their limit."""
    stopped = rows["failure"] == failure
    limits = rows["limit"].astype(float).fillna(DEFAULT.of(failure)).where(stopped)
    return rows[name].astype(float).fillna(limits).groupby(rows["selector"]).median()


def _beats_all(rows: pd.DataFrame) -> pd.Series:
    """The share of tables on which the largest selection scores at least as much as all columns."""
    at = {size: rows[[f"{judge}@{size}" for judge in JUDGES]].mean(axis=1) for size in SIZES}
    largest = pd.DataFrame(at).ffill(axis=1).iloc[:, -1]
    scores = by_split(rows, rows[SCORES_OF_ALL].mean(axis=1).fillna(largest))
    if ALL not in scores.selectors:
        return pd.Series(dtype=float)
    # Sums of the same scores may differ in the last digit.
    differences = scores.minus(ALL).round(9)
    return differences.ge(0.0).where(differences.notna()).mean()


def _stability(rows: pd.DataFrame) -> pd.Series:
    """Mean stability (Nogueira et al.) of the first ten columns over the splits of each table."""
    values: dict[str, list[float]] = {}
    for (_, selector), part in rows[rows["ranking"].notna()].groupby(["table", "selector"]):
        chosen = [np.asarray(ranking)[:_FIRST] for ranking in part["ranking"]]
        if len(chosen) > 1 and all(len(columns) == _FIRST for columns in chosen):
            mask = selection_mask(np.array(chosen), int(part["columns"].iloc[0]))
            values.setdefault(selector, []).append(nogueira_stability(mask).value)
    return pd.Series(
        {name: float(np.nanmean(found)) for name, found in values.items()}, dtype=float
    )


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """Failures by selector and reason: ``selector``, ``failure``, ``reason``, ``tables``."""
    part = rows[~rows["failure"].isin(["", NOT_FOR_TASK])]
    part = part.assign(reason=part["reason"].str.replace(r"was stopped on .*", "", regex=True))
    grouped = part.groupby(["selector", "failure"])["table"].agg(
        lambda names: ", ".join(dict.fromkeys(names))
    )
    return grouped.reset_index()


def extent(rows: pd.DataFrame) -> str:
    """What the rows cover, in a sentence."""
    hours, each = (
        rows["cpu_seconds"].sum() / 3600,
        rows.groupby(["table", "split"])["selector"].nunique(),
    )
    splits = each[each > 1].groupby("table").size().value_counts().sort_index()
    parts = ", ".join(f"{n} with {number} of {len(SPLITS)} splits" for number, n in splits.items())
    return (
        f"{splits.sum()} of {len(TABLES)} tables ({parts}), {rows['selector'].nunique()} selectors "
        f"and controls: {len(rows)} selections that took {hours:.1f} CPU hours."
    )


def front(table: pd.DataFrame) -> list[str]:
    """Selectors above which no other is both rated higher and faster, the fastest first."""
    names: list[str] = []
    best = -np.inf
    timed = table.dropna(subset=["seconds"]).sort_values(
        ["seconds", "elo"], ascending=[True, False]
    )
    for name, line in timed.iterrows():
        if line["elo"] > best and name != RANDOM:
            names, best = [*names, str(name)], line["elo"]
    return names


def sentence(name: str, ratings: Ratings) -> str:
    """The place of a selector, and of whom it is certainly better or worse, in words."""
    names = [str(other) for other in ratings.elo.index]
    interval = ratings.interval().loc[name]
    others = [other for other in names if other != name]
    better = [other for other in others if ratings.certainly_better(name, other)]
    worse = [other for other in others if ratings.certainly_better(other, name)]
    unknown = len(others) - len(better) - len(worse)
    limits = f"95 % interval {interval['low']:.0f} to {interval['high']:.0f}; "
    if ratings.tables[name] < MIN_TABLES:
        limits = f"no interval, as there are fewer than {MIN_TABLES} tables; "
    return (
        f"{name}: place {names.index(name) + 1} of {len(names)}, Elo {ratings.elo[name]:.0f} "
        f"({limits}random columns 1000).\n"
        f"Certainly better than {_list(better)}; certainly worse than {_list(worse)}; the tables "
        f"are too few to tell for the other {unknown}. Certain is what holds in at least "
        f"{100 * CERTAIN:g} % of {len(ratings.draws):,} draws of the tables."
    )


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
