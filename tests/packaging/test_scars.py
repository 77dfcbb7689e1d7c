"""The page about what broke elsewhere names tests; they exist."""

import re
from pathlib import Path

_PAGE = Path("docs/explanation/what-broke-elsewhere.md")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_scar_names_a_test_that_exists(top: Path) -> None:
    """
    Each row of the tables names at least one test, and each test that is named is in the file that is named.
    """
    text = (top / _PAGE).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert [] == [row for row in rows if not _NAMED.search(row)]
    gone = [
        f"{file}::{name}"
        for file, name in _NAMED.findall(text)
        if not (top / file).is_file() or f"def {name}(" not in (top / file).read_text(encoding="utf-8")
    ]
    assert [] == gone
