"""Decompression of files of Unix ``compress``."""

import numpy as np
import pytest
from registered import compress

from fsjax.readers.unlzw import unlzw


@pytest.mark.parametrize("widest", [10, 12, 16])
@pytest.mark.parametrize("clear_every", [0, 700])
def test_unlzw(widest: int, clear_every: int) -> None:
    numbers = np.random.default_rng(0).normal(size=3000).round(3)
    text = ",".join(str(number) for number in numbers).encode()
    assert unlzw(compress(text, widest, clear_every)) == text
    assert unlzw(compress(b"")) == b""
    with pytest.raises(ValueError, match="not a compress"):
        unlzw(b"PK")
    with pytest.raises(ValueError, match="of 17 bits; 10 to 16 are possible"):
        unlzw(b"\x1f\x9d\x91")
    with pytest.raises(ValueError, match="damaged"):
        unlzw(b"\x1f\x9d\x90\xff\xff\xff")
