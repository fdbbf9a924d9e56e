"""Types of the arguments of methods: one check for all, before anything is built."""

from __future__ import annotations

import numpy as np
import pytest

from fsjax import methods
from fsjax.errors import ConfigError


def test_numpy_numbers_and_lists_are_the_same_as_python_s() -> None:
    plain = methods.ip_cae(3, hidden=(8,), learning_rate=0.5, bias=True)
    for hidden, rate in (([8], np.float64(0.5)), (np.array([8]), np.array(0.5))):
        arguments = {"hidden": hidden, "learning_rate": rate, "bias": np.True_}
        assert methods.ip_cae(np.int64(3), **arguments) is plain
    assert methods.stg(3, final_learning_rate=None) is methods.stg(3)


def test_a_wrong_type_is_refused_after_an_equal_right_one() -> None:
    methods.wast(hidden=(1,))
    with pytest.raises(ConfigError, match="a width of hidden=True"):
        methods.wast(hidden=(True,))


def test_names_and_places_of_arguments() -> None:
    with pytest.raises(TypeError, match="ip_cae has no argument 'num_featurs'"):
        methods.ip_cae(num_featurs=3)
    for build in (methods.binmask, methods.probmask, methods.neural_network):
        with pytest.raises(TypeError, match="has no argument 'hiden'"):
            build(hiden=(3,))
    with pytest.raises(TypeError, match="wast: too many positional.*give arguments"):
        methods.wast(5)
    assert repr(methods.wast(hidden=(8,))).startswith("wast(")
    assert "hidden=(8,)" in repr(methods.wast(hidden=(8,)))
