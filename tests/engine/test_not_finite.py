"""Values and losses that are not finite raise an error that says where they are.

Covers ``fsjax.engine.training_checks``, ``fsjax.tables.scaled``.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import fsjax
from fsjax.data import Split, constant_columns, fit_scaler
from fsjax.errors import DataError, NonFiniteLossError
from fsjax.tables.readers.formats import compact
from fsjax.tables.scaling import apply

NETWORK = fsjax.methods.neural_network(hidden=(4,))


def table() -> tuple[np.ndarray, np.ndarray, Split]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 5)).astype(np.float32)
    return x, rng.integers(0, 2, 60), Split(np.arange(40), np.arange(40, 50), np.arange(50, 60))


@pytest.mark.parametrize(("row", "part"), [(3, "training"), (44, "validation"), (55, "test")])
def test_values_that_cannot_be_squared_are_told_before_training(row: int, part: str) -> None:
    x, y, split = table()
    x[row, 2] = 1e25
    with pytest.raises(DataError, match=f"'column 2' has values beyond 1e\\+18 in the {part} rows"):
        fsjax.plan(NETWORK, (x, y), split=split, scaling="none")


def test_rows_that_fit_would_refuse_are_not_predicted() -> None:
    x, y, split = table()
    result = fsjax.fit(NETWORK, (x, y), split=split, num_features=2, num_epochs=1)
    for value, message in ((1e20, r"'column 2' has values beyond 1e\+18"), (np.nan, "NaN")):
        bad = x[:3].astype(np.float64)
        bad[1, 2] = value
        for rows in (bad, csr_array(bad)):
            with pytest.raises(DataError, match=f"X.*{message}"):
                result.predict(rows)
    assert result.predict(x[:0]).shape == (1, 0, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_below_those_of_float32_are_scaled_or_refused(dtype: type) -> None:
    x, y, split = table()
    tiny = x.astype(dtype)
    tiny[:, 2] *= dtype(1e-40)
    prepared = [
        fsjax.plan(NETWORK, (values, y), split=split, scaling="standard", num_features=2).prepared
        for values in (x, tiny, csr_array(tiny))
    ]
    for one in prepared[1:2]:
        np.testing.assert_allclose(
            one.arrays.train.x, prepared[0].arrays.train.x, rtol=1e-4, atol=1e-4
        )
    stored = prepared[2].arrays.train.x
    assert np.abs(stored.values[stored.columns == 2]).max() > 1
    for rows in (tiny, csr_array(tiny)):
        with pytest.raises(DataError, match="'column 2' has values from -.*e-40 .* all"):
            fsjax.plan(NETWORK, (rows, y), split=split, scaling="none", num_features=2)


def test_a_validation_loss_that_is_never_finite_is_told() -> None:
    x, y, split = table()
    x[split.valid] = 1000.0

    def predict(state: fsjax.method.TrainState, x: jnp.ndarray) -> jnp.ndarray:
        return jnp.where(x[:, :1] > 100, jnp.nan, NETWORK.predict(state, x))

    options = {"split": split, "scaling": "none", "num_features": 2, "num_epochs": 2}
    method, message = NETWORK._replace(predict=predict), "validation loss of seed 1 was not finite"
    with pytest.raises(NonFiniteLossError, match=f"{message}.*no epoch can be kept"):
        fsjax.fit(method, (x, y), seeds=(1,), **options)
    x[split.test] = 1000.0
    with pytest.warns(UserWarning, match=f"{message} in any epoch, but"):
        result = fsjax.fit(method, (x, y), seeds=(1,), best_by="last", **options)
    assert result.best_epoch == [2] and np.isnan(result.metrics["embedded_accuracy"]).all()


@pytest.mark.parametrize("kind", ["standard", "minmax", "maxabs"])
def test_rounding_is_no_variation(kind: str) -> None:
    noise = np.where(np.arange(20) % 2, 0.1 + 0.2, 0.3)
    x = np.stack([noise, np.linspace(0, 1, 20), 1e9 + np.arange(20) / 100], axis=1)
    assert len(np.unique(noise)) == 2
    np.testing.assert_array_equal(constant_columns(x), [True, False, False])
    scaled = apply(fit_scaler(kind, x), x)
    assert np.ptp(scaled[:, 0]) == 0
    assert np.ptp(scaled[:, 1]) > 0.9
    assert kind == "maxabs" or np.ptp(scaled[:, 2]) > 0.9
    assert compact(x[:, :2]).dtype == np.float32
    assert compact(x).dtype == np.float64
