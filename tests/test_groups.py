"""Groups of columns: chosen as a whole, and one column a group is no group at all."""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

import fsjax
from fsjax.errors import ConfigError
from fsjax.estimators import ESTIMATORS
from fsjax.sparsity.hier_prox import hier_prox
from fsjax.tables.groups import any_column, checked_groups, expand, gather, scatter, unit_names

#: Of 9 columns; groups of one, two, three and three, not in order.
GROUPS = (2, 0, 1, 1, 2, 3, 3, 2, 3)

METHODS: dict[str, Callable[[int], fsjax.Method]] = {
    "ip_cae": lambda k: fsjax.methods.ip_cae(k, hidden=(6,), learning_rate=0.02),
    "binmask": lambda k: fsjax.methods.binmask(k, hidden=(6,), search=False, strength=1e-2),
    "stg": lambda k: fsjax.methods.stg(k, hidden=(6,), search=False),
    "lassonet": lambda k: fsjax.methods.lassonet(
        k, hidden=(6,), dense_epochs=40, path_epochs=4, path_multiplier=1.3, learning_rate=0.02
    ),
}


def table() -> tuple[np.ndarray, np.ndarray]:
    """The classes are in the second column of group 3, number 6."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 9)).astype(np.float32)
    return x, (x[:, 6] > 0).astype(int)


def fitted(
    name: str, groups: tuple[int, ...] | None, k: int = 1, num_epochs: int = 60
) -> fsjax.FitResult:
    options = {"num_epochs": num_epochs, "batch_size": 32}
    if name == "lassonet":
        options = {"num_epochs": 2000, "batch_size": 120, "shuffle": False}
    x, y = table()
    method = METHODS[name](k)
    return fsjax.fit(method, (x, y), seeds=(0, 1), groups=groups, split="random", **options)


@slow_ids("binmask", "ip_cae", "lassonet")
@pytest.mark.parametrize("name", METHODS)
def test_the_group_with_the_signal_is_chosen(name: str) -> None:
    result = fitted(name, GROUPS)
    chex.assert_shape(result.scores, (2, 4))
    np.testing.assert_array_equal(result.selected, [[3], [3]])
    np.testing.assert_array_equal(result.columns_of(result.selected[0]), [5, 6, 8])
    assert result.unit_names[3] == "x5, x6, x8"
    x, _ = table()
    np.testing.assert_array_equal(result.transform(x), x[:, [5, 6, 8]])
    if name in ("ip_cae", "lassonet"):
        others = x.copy()
        others[:, [0, 1, 2, 3, 4, 7]] = 9.0
        chex.assert_trees_all_equal(result.predict(others), result.predict(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ip_cae", "lassonet"])
def test_groups_of_one_column_are_columns(name: str) -> None:
    # A few epochs: the two round in another order, and training makes much of it.
    plain, grouped = fitted(name, None, 2, 3), fitted(name, tuple(range(9)), 2, 3)
    chex.assert_trees_all_close(grouped.scores, plain.scores, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(grouped.selected, plain.selected)


@pytest.mark.slow
def test_groups_saved_and_loaded(tmp_path) -> None:
    result = fitted("stg", GROUPS)
    fsjax.save(result, tmp_path / "a.npz")
    loaded = fsjax.load(tmp_path / "a.npz")
    x, _ = table()
    chex.assert_trees_all_equal(loaded.predict(x), result.predict(x))
    np.testing.assert_array_equal(loaded.transform(x), result.transform(x))


@pytest.mark.slow
def test_estimators_choose_groups_by_their_labels() -> None:
    x, y = table()
    labels = np.array(["size", "age", "sex", "sex", "size", "town", "town", "size", "town"])
    estimator = ESTIMATORS["stg"](
        1, hidden=(6,), search=False, groups=labels, num_epochs=60, batch_size=32
    ).fit(x, y)
    np.testing.assert_array_equal(np.flatnonzero(estimator.get_support()), [5, 6, 8])
    assert estimator.transform(x).shape == (120, 3)
    figure = estimator.plot()
    assert figure.axes[0].get_yticklabels()[0].get_text() == "x5, x6, x8"
    assert figure.get_supxlabel() == "1 of 4 groups selected"
    assert estimator.ranking_[5] == estimator.ranking_[6] == 1
    with pytest.raises(ConfigError, match="X has 4 groups; choose at most 4"):
        estimator.set_params(n_features_to_select=5).fit(x, y)
    with pytest.raises(ConfigError, match="groups has shape"):
        estimator.set_params(groups=labels[:4]).fit(x, y)


def test_names_of_groups() -> None:
    assert unit_names(None, None) is None
    assert unit_names(["a", "b"], None) == ("a", "b")
    assert unit_names(["a", "b", "c"], (1, 0, 1)) == ("b", "a, c")
    assert unit_names(None, (0,) * 5) == ("x0 to x4 (5)",)


def test_methods_without_groups_say_so() -> None:
    for name, build in fsjax.methods.METHODS.items():
        about = build().about
        if not about.takes_groups:
            with pytest.raises(ConfigError, match=f"{name} selects single columns"):
                fsjax.plan(build(), table(), groups=GROUPS, num_features=about.num_features or 1)


@pytest.mark.slow
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_gathering_loses_nothing(columns: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, most, columns)
    groups = checked_groups(np.unique(drawn, return_inverse=True)[1], columns)
    rows = rng.normal(size=(columns, 2)).astype(np.float32)
    gathered = gather(jnp.asarray(rows), groups)
    assert gathered.shape[0] == max(groups) + 1
    np.testing.assert_array_equal(scatter(gathered, groups), rows)
    np.testing.assert_allclose(gathered.sum(), rows.sum(), rtol=1e-4, atol=1e-5)
    values = rng.normal(size=max(groups) + 1)
    np.testing.assert_array_equal(expand(values, groups), [values[group] for group in groups])
    mask = rng.random((1, columns)) < 0.5
    for group in range(max(groups) + 1):
        of_group = np.asarray(groups) == group
        assert any_column(mask, groups)[0, group] == mask[0, of_group].any()


def test_proximal_step_is_not_changed_by_padding() -> None:
    rng = np.random.default_rng(0)
    skip, kernel = rng.normal(size=(3, 4)), rng.normal(size=(3, 5))
    padded = [np.concatenate([part, np.zeros((3, 6))], axis=1) for part in (skip, kernel)]
    plain = hier_prox(jnp.asarray(skip), jnp.asarray(kernel), 0.7, 2.0)
    wide = hier_prox(*map(jnp.asarray, padded), 0.7, 2.0)
    for one, other in zip(plain, wide, strict=True):
        chex.assert_trees_all_close(other[:, : one.shape[1]], one, rtol=1e-5)
        assert not np.any(other[:, one.shape[1] :])


@bad_calls(
    ((0, 1), "a whole number for each"),
    ((0,) * 8 + (2,), "without gaps"),
    ((0.5,) * 9, "a whole number for each"),
)
def test_groups_that_do_not_fit(bad: tuple) -> None:
    refuses(lambda: fsjax.plan(METHODS["stg"](1), table(), groups=bad[0], num_epochs=1), bad[1])
