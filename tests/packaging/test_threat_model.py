"""
The threat model names a test that attacks for each of its rows, or says that the row is open; the pages of what is promised, or can
fail, name one for each, or say so, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = "docs/explanation/threat-model.md"
PAGES = sorted(
    f"docs/explanation/{page.name}"
    for page in (Path(__file__).parents[2] / "docs/explanation").glob("*-and-*-tests.md")
)
TRIED = "tried by"
QUOTED = re.compile(r"`([^`]+)`")
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


def rows(page: str) -> Iterator[tuple[str, str]]:
    """Each attack, and what is said to try it."""
    headings: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            headings = []
        elif not headings:
            headings = cells
        elif TRIED in headings and set(line) - set("|-: "):
            yield cells[0], cells[headings.index(TRIED)]


def problems(attack: str, tried: str, tests: Path) -> Iterator[str]:
    """What is wrong with the tests that a row names."""
    if tried == "open":
        return
    names = QUOTED.findall(tried)
    if not names:
        yield f"{attack}: names no test, and does not say that it is open"
    files: list[Path] = []
    for name in names:
        if name.startswith("make "):
            continue
        path, _, function = name.partition(": ")
        if "." not in name and name.startswith("test_"):  # of the file that was named before it
            path, function = "", name
        if path:
            files = [tests.parent / path] if "/" in path else sorted(tests.rglob(path))
            files = [file for file in files if file.exists()]
            if not files:
                yield f"{attack}: there is no {path}"
                continue
        if function and not any(function in DEFINED.findall(file.read_text()) for file in files):
            yield f"{attack}: no file that is named there has {function}"


@pytest.mark.parametrize("page", [PAGE, *PAGES])
def test_each_row_names_tests_that_there_are(top: Path, page: str) -> None:
    """By file, and by function where one is named."""
    found = list(rows((top / page).read_text()))
    assert len(found) > 20
    assert [] == [problem for row in found for problem in problems(*row, top / "tests")]


@pytest.mark.parametrize(
    ("tried", "says"),
    [
        ("`test_threat_model.py`", ""),
        (
            "`test_threat_model.py: test_each_row_names_tests_that_there_are`, `test_what_is_wrong_is_found`",
            "",
        ),
        ("`tests/packaging`, `tests/packaging/test_docs.py`", ""),
        ("open", ""),
        ("", "names no test"),
        ("somebody", "names no test"),
        ("`test_threats.py`", "there is no test_threats.py"),
        ("`tests/packaging/test_threats.py`", "there is no tests/packaging/test_threats.py"),
        ("`test_threat_model.py: test_nothing`", "has test_nothing"),
        ("`test_threat_model.py`, `test_nothing`", "has test_nothing"),
    ],
)
def test_what_is_wrong_is_found(top: Path, tried: str, says: str) -> None:
    """A test that was renamed, or a row that somebody forgot."""
    found = " ".join(problems("an attack", tried, top / "tests"))
    assert says in found
    assert bool(says) == bool(found)
