"""Measures whether ``fsjax select --fdr`` keeps the false discovery rate.

    python -m experiments.studies.selection.fdr --workdir=runs/study --draws=50 --budget=25

The tables are those of ``experiments.studies.discoveries``, which measures the decoys alone: two
classes, 500 rows, 200 columns of which ten are informative, neighbours correlated at 0.6. Each
statistic is that of the only method that may compete (``--methods``), besides all columns and
random ones; with ``default``, ``select`` chooses. Calls whose rows are in ``fdr.csv`` in the
workdir are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from absl import flags

from experiments.artifacts.statistics.trials import mean_interval
from experiments.launch import cli
from experiments.studies.discoveries import TRUE, draw
from experiments.studies.selection.asking import Answer, Question, define_study_flags, run_study

#: The table of ``experiments.studies.discoveries``, and its number of columns.
_TABLE, _COLUMNS = "classes, correlated", 200

#: Calls ``select`` without the flag ``--methods``.
DEFAULT = "default"


def questions(
    statistics: Sequence[str], rates: Sequence[float], draws: int, budget: float
) -> Iterator[Question]:
    """Yields a call for each draw, statistic and rate; statistics and rates alternate."""
    for seed in range(draws):
        for statistic in statistics:
            for rate in rates:

                def write(folder: Path, seed: int = seed) -> tuple[Path, list[str]]:
                    table = draw(_TABLE, seed, _COLUMNS)
                    frame = pd.DataFrame(table.X).add_prefix("x").assign(y=table.y)
                    frame.to_csv(path := folder / "table.csv", index=False)
                    return path, ["--target=y", "--task=classification"]

                methods = () if statistic == DEFAULT else (f"--methods={statistic}",)
                key = {"statistic": statistic, "rate": rate, "draw": seed, "budget": budget}
                yield Question(key, write, budget, (f"--fdr={rate:g}", f"--seed={seed}", *methods))


def false_share(columns: Sequence[str], true: Sequence[str]) -> float:
    """Share of the selected columns that are not informative; 0 if none is selected."""
    return len(set(columns) - set(true)) / max(len(columns), 1)


def _compared(question: Question, answer: Answer) -> dict[str, Any]:
    table = draw(_TABLE, question.key["draw"], _COLUMNS)
    true = [f"x{index}" for index in table.true]
    columns = answer.selection.get("columns", ())
    return {
        "selected": len(columns),
        "false": round(false_share(columns, true), 4),
        "power": len(set(columns) & set(true)) / TRUE,
        "decoy_sets": answer.selection.get("decoy_sets", ""),
    }


def page(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes the table, in text: a row for each statistic and rate."""
    lines = []
    for (statistic, rate), part in rows.groupby(["statistic", "rate"], sort=False):
        answered = part[part["verdict"] != "no answer"]
        selected = answered[answered["selected"] > 0]
        mean, half = mean_interval(answered["false"])
        lines.append(
            {
                "statistic": str(statistic),
                "rate": f"{rate:g}",
                "draws": str(len(part)),
                "without an answer": str(len(part) - len(answered)),
                "selected nothing": str(len(answered) - len(selected)),
                "false": f"{mean:.3f}",
                "95 % interval": f"{max(mean - half, 0):.3f} to {min(mean + half, 1):.3f}",
                "false where some are selected": f"{selected['false'].mean():.3f}",
                "power": f"{answered['power'].mean():.2f}",
                "seconds, median": f"{part['seconds'].median():.0f}",
            }
        )
    return pd.DataFrame(lines)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    rates = [float(rate) for rate in options.rates]
    calls = questions(options.statistics, rates, options.draws, options.budget)
    run_study("fdr", calls, page, _compared, options.jobs)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    define_study_flags(budget=25)
    flags.DEFINE_list("statistics", ["l1", "forest"], f"Methods of fsjax select, or {DEFAULT}.")
    flags.DEFINE_list("rates", ["0.1", "0.2"], "False discovery rates (--fdr).")
    flags.DEFINE_integer("draws", 50, "Number of random tables.", lower_bound=2)
    flags.DEFINE_integer("jobs", 2, "Calls at a time.", lower_bound=1)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
