"""The collector of garbage rests, and goes on afterwards as before."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from fsjax.collector import paused


@pytest.mark.parametrize("before", [True, False])
def test_it_is_left_as_it_was(before: bool) -> None:
    was = gc.isenabled()
    (gc.enable if before else gc.disable)()
    try:
        with pytest.raises(ValueError), paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()


def test_it_collects_after_the_import() -> None:
    code = "import gc, fsjax, fsjax.estimators; assert gc.isenabled()"
    subprocess.run([sys.executable, "-c", code], check=True)
