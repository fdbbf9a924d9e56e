"""Estimators that are pickled, saved and loaded."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from estimator_helpers import quick, table
from sklearn.exceptions import NotFittedError

import fsjax
from fsjax import estimators
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import FisherScore


def test_pickle_and_joblib(fitted: FisherScore, tmp_path: Path) -> None:
    x, _ = table()
    expected = fitted.predict_proba(x)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(x), expected)
    stream = io.BytesIO()
    joblib.dump(fitted, stream)
    stream.seek(0)
    np.testing.assert_array_equal(joblib.load(stream).support_, fitted.support_)


@pytest.mark.slow
def test_saved_and_loaded_in_a_fresh_process(fitted: FisherScore, tmp_path: Path) -> None:
    x, _ = table()
    fitted.save(tmp_path / "model.npz")
    copy = estimators.load(tmp_path / "model.npz")
    assert copy.get_params() == fitted.get_params()
    for name in ("classes_", "support_", "ranking_", "scores_", "selection_frequency_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(fitted, name))
    np.save(tmp_path / "x.npy", x)
    program = (
        "import sys, numpy as np; from fsjax import estimators; "
        "model = estimators.load(sys.argv[1]); "
        "np.save(sys.argv[3], model.predict_proba(np.load(sys.argv[2])))"
    )
    paths = [str(tmp_path / name) for name in ("model.npz", "x.npy", "p.npy")]
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
    np.testing.assert_allclose(np.load(paths[2]), fitted.predict_proba(x), rtol=1e-6)


def test_files_that_are_no_estimator(fitted: FisherScore, tmp_path: Path) -> None:
    fsjax.save(fitted.result_, tmp_path / "result.npz")
    with pytest.raises(DataError, match="not an estimator"):
        estimators.load(tmp_path / "result.npz")
    with pytest.raises(ConfigError, match="random_state"):
        quick(random_state=np.random.RandomState(0)).fit(*table()).save(tmp_path / "x.npz")
    with pytest.raises(NotFittedError):
        quick().save(tmp_path / "x.npz")
