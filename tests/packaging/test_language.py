"""Documents, docstrings, comments and messages are in plain, modern English."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

QUAINT: Final = re.compile(
    r"\b(for ever|anew|whoever|whence|thereby|hitherto|henceforth|in vain|in its stead|its kin|stillborn|obituary"
    r"|mourn\w*|hands and feet|stands? still|stood still|standing still|a word in between|a stranger's)\b",
    re.IGNORECASE,
)
"""
Words and turns that a reader today has to translate: say "without end", "again", "the caller", "is suspended".
"""

LEANING: Final = re.compile(r"(That|Those) of\b|The same\b|As above\b|Likewise\b|Ditto\b")
"""Beginnings of a docstring that says something only to a reader of the one before it."""

TEXTS: Final = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}

GENERATED: Final = "<!-- Made by docs/generate.py"
"""Beginning of a page whose texts come from modules, where they are looked at."""


def source_texts(source: str) -> Iterator[tuple[int, str]]:
    """Comments and strings of a module with their lines; names of the code are not text."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in TEXTS:
            yield token.start[0], token.string


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """All docstrings of a module, also those below attributes, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    yield statement.lineno, str(statement.value.value).strip()


def complaints(source: str) -> Iterator[tuple[int, str]]:
    """Quaint turns and leaning docstrings of a module, with their lines."""
    # To take a module apart takes long, and hardly any has such words at all.
    if QUAINT.search(source):
        for line, text in source_texts(source):
            for found in QUAINT.finditer(text):
                yield line + text[: found.start()].count("\n"), found[0]
    if LEANING.search(source):
        for line, text in docstrings(source):
            if beginning := LEANING.match(text):
                yield line, beginning[0]


def test_no_module_has_quaint_turns_or_leaning_docstrings(top: Path, roots: list[Path]) -> None:
    """Each docstring, comment and message is understood without a dictionary and without its neighbours."""
    found = [
        f"{module.relative_to(top)}:{line}: {turn}"
        for root in [*roots, top / "tests", top / "docs"]
        for module in sorted(root.rglob("*.py"))
        if module != Path(__file__) and "acceptance" not in module.parts
        for line, turn in complaints(module.read_text())
    ]
    assert [] == found


def test_no_document_has_quaint_turns(top: Path, roots: list[Path]) -> None:
    """Pages, descriptions for generated pages and SQL are written for today's readers."""
    found = [
        f"{document.relative_to(top)}:{number}: {turn[0]}"
        for root in [*roots, top / "docs", top / "README.md", top / "CHANGELOG.md"]
        for document in ([root] if root.is_file() else sorted(root.rglob("*")))
        if document.suffix in {".md", ".toml", ".sql"}
        and not (text := document.read_text()).startswith(GENERATED)
        for number, line in enumerate(text.splitlines(), 1)
        for turn in QUAINT.finditer(line)
    ]
    assert [] == found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""It waits for ever."""\n', ["for ever"]),
        ("x = 1  # begins anew\n", ["anew"]),
        ('x = f"{1} begins anew"\n', ["anew"]),
        ("def anew() -> None: ...\n", []),
        ('x: int = 1\n"""That of the slot."""\n', ["That of"]),
        ('def f():\n    """The same."""\n', ["The same"]),
        ('def f():\n    """The sum."""\n', []),
    ],
)
def test_each_kind_of_turn_is_found(source: str, expected: list[str]) -> None:
    """Text counts, names of the code do not."""
    assert expected == [turn for _, turn in complaints(source)]
