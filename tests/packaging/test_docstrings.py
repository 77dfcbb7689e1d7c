"""Docstrings have one form: one line if that fits, else lines of their own between the quotes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WIDTH = 110
"""Columns, as `line-length` of ruff."""


def misshapen(source: str) -> Iterator[int]:
    """The lines at which a docstring has the other form."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
            continue
        text = first.value.value
        if not isinstance(text, str) or first.end_lineno is None:
            continue
        several = first.end_lineno > first.lineno
        fits = len(text.strip().splitlines()) == 1 and first.col_offset + len(text.strip()) + 6 <= WIDTH
        own_lines = lines[first.lineno - 1].strip() in {'"""', 'r"""'}
        if (several and (fits or not own_lines)) or (not several and len(lines[first.lineno - 1]) > WIDTH):
            yield first.lineno


def test_every_docstring_has_the_one_form(top: Path, roots: list[Path]) -> None:
    """A reader finds the same form everywhere, and a sentence that fits takes one line of the screen."""
    found = [
        f"{module.relative_to(top)}:{line}"
        for root in [*roots, top / "tests"]
        for module in root.rglob("*.py")
        if "acceptance" not in module.parts
        for line in misshapen(module.read_text())
    ]
    assert [] == found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""Short."""\n', []),
        ('"""\nShort.\n"""\n', [1]),
        (f'"""{"long " * 30}"""\n', [1]),
        (f'"""\n{"long " * 30}\n"""\n', []),
        ('def f():\n    """First\n    and second."""\n', [2]),
        ('def f():\n    """\n    First\n    and second.\n    """\n', []),
    ],
)
def test_the_other_form_is_found(source: str, lines: list[int]) -> None:
    """Each way to deviate is seen."""
    assert lines == list(misshapen(source))
