"""Docstrings have one form: one line if that fits, else lines of their own between the quotes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

WIDTH = 110
"""Columns, as `line-length` of ruff."""

_FIRST_LINE = re.compile(
    rf'^(?=.{{{WIDTH + 1}}})[ \t]*[rRuU]?"""|^[ \t]*[RuU]"""|^[ \t]*r?"""(?!\n)(?:(?!""").)*$',
    re.MULTILINE,
)
"""A line that begins with quotes and is too long, or has text while the text goes on below."""
_ONE_LINE = re.compile(r'^([ \t]*)[rRuU]?"""\n\s*(\S.*?)(?=\s*""")', re.MULTILINE)
"""One line of text between quotes on other lines."""


def may_deviate(source: str) -> bool:
    """
    Whether a docstring may have the other form, so that it is worth the time to take the module apart.

    Texts that are data look like it in some; ruff sees to it that docstrings begin with these quotes.
    """
    return bool(_FIRST_LINE.search(source)) or any(
        "\\" in text or len(indent) + len(text) + 6 <= WIDTH for indent, text in _ONE_LINE.findall(source)
    )


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
        if "acceptance" not in module.parts and may_deviate(source := module.read_text())
        for line in misshapen(source)
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
        ('def f():\n    """\n    Short."""\n', [2]),
        ('def f():\n    """\n\n    Short.\n\n    """\n', [2]),
        (f'def f():\n    """\n    {"long " * 19}\\\\\\\\\\\\\\\\\\\\\n    """\n', [2]),
        ('X = """\nData.\n"""\nY = 1\n\n\ndef f():\n    """\n    Short.\n    """\n', [8]),
        ('def f():\n    """\n    First\n    and second.\n    """\n', []),
    ],
)
def test_the_other_form_is_found(source: str, lines: list[int]) -> None:
    """Each way to deviate is seen."""
    assert lines == list(misshapen(source))
    assert may_deviate(source) or not lines
