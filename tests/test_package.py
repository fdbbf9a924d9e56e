"""The package as a whole: what its import brings in, and what is found in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fsjax


def test_every_public_name_is_there() -> None:
    for name in fsjax.__all__:
        assert getattr(fsjax, name) is not None


@pytest.mark.slow
def test_parts_are_imported_when_they_are_used() -> None:
    code = (
        "import sys, fsjax; assert 'matplotlib' not in sys.modules; "
        "fsjax.estimators.IPCAE; assert 'matplotlib' not in sys.modules; "
        "fsjax.report.plot_path; fsjax.sparsity.quantize; fsjax.nets"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'fsjax' has no attribute 'estimator'"):
        fsjax.estimator  # noqa: B018


@pytest.mark.slow
def test_an_import_brings_in_what_it_needs() -> None:
    code = """if True:
        import gc, sys
        enabled, frozen = gc.isenabled(), gc.get_freeze_count()
        import fsjax
        assert not {"jax", "numpy", "pandas", "sklearn"} & set(sys.modules)
        assert (gc.isenabled(), gc.get_freeze_count()) == (enabled, frozen)
        from fsjax.__main__ import main
        for words in (["selct"], ["select", "no_such.csv", "--target=y"]):
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code
            assert code == 2 and not {"jax", "numpy", "pandas", "sklearn"} & set(sys.modules)
        import fsjax.sparsity
        assert not {"fsjax.engine.fit", "fsjax.methods", "fsjax.data", "pandas"} & set(sys.modules)
        assert "fsjax.sparsity.compression" not in sys.modules
        assert fsjax.sparsity.compress is fsjax.sparsity.compression.compress
        assert fsjax.methods.get_method("wast") is fsjax.methods.wast
    """
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
def test_pictures_need_no_display(tmp_path: Path) -> None:
    code = (
        "import sys, fsjax; from fsjax.report import style; "
        "style.save_figure(style.new_figure(1.0), sys.argv[1])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.png")]
    environment = os.environ | {"MPLBACKEND": "TkAgg", "DISPLAY": ""}
    subprocess.run(command, env=environment, check=True)
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (fsjax, "fitt", "fit"),
        (fsjax.methods, "stgg", "stg"),
        (fsjax.estimators, "LasoNet", "LassoNet"),
    ],
)
def test_misspelt_names(module: Any, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"attribute '{name}'; did you mean '{meant}'?"):
        getattr(module, name)
