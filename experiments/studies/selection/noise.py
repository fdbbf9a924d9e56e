"""Measures whether ``fsjax select`` finds nothing in noise, and something in a weak signal.

    python -m experiments.studies.selection.noise --workdir=runs/study --draws=20 --budget=25

There are four kinds of noise: independent, in a narrow and a wide table; by patient (columns and
labels belong to the patient, not to the row; ``--groups``); in time order (columns and labels
drift; ``--order``). In the two weak signals ten of 500 columns are shifted between two classes of
30 rows: so that the mean cross-validated AUC of ridge regression is 0.75, or so little that the AUC
of the best linear rule is 0.75, which can hardly be seen in 60 rows. For comparison, a permutation
test with 999 permutations is applied to that ridge regression. Two calls run at a time, with one
thread each. Calls whose rows are in ``noise.csv`` in the workdir are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import beta, norm, rankdata
from sklearn.model_selection import StratifiedKFold

from experiments.launch import cli
from experiments.studies.selection.asking import Answer, Question, define_study_flags, run_study
from fsjax.errors import check_names

#: Weak signals: rows, columns, and shifted columns.
_ROWS, _COLUMNS, _SHIFTED = 60, 500, 10

#: Shifts, in deviations, at which ridge regression or the best linear rule has an AUC of 0.75.
_FOR_RIDGE, _FOR_THE_BEST = 0.93, np.sqrt(2 / _SHIFTED) * norm.ppf(0.75)

#: Rows per patient, and the deviation of their noise; the deviation between patients is 1.
_VISITS, _VISIT_NOISE = 4, 0.3

#: Correlation of consecutive rows.
_MEMORY = 0.9

#: Folds of the permutation test.
_FOLDS = 5

#: Names of the columns with the patient, and with the order of the rows.
_GROUP, _ORDER = "patient", "day"


class Draw(NamedTuple):
    """A frame with the target ``y``, and the flags that it needs."""

    frame: pd.DataFrame
    flags: tuple[str, ...] = ()


def _frame(X: np.ndarray, y: np.ndarray, **columns: np.ndarray) -> pd.DataFrame:
    names = [f"x{index}" for index in range(X.shape[1])]
    frame = pd.DataFrame(X.astype(np.float32), columns=names)
    return pd.concat([frame, pd.DataFrame({**columns, "y": y})], axis=1)


def _halves(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.permutation(np.arange(rows) % 2)


def independent(rng: np.random.Generator, rows: int, columns: int) -> Draw:
    """Columns and balanced labels that are independent of each other."""
    return Draw(_frame(rng.standard_normal((rows, columns)), _halves(rng, rows)))


def by_patient(rng: np.random.Generator, patients: int = 25, columns: int = 60) -> Draw:
    """Columns and labels by patient, four rows each."""
    patient = np.repeat(np.arange(patients), _VISITS)
    X = rng.standard_normal((patients, columns))[patient]
    X = X + _VISIT_NOISE * rng.standard_normal(X.shape)
    frame = _frame(X, _halves(rng, patients)[patient], **{_GROUP: patient})
    return Draw(frame, (f"--groups={_GROUP}",))


def in_time(rng: np.random.Generator, rows: int = 200, columns: int = 20) -> Draw:
    """Columns and labels that drift independently of each other."""
    shocks = rng.standard_normal((rows, columns + 1))
    series = np.zeros_like(shocks)
    series[0] = shocks[0]
    for row in range(1, rows):
        series[row] = _MEMORY * series[row - 1] + np.sqrt(1 - _MEMORY**2) * shocks[row]
    label = (series[:, -1] > np.median(series[:, -1])).astype(int)
    return Draw(_frame(series[:, :-1], label, **{_ORDER: np.arange(rows)}), (f"--order={_ORDER}",))


def weak(rng: np.random.Generator, shift: float) -> Draw:
    """Ten of 500 columns are shifted between the classes by ``shift`` deviations."""
    X, y = rng.standard_normal((_ROWS, _COLUMNS)), _halves(rng, _ROWS)
    X[:, :_SHIFTED] += shift * (y[:, None] - 0.5)
    return Draw(_frame(X, y))


KINDS: dict[str, Callable[[np.random.Generator], Draw]] = {
    "noise 150 x 60": lambda rng: independent(rng, 150, 60),
    "noise 80 x 2000": lambda rng: independent(rng, 80, 2000),
    "noise by patient": by_patient,
    "noise in time": in_time,
    "weak signal": lambda rng: weak(rng, _FOR_RIDGE),
    "hardly any signal": lambda rng: weak(rng, _FOR_THE_BEST),
}


def draw(kind: str, seed: int) -> Draw:
    """Generates a table of a kind."""
    return KINDS[kind](np.random.default_rng((seed, list(KINDS).index(kind))))


def questions(kinds: Sequence[str], draws: int, budget: float) -> Iterator[Question]:
    """Yields a call for each draw; kinds alternate, so that an early stop has some of each."""
    for seed in range(draws):
        for kind in kinds:

            def write(folder: Path, kind: str = kind, seed: int = seed) -> tuple[Path, list[str]]:
                table = draw(kind, seed)
                table.frame.to_csv(path := folder / "table.csv", index=False)
                return path, ["--target=y", "--task=classification", *table.flags]

            yield Question({"kind": kind, "draw": seed, "budget": budget}, write, budget)


def _tested(question: Question, answer: Answer) -> dict[str, Any]:
    """Applies the permutation test to a signal; NaN for noise."""
    del answer
    kind, seed = question.key["kind"], question.key["draw"]
    if "signal" not in kind:
        return {"auc": np.nan, "test_p": np.nan}
    frame = draw(kind, seed).frame
    y = frame.pop("y").to_numpy()
    auc, p_value = permutation_test(frame.to_numpy(np.float64), y, seed)
    return {"auc": round(auc, 3), "test_p": p_value}


def permutation_test(
    X: np.ndarray, y: np.ndarray, seed: int, draws: int = 999
) -> tuple[float, float]:
    """AUC of ridge regression on all columns over five folds, and its p-value.

    Ridge regression is linear in the labels, so one matrix per fold predicts all permutations.

    Args:
      X: ``(N, D)``.
      y: ``(N,)`` labels 0 and 1.
      seed: of folds and permutations.
      draws: permutations.

    Returns:
      The mean AUC over the folds, and the p-value, ``(1 + those not below it) / (1 + draws)``.
    """
    rng = np.random.default_rng((seed, 7))
    labels = np.stack([y, *(rng.permutation(y) for _ in range(draws))], axis=1).astype(np.float64)
    total = np.zeros(labels.shape[1])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(X, y)
    for train, test in folds:
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        Z = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        # A penalty as large as the number of columns: the mean eigenvalue of a wide table.
        kernel = Z[train] @ Z[train].T + X.shape[1] * np.eye(len(train))
        centred = labels[train] - labels[train].mean(axis=0)
        total += auc(Z[test] @ (Z[train].T @ np.linalg.solve(kernel, centred)), labels[test])
    scores = total / _FOLDS
    return float(scores[0]), float(np.mean(scores >= scores[0] - 1e-12))


def auc(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Area under the ROC curve by column, ``(P,)``; 0.5 where a column has one class.

    Args:
      scores: ``(M, P)``.
      labels: ``(M, P)`` of 0 and 1.
    """
    ones = labels.sum(axis=0)
    pairs = ones * (len(labels) - ones)
    above = (rankdata(scores, axis=0) * labels).sum(axis=0) - ones * (ones + 1) / 2
    return np.where(pairs > 0, above / np.maximum(pairs, 1), 0.5)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes the table of verdicts, in text; "something" with its interval (Clopper, Pearson)."""
    lines = []
    for kind, part in rows.groupby("kind", sort=False):
        counts = part["verdict"].value_counts()
        something, total = int(counts.get("something", 0)), len(part)
        low, high = share_interval(something, total)
        tested = (part["test_p"] <= 0.05).sum() if part["test_p"].notna().any() else None
        lines.append(
            {
                "kind": str(kind),
                "draws": str(total),
                "nothing": str(counts.get("nothing", 0)),
                "undecided": str(counts.get("undecided", 0)),
                "something": str(something),
                "no answer": str(counts.get("no answer", 0)),
                "share of something": f"{low:.2f} to {high:.2f}",
                "permutation test, p at most .05": "" if tested is None else str(tested),
                "seconds, median": f"{part['seconds'].median():.0f}",
                "seconds, longest": f"{part['seconds'].max():.0f}",
            }
        )
    return pd.DataFrame(lines)


def share_interval(hits: int, total: int) -> tuple[float, float]:
    """Exact 95 % interval of a share (Clopper and Pearson 1934)."""
    low = beta.ppf(0.025, hits, total - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, total - hits) if hits < total else 1.0
    return float(low), float(high)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    check_names("unknown kind", options.kinds, KINDS)
    calls = questions(options.kinds, options.draws, options.budget)
    run_study("noise", calls, summary, _tested, options.jobs)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    define_study_flags(budget=25)
    flags.DEFINE_list("kinds", list(KINDS), "Kinds of tables.")
    flags.DEFINE_integer("draws", 20, "Random tables of each kind.", lower_bound=1)
    flags.DEFINE_integer("jobs", 2, "Calls at a time.", lower_bound=1)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
