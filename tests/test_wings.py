"""Rules of the wings: what sparsity, the core and ``fsjax select`` may import of one another."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.architecture import ROOT, floors, imports, modules
from tools.public_api import LISTED

WING = "fsjax.auto"

#: All that the wing of sparse training may import of the rest of the package.
BELOW_SPARSITY = ("errors", "typing", "extras", "arguments")

#: Modules of the core that are entrances to ``fsjax select``.
ENTRANCES = {"fsjax", "fsjax.__main__", "fsjax.estimators.auto"}

#: The folders of the wing from the lowest to the highest; each imports only lower ones. Modules
#: beside them are higher.
FOLDERS = ("reading", "contest", "certainty", "answer", "page")


def public_names() -> set[str]:
    """The names of the list, and the version, which nobody calls."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return {line.partition("(")[0] for line in lines} | {"fsjax.__version__"}


def private_imports(text: str, public: set[str]) -> Iterator[str]:
    """What a file of the wing imports from the core, type checkers included, that is not public."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("fsjax"))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module.partition(".")[0] not in ("fsjax", "") or module.startswith(WING):
                continue
            names = {f"{module}.{name.name}" for name in node.names}
            yield from sorted(names - public - {WING})


def folder_of(module: str) -> int:
    """The number of the folder of a module of the wing; modules beside the folders have the last.

    The package itself, which has the public names, counts as one of them.
    """
    folder = module.removeprefix(f"{WING}.").partition(".")[0]
    return FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)


def wing() -> dict[str, Path]:
    return {name: path for name, path in modules().items() if f"{name}.".startswith(f"{WING}.")}


def wing_imports() -> dict[str, set[str]]:
    """What each module of the wing imports of the others."""
    files = wing()
    graph: dict[str, set[str]] = {}
    for module, path in files.items():
        pairs = imports(ast.parse(path.read_text(encoding="utf-8")))
        targets = {f"{name}.{attribute}": name for name, attribute in pairs}
        graph[module] = {full if full in files else name for full, name in targets.items()}
        graph[module] = (graph[module] & set(files)) - {module}
    return graph


def test_the_wing_imports_public_names_of_the_core() -> None:
    public, files = public_names(), wing()
    private = {
        module: found
        for module, path in files.items()
        if (found := list(private_imports(path.read_text(encoding="utf-8"), public)))
    }
    assert len(files) > len(FOLDERS) and not private, "use a public name, or move it into the wing"


def test_private_imports_are_found() -> None:
    public = public_names()
    for line in (
        "from fsjax.engine.fit import fit",
        "from fsjax import engine",
        "import fsjax.storage.npz",
        "from ..tables import base",
        "if TYPE_CHECKING:\n    from fsjax.engine.result import FitResult",
        "def f():\n    from fsjax.storage.trees import flatten",
    ):
        assert list(private_imports(line, public)), line
    assert not list(private_imports("from fsjax import fit, __version__", public))
    assert not list(private_imports("from fsjax.auto.reading import notes", public))


def test_files_of_the_wing_import_one_way() -> None:
    assert max(floors(wing_imports()).values()) > len(FOLDERS)


def test_folders_of_the_wing_import_lower_ones() -> None:
    upward = [
        f"{module} -> {target}"
        for module, targets in wing_imports().items()
        for target in targets
        if folder_of(target) > folder_of(module)
    ]
    assert not upward


def test_the_folders_are_those_of_the_wing() -> None:
    found = {path.parent.name for path in (ROOT / "fsjax" / "auto").glob("*/__init__.py")}
    assert found == set(FOLDERS)


def test_the_core_does_not_know_fsjax_select() -> None:
    naming = {
        module
        for module, path in modules().items()
        if re.search(r"^ *(?:from|import) fsjax\.auto\b", path.read_text(), flags=re.MULTILINE)
        and not f"{module}.".startswith(f"{WING}.")
    }
    assert naming <= ENTRANCES


def test_sparsity_is_importable_without_the_core() -> None:
    above = {
        name.split(".")[1]
        for name in modules()
        if name.count(".") and name.split(".")[1] not in ("sparsity", *BELOW_SPARSITY)
    }
    # The package itself imports the environment, as every wing does.
    blocked = sorted(f"fsjax.{name}" for name in above - {"engine"})
    program = f"""
import importlib, pkgutil, sys
import fsjax
sys.modules.update(dict.fromkeys({blocked!r}))
import fsjax.sparsity
for module in pkgutil.walk_packages(fsjax.sparsity.__path__, "fsjax.sparsity."):
    importlib.import_module(module.name)
below = "fsjax.engine.environment"
print([name for name in sys.modules if name.startswith("fsjax.engine.") and below not in name])
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"
