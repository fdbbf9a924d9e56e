"""The garbage collector is paused, and left as it was."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from fsjax.__main__ import main
from fsjax.engine.environment.garbage_collection import paused


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


@pytest.mark.slow
def test_the_models_that_compete_are_imported_when_they_are_used_and_then_it_collects() -> None:
    code = """if True:
        import gc, sys
        from fsjax import estimators
        assert "fsjax.auto" not in sys.modules
        from fsjax.estimators import AutoSelector
        assert AutoSelector is estimators.AutoSelector and "fsjax.auto" in sys.modules
        assert gc.isenabled()
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_searched_at_the_end_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fsjax", "completion", "zsh"])
    main(["completion", "zsh"])
    # conftest.py freezes what is imported.
    frozen = gc.get_freeze_count()
    assert gc.isenabled()
    try:
        main()
        assert not gc.isenabled() and gc.get_freeze_count() > frozen
    finally:
        gc.enable()
