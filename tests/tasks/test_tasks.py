"""The area under the ROC curve against scikit-learn.

Covers ``fsjax.tasks.table``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from fsjax.tasks import roc_auc

SIZE = 17
# Few distinct values next to any others, so that there are ties of all lengths.
SCORES = hnp.arrays(
    np.float32,
    SIZE,
    elements=st.one_of(
        st.sampled_from([0.0, -0.0, 1.0, -1.0]),
        st.floats(width=32, allow_subnormal=False, allow_nan=False, allow_infinity=False),
    ),
)
LABELS = hnp.arrays(np.int32, SIZE, elements=st.integers(0, 1))
WEIGHTS = hnp.arrays(np.float32, SIZE, elements=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
few = settings(max_examples=150, deadline=None, derandomize=True)

compiled = jax.jit(roc_auc)


def reference(scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """scikit-learn's area, on the rows that have a weight; 0.5 for a single class."""
    keep = np.ones(len(y), bool) if weight is None else weight > 0
    if len(np.unique(y[keep])) < 2:
        return 0.5
    return roc_auc_score(
        y[keep], scores[keep], sample_weight=None if weight is None else weight[keep]
    )


@pytest.mark.slow
@few
@given(SCORES, LABELS, WEIGHTS)
def test_area_is_that_of_scikit_learn(
    scores: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> None:
    np.testing.assert_allclose(compiled(scores, y), reference(scores, y), atol=1e-6)
    np.testing.assert_allclose(compiled(scores, y, weight), reference(scores, y, weight), atol=1e-6)


def test_many_rows_with_ties_and_over_seeds() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random((3, 20000)) < 0.02).astype(np.int32)
    scores = np.round(rng.normal(size=y.shape) + y, 1).astype(np.float32)
    areas = jax.jit(jax.vmap(roc_auc))
    found = areas(scores, y)
    expected = [roc_auc_score(*pair) for pair in zip(y, scores, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(areas(-scores, y), 1 - np.array(found), atol=1e-6)


@pytest.mark.parametrize(
    ("scores", "y", "weight", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], None, 1.0),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0], None, 0.0),
        ([5.0, 5.0, 5.0, 5.0], [0, 1, 0, 1], None, 0.5),
        ([1.0, 2.0], [1, 1], None, 0.5),
        ([1.0, 2.0], [0, 0], None, 0.5),
        ([1.0, 2.0, 3.0], [0, 1, 0], [1.0, 1.0, 0.0], 1.0),
        ([1.0, 2.0], [0, 1], [0.0, 0.0], 0.5),
        ([np.nan, 2.0], [1, 0], None, 0.0),
        ([-np.inf, np.inf], [0, 1], None, 1.0),
        ([3.0], [1], None, 0.5),
    ],
)
def test_corner_cases(scores, y, weight, expected) -> None:
    weight = None if weight is None else jnp.array(weight)
    assert float(jax.jit(roc_auc)(jnp.array(scores), jnp.array(y), weight)) == expected
