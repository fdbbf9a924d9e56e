"""Types of the arguments of methods: one check for all, before anything is built."""

from __future__ import annotations

import numpy as np
from bad_calls import bad_calls, refuses

from fsjax import methods


def test_numpy_numbers_and_lists_are_the_same_as_python_s() -> None:
    plain = methods.ip_cae(3, hidden=(8,), learning_rate=0.5, bias=True)
    for hidden, rate in (([8], np.float64(0.5)), (np.array([8]), np.array(0.5))):
        arguments = {"hidden": hidden, "learning_rate": rate, "bias": np.True_}
        assert methods.ip_cae(np.int64(3), **arguments) is plain
    assert methods.stg(3, final_learning_rate=None) is methods.stg(3)


def test_a_wrong_type_is_refused_after_an_equal_right_one() -> None:
    methods.wast(hidden=(1,))
    refuses(lambda: methods.wast(hidden=(True,)), "a width of hidden=True")


@bad_calls(
    (lambda: methods.ip_cae(num_featurs=3), "ip_cae has no argument 'num_featurs'"),
    (lambda: methods.binmask(hiden=(3,)), "no argument 'hiden'"),
    (lambda: methods.probmask(hiden=(3,)), "no argument 'hiden'"),
    (lambda: methods.neural_network(hiden=(3,)), "no argument 'hiden'"),
    (lambda: methods.wast(5), "wast: too many positional", "give arguments"),
)
def test_names_and_places_of_arguments(bad: tuple) -> None:
    refuses(*bad, error=TypeError)
    assert repr(methods.wast(hidden=(8,))).startswith("wast(")
    assert "hidden=(8,)" in repr(methods.wast(hidden=(8,)))
