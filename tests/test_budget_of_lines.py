"""A budget of lines for each wing: whoever raises a number here has decided that it is worth it."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from tools.architecture import ROOT

#: Lines of ``.py`` files, docstrings and blank lines included, that each wing may have.
BUDGETS = {
    "fsjax/auto": 13_420,
    "fsjax/sparsity": 10_200,
    "the core": 30_710,
    "experiments": 16_620,
    "tools": 2_000,
    "tests": 42_180,
}

#: Folders of ``fsjax`` with a budget of their own; the core is the rest.
WINGS = ("fsjax/auto", "fsjax/sparsity")

#: Most entries on the first level of ``fsjax``.
MAX_ENTRIES = 23

#: Most modules of the wing ``fsjax/sparsity``.
MAX_SPARSITY_MODULES = 39

#: Most lines of code of a function of ``fsjax``, without its docstring, comments and blank lines.
MAX_FUNCTION_LINES = 70

#: Tokens that do not make a line a line of code.
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines(folder: str) -> int:
    return sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")
    )


@pytest.mark.parametrize("wing", BUDGETS)
def test_a_wing_stays_within_its_budget(wing: str) -> None:
    count = lines("fsjax") - sum(map(lines, WINGS)) if wing == "the core" else lines(wing)
    assert 0 < count <= BUDGETS[wing], "remove something, or decide to raise the budget"


def test_the_first_level_stays_short() -> None:
    entries = {path.name for path in (ROOT / "fsjax").iterdir()} - {"__pycache__"}
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


def test_the_sparsity_wing_stays_small() -> None:
    assert 0 < len(list((ROOT / "fsjax/sparsity").rglob("*.py"))) <= MAX_SPARSITY_MODULES


def code_lines(source: str, longer_than: int = 0) -> dict[str, int]:
    """Lines of code of the functions of more lines; functions in them are included."""
    functions = {
        node: range(node.lineno, node.end_lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= longer_than
    }
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if functions else ():
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return {
        f"{node.name}:{node.lineno}": len(
            code.intersection(rows).difference(*map(docstring_lines, ast.walk(node)))
        )
        for node, rows in functions.items()
    }


def docstring_lines(node: ast.AST) -> range:
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False):
        return range(node.body[0].lineno, node.body[0].end_lineno + 1)
    return range(0)


def test_functions_stay_short() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{name}": count
        for path in (ROOT / "fsjax").rglob("*.py")
        for name, count in code_lines(path.read_text("utf-8"), MAX_FUNCTION_LINES).items()
        if count > MAX_FUNCTION_LINES
    }
    assert not found, "move what does not depend on the function into functions beside it"


def test_lines_of_code_leave_out_words() -> None:
    source = '''
def outer(
    value,
):
    """Text.

    More of it.
    """
    # A comment.

    def inner():
        """Text."""
        return """two
        lines"""

    return inner
'''
    assert code_lines(source) == {"outer:2": 7, "inner:11": 3}
