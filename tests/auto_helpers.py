"""Tables, a problem and quick options that the tests of ``fsjax.select`` share."""

import numpy as np
import pandas as pd

from fsjax.auto.contest.judge import judges_of
from fsjax.auto.contest.problem import Problem, on_rows, sizes_of
from fsjax.auto.contest.scoring import METRICS
from fsjax.auto.reading.columns import design_of_array

QUICK = ("univariate", "l1")

#: For tests of anything but the choice of the judge: boosted trees take most of a selection.
LINEAR = {"methods": QUICK, "judge": "linear"}


def table(rows: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two of ten columns matter; one of them is a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 8)), columns=[f"noise {i}" for i in range(8)])
    frame.insert(3, "weight", rng.normal(size=rows))
    frame.insert(6, "kind", rng.choice(["a", "b", "c"], rows))
    y = np.where(frame["weight"] + 1.5 * (frame["kind"] == "b") > 0.5, "yes", "no")
    return frame, y


def problem(rows: int = 120, columns: int = 30, **more) -> Problem:
    """Columns of noise and two classes."""
    rng = np.random.default_rng(0)
    y = np.resize([0, 1], rows)
    example = Problem(
        design=design_of_array(rng.normal(size=(rows, columns)), None, None),
        y=y,
        task="classification",
        metric=METRICS["accuracy"],
        rounds=[],
        methods=("random", "univariate", "l1", "mrmr", "lassonet"),
        seed=0,
        sizes=sizes_of(columns),
        judge=judges_of("classification")[0],
    )
    return on_rows(example.replace(**more), np.arange(rows))
