"""Filters by a linear model of the labels, as methods: which columns they select and reject.

Covers ``fsjax.methods.shared.fixed_columns``, ``fsjax.methods.shared.fixed_columns``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from selection_tables import linear_table

import fsjax

#: A filter, and the share of its largest score that it may have where there is nothing to find.
FILTERS = [("rfs", 0.8), ("l1_l21", 0.5)]


@pytest.mark.parametrize(("name", "share"), FILTERS)
def test_finds_the_columns_that_tell_of_the_class(name: str, share: float) -> None:
    x, y = linear_table(300)
    method = fsjax.methods.METHODS[name]()
    result = fsjax.fit(method, (x, y), num_features=2, seeds=(0, 1))
    assert [set(row) for row in result.selected.tolist()] == [{1, 5}] * 2
    order = np.random.default_rng(3).permutation(8)
    again = fsjax.fit(method, (x[:, order], y), num_features=2)
    np.testing.assert_allclose(again.scores[0], result.scores[0, order], rtol=1e-3, atol=1e-6)
    shuffled = fsjax.fit(method, (x, np.random.default_rng(4).permutation(y)), num_features=2)
    assert set(shuffled.selected[0].tolist()) != {1, 5}
    assert shuffled.scores.max() < share * result.scores.max()


@pytest.mark.parametrize("name", ["rfs", "l1_l21", "mcfs", "laplacian_score"])
def test_rows_without_weight_do_not_count(name: str) -> None:
    x, y = (jnp.asarray(part) for part in linear_table(60))
    method = fsjax.methods.METHODS[name]()
    task = method.about.tasks[0]
    classes = task == "classification"
    spec = fsjax.Spec(8, 3 if classes else 8, task, 67, 16, 1, steps_per_epoch=4)
    scores = []
    for extra in (0, 7):
        more = jnp.concatenate([x, jnp.full((extra, 8), 50.0)]).astype(jnp.float32)
        labels = jnp.concatenate([y, jnp.zeros(extra, int)]) if classes else more
        rows = fsjax.Batch(more, labels, (jnp.arange(60 + extra) < 60) * 1.0)
        scores.append(method.select(method.init(jax.random.key(0), spec, rows)).scores)
    np.testing.assert_array_equal(*scores)
