"""Plans for labels and survival: their batches, and the criterion for the best epoch."""

from __future__ import annotations

from typing import Any

import pytest

from fsjax import fit, methods, plan
from fsjax.data import Split
from fsjax.errors import ConfigError, DataError
from fsjax.method import Spec
from fsjax.testing import table


def test_survival_is_trained_on_all_rows_at_once() -> None:
    data = table("survival")

    def spec(**options: Any) -> Spec:
        given = {"num_features": 3, "task": "survival", "scaling": "standard"} | options
        return plan(methods.stg(hidden=(4,)), data, **given).spec

    for options in ({}, {"batch_size": None}, {"batch_size": 44}, {"batch_size": 5000}):
        one = spec(min_steps_per_epoch=10, **options)
        assert (one.batch_size, one.repeats) == (44, 10)
        assert (one.steps_per_epoch, one.shuffle) == (10, False)
    parts = spec(batch_size=16)
    assert (parts.batch_size, parts.shuffle) == (16, True)
    with pytest.raises(ConfigError, match="batch_size"):
        spec(batch_size=0)
    with pytest.raises(ConfigError, match="best_by='auc' needs classes, but the task is surv"):
        spec(best_by="auc")


def test_training_rows_without_events_are_refused() -> None:
    x, y = table("survival")
    y[:, 1] = 0
    y[0, 1] = 1
    split = [list(range(first, last)) for first, last in ((1, 50), (50, 60), (60, 72))]
    with pytest.raises(DataError, match="training rows of table hold no event"):
        plan(methods.stg(), (x, y), task="survival", num_features=3, split=Split(*split))


@pytest.mark.slow
def test_the_best_epoch_of_labels_by_their_auc() -> None:
    data, method = table("multilabel"), methods.neural_network(hidden=(4,))
    options = {"num_features": 3, "task": "multilabel", "num_epochs": 4, "scaling": "standard"}
    result = fit(method, data, best_by="auc", **options)
    assert int(result.best_epoch[0]) == 1 + int(result.history["valid/auc"][0].argmax())
    with pytest.raises(ConfigError, match="best_by='accuracy' needs classes"):
        plan(method, data, best_by="accuracy", **options)
