"""The promises of docs/equality.md, for every method."""

from __future__ import annotations

import pytest
from marks import some_long

from fsjax.methods import METHODS
from tools import equality as measure

#: The comparisons that run without ``-m slow``.
QUICK = ("wast",)

NAMES = some_long(METHODS, tuple(name for name in METHODS if name not in QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_bit(name: str) -> None:
    assert measure.alone(name) == 0.0
    assert measure.resumed(name) == 0.0
    assert measure.watched(name) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_equal_but_for_rounding(name: str) -> None:
    assert measure.devices(name) < 1e-4
    assert measure.batched(name) < 1e-4
    # NaN if the method does not take sparse tables.
    assert not measure.sparse(name) > 1e-5


@pytest.mark.slow
def test_a_difference_is_seen() -> None:
    one, two = measure.fit("wast"), measure.fit("wast", seeds=(3, 6))
    assert measure.distance(measure.row_of(one, 0), measure.row_of(two, 0)) == 0.0
    assert measure.distance(measure.row_of(one, 1), measure.row_of(two, 1)) > 1e-3
