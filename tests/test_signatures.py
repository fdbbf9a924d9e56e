"""Functions that hand their arguments on show them."""

from __future__ import annotations

import inspect

import fsjax
from fsjax.arguments.signatures import takes_arguments_of


def test_a_function_shows_the_arguments_of_another_and_its_own_result() -> None:
    def other(a: int, *, b: str = "x") -> float:
        """Of the other."""
        return a * len(b)

    @takes_arguments_of(other)
    def doubled(*args: int, **options: str) -> int:
        """Its own."""
        return int(2 * other(*args, **options))

    signature = inspect.signature(doubled)
    assert list(signature.parameters) == ["a", "b"]
    assert signature.parameters["b"].default == "x"
    assert (signature.return_annotation, doubled.__doc__) == ("int", "Its own.")
    assert doubled.__name__ == "doubled" and doubled(3, b="yy") == 12


def test_fit_takes_the_arguments_of_plan() -> None:
    fit, plan = inspect.signature(fsjax.fit), inspect.signature(fsjax.plan)
    assert fit.parameters == plan.parameters
    assert (fit.return_annotation, plan.return_annotation) == ("FitResult", "Plan")
