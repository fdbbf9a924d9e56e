"""Without an optional library the error names the extra that installs it; the rest works."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from fsjax.errors import ConfigError, DataError
from fsjax.extras import EXTRA_OF, MissingLibraryError, require

ROOT = Path(__file__).parents[1]

#: Code that needs a library, by the library.
USES = {
    "flatbuffers": "import fsjax; fsjax.export(None)",
    "matplotlib": "from fsjax.report import plot_curves",
    "openpyxl": "from fsjax.tables.readers.excel import excel_frame; excel_frame(b'', None)",
    "pyarrow": "import sys; from fsjax.data import convert; convert(sys.argv[1])",
    "safetensors": "from fsjax.sparsity import load_sparse; load_sparse('network', {})",
    "shtab": "from fsjax.__main__ import main; main(['completion', 'bash'])",
}


#: Makes the libraries of the first argument look as if they were not installed.
BLOCK = """
import importlib.machinery, sys
blocked, find_spec = sys.argv.pop(1).split(","), importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = lambda name, *rest: (
    None if name.partition(".")[0] in blocked else find_spec(name, *rest)
)
"""


def without(libraries: Iterable[str], code: str, *arguments: str) -> list[str]:
    """Runs code in a Python without some libraries; returns the lines of its output."""
    command = [sys.executable, "-c", BLOCK + code, ",".join(libraries), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines()


def test_extras_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for library, extra in EXTRA_OF.items():
        assert any(entry.startswith(library) for entry in extras[extra])
        assert not any(entry.startswith(library) for entry in project["dependencies"])
    assert extras["all"] == [f"fsjax[{','.join(sorted(set(EXTRA_OF.values())))}]"]


@pytest.mark.slow
def test_errors_name_the_extra(tmp_path: Path) -> None:
    file = tmp_path / "table.parquet"
    file.touch()
    # The command prints its error.
    code = f"""
import contextlib, io
for use in {list(USES.values())}:
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        try:
            exec(use)
        except Exception as error:
            printed.write(str(error))
    print(printed.getvalue().strip())
"""
    messages = without(EXTRA_OF, code, str(file))
    assert len(messages) == len(EXTRA_OF)
    for message, library in zip(messages, USES, strict=True):
        assert f"needs {library}, which is not installed" in message
        assert message.endswith(f"pip install 'fsjax[{EXTRA_OF[library]}]'")


def test_a_missing_library_is_an_error_of_settings_data_and_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for kind in (ConfigError, DataError, ImportError, MissingLibraryError):
        with pytest.raises(kind, match="reading Parquet files needs pyarrow"):
            require("pyarrow", "reading Parquet files")
    require("numpy", "anything")


@pytest.mark.slow
def test_training_needs_no_extra() -> None:
    libraries = (*EXTRA_OF, "ml_collections", "distributed")
    code = (
        "import fsjax; result = fsjax.fit(fsjax.methods.wast(hidden=(8,)), "
        "fsjax.data.load('digits'), num_features=5, num_epochs=1); "
        "print(result.selected.shape)"
    )
    assert without(libraries, code)[-1] == "(1, 5)"


@pytest.mark.slow
def test_the_environment_has_all_that_its_packages_need() -> None:
    """``make`` installs requirements.txt without looking for what is missing in it."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
