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


@pytest.mark.parametrize("for_good", [True, False])
def test_what_stays_for_good_is_old_at_once(for_good: bool) -> None:
    code = f"""if True:
        import gc
        from fsjax.collector import paused
        with paused(for_good={for_good}):
            made = [object]
        old = any(one is made for one in gc.get_objects(generation=2))
        assert old == {for_good} and not gc.get_freeze_count()
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_frozen_objects_stay_frozen() -> None:
    code = """if True:
        import gc
        from fsjax.collector import paused
        gc.freeze()
        before = gc.get_freeze_count()
        with paused(for_good=True):
            pass
        assert gc.get_freeze_count() > before // 2
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_models_that_compete_are_imported_when_they_are_used() -> None:
    code = """if True:
        import sys
        from fsjax import estimators
        assert "fsjax.auto" not in sys.modules
        from fsjax.estimators import AutoSelector
        assert AutoSelector is estimators.AutoSelector and "fsjax.auto" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
