"""The fixture that the tests of estimators share."""

from __future__ import annotations

import pytest
from estimator_helpers import quick, table

from fsjax.estimators import FisherScore


@pytest.fixture(scope="module")
def fitted() -> FisherScore:
    return quick(n_seeds=2).fit(*table())
