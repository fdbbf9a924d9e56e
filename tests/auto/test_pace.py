"""Time that methods are expected to need, from what others needed on this machine."""

import dataclasses

import numpy as np
import pytest

from fsjax.auto import compete, permutations
from fsjax.auto.budget import Clock
from fsjax.auto.chance import FEW, Chance, above_chance
from fsjax.auto.columns import design_of_array
from fsjax.auto.folds import rounds_of
from fsjax.auto.ledger import Ledger
from fsjax.auto.models import METRICS


def problem(rows: int = 560) -> compete.Problem:
    rng = np.random.default_rng(0)
    y = np.resize([0, 1], rows)
    return compete.Problem(
        design=design_of_array(rng.normal(size=(rows, 30)), None, None),
        y=y,
        task="classification",
        metric=METRICS["accuracy"],
        rounds=rounds_of(y, "classification", 0),
        methods=("random", "univariate", "icap", "l1_l21", "deep_lasso", "lassonet"),
        seed=0,
    )


def expected(name: str, seconds: dict[str, float], place: int = 0) -> float:
    """Of a round, with first folds that took so many seconds."""
    ledger = Ledger(None, {})
    for other, value in seconds.items():
        ledger.get(f"fold/{other}/0/0", lambda value=value: {"seconds": value})
    return compete._expected(name, problem(), ledger, 0, place)


def test_a_slow_machine_is_noticed_before_an_expensive_method_starts():
    usual = expected("lassonet", {})
    assert usual == pytest.approx(12 + 5 * 7, rel=0.02)
    assert expected("lassonet", {"icap": 6.0, "l1_l21": 5.5, "deep_lasso": 22.5}) > 4.5 * usual
    # Programs from the cache make it quicker; one odd fold does not count.
    assert expected("lassonet", {"l1_l21": 0.11, "deep_lasso": 0.45}) < 0.2 * usual
    assert expected("lassonet", {"icap": 60.0, "l1_l21": 1.1, "deep_lasso": 4.5}) < 1.2 * usual


def test_the_second_fold_needs_no_compilation():
    quick = expected("lassonet", {"l1_l21": 1.1, "deep_lasso": 4.5, "lassonet": 19.0}, place=1)
    assert quick == pytest.approx(4 * 7, rel=0.1)
    slow = expected("lassonet", {"l1_l21": 5.5, "deep_lasso": 22.5, "lassonet": 95.0}, place=1)
    assert slow == pytest.approx(5 * quick, rel=0.1)


@pytest.fixture
def ran(monkeypatch) -> list[str]:
    """Methods in the order in which they run, a fold each; they find nothing."""
    names = []

    def fold(_: object, name: str, *others: object) -> dict:
        names.append(name)
        return {"scores": {1: 50.0}}

    monkeypatch.setattr(compete, "_fold", fold)
    return names


def test_what_does_not_fit_is_left_out_and_costs_nothing(ran):
    small = dataclasses.replace(problem(), methods=("random", "univariate", "lassonet"))
    why = compete.compete(small, Ledger(None, {}), Clock(20.0), lambda: None)
    assert "lassonet" not in ran and "about 47 s more" in why["lassonet"]


def test_permutations_come_before_what_is_expensive(ran):
    small = dataclasses.replace(problem(), methods=("random", "univariate", "l1_l21", "l1"))
    compete.compete(small, Ledger(None, {}), Clock(1e6), lambda: ran.append("between"))
    first = list(dict.fromkeys(ran))
    assert first == ["all", "random", "univariate", "l1", "between", "l1_l21"]
    assert ran.count("between") == 1 and ran.count("l1_l21") == 10


def test_early_permutations_leave_time_for_the_methods():
    small = dataclasses.replace(problem(100), methods=("random", "univariate"))
    ledger = Ledger(None, {})
    assert len(permutations.chance_test(small, ledger, Clock(1e6), early=True).draws) <= FEW
    # Without time there is one draw, and what was drawn before counts.
    assert len(permutations.chance_test(small, Ledger(None, {}), Clock(1e-6)).draws) == 1
    again = permutations.chance_test(small, ledger, Clock(1e-6))
    assert 1 <= len(again.draws) <= FEW


def test_too_few_permutations_are_no_verdict_against_good_folds():
    one, good = problem(), np.array([90.0, 80.0, 95.0, 74.0, 85.0])
    assert 0.005 < above_chance(good, np.full(5, 66.0), 0.25) < 0.02
    nothing = np.full(5, 66.0)
    verdict = permutations.better_than_chance
    assert verdict(Chance(90.0, (60.0,)), good, nothing, one)
    assert not verdict(Chance(60.0, (61.0, 65.0, 66.0)), good, nothing, one)
