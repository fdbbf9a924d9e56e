"""A table whose truth is known, and quick options, that the tests of ``fsjax.select`` share."""

import numpy as np
import pandas as pd

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
