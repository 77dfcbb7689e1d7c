"""
The page on the ClassAd language says what the evaluators do.

Its tables are read and their examples evaluated: in an empty ad, those of the section on names in the two ads there.
"""

import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from kettle.classad import ClassAd, Context, evaluate, interpret, parse, unparse
from kettle.classad.functions import FUNCTIONS

_CELL = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`(.*)`")
_FENCE = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(\w+)\(")
CONTEXT = Context(now=lambda: int(time.time()), random=lambda: 0.5)


class Table(NamedTuple):
    section: str
    titles: list[str]
    rows: list[list[str]]


@pytest.fixture(scope="module")
def page(top: Path) -> str:
    return (top / "docs/reference/classad.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables(page: str) -> list[Table]:
    found: list[Table] = []
    section = before = ""
    for line in page.split("\n"):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if line.startswith("|") and not before.startswith("|"):
            found.append(Table(section, cells(line), []))
        elif line.startswith("|") and not line.startswith("|---"):
            found[-1].rows.append(cells(line))
        before = line
    return found


def cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line)[1:-1]]


def code(cell: str) -> str:
    match = _CODE.fullmatch(cell)
    assert match is not None, f"{cell} is not code"
    return match[1]


def test_every_example_has_its_value(page: str, tables: list[Table]) -> None:
    """The value beside an example is the value of the example in every evaluator."""
    job, slot = (ClassAd.parse(text) for text in _FENCE.findall(page))
    wrong: list[str] = []
    examples = 0
    for table in tables:
        my, target = (job, slot) if table.section == "Names" else (ClassAd(), None)
        if table.titles[-2:] != ["example", "value"]:
            continue
        for row in table.rows:
            example, value = code(row[-2]), code(row[-1])
            examples += 1
            got = {unparse(engine(parse(example), my, target, CONTEXT)) for engine in (evaluate, interpret)}
            if got != {value}:
                wrong.append(f"{example}: {got}, and not {value}")
    assert [] == wrong
    assert examples >= 150


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_the_tables_of_logic_are_right(tables: list[Table], operator: str) -> None:
    """Each cell is what the left side of its row and the right side of its column give."""
    [table] = [table for table in tables if table.titles[0] == f"`{operator}`"]
    assert 4 == len(table.rows)
    for left, *values in table.rows:
        for right, value in zip(table.titles[1:], values, strict=True):
            expression = f"{code(left)} {operator} {code(right)}"
            assert (expression, code(value)) == (expression, unparse(evaluate(parse(expression))))


def test_every_function_is_there_once(tables: list[Table]) -> None:
    """A function without a row would be known to nobody, a row without a function would be a promise."""
    listed = [
        called[1].lower()
        for table in tables
        if table.titles[0] == "function"
        for row in table.rows
        if (called := _CALL.match(code(row[0])))
    ]
    assert sorted(FUNCTIONS) == sorted(listed)


def test_every_example_uses_its_function(tables: list[Table]) -> None:
    """The example in a function's row calls that function."""
    for table in tables:
        if table.titles[0] != "function":
            continue
        for row in table.rows:
            called = _CALL.match(code(row[0]))
            assert called is not None
            assert f"{called[1]}(" in code(row[-2])
