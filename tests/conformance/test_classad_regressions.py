"""
Differences from the reference implementation that were found by comparing the two, and must not return.

The rows have the conventions of the match vectors: the ads MY and TARGET (an empty cell is none), the expression,
and the value that the reference gave it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Context,
    EvaluationFailed,
    Node,
    Value,
    evaluate,
    interpret,
    parse,
    unparse,
)

ROWS = Path(__file__).parent / "data" / "classad-regressions.tsv"
CONTEXT = Context(now=lambda: 1_767_225_600)


def rows() -> list[list[str]]:
    return [line.split("\t") for line in ROWS.read_text(encoding="utf-8").split("\n")[1:] if line]


def outcome(
    my: str,
    target: str,
    expression: str,
    engine: Callable[[Node, ClassAd | None, ClassAd | None, Context], Value],
) -> str:
    try:
        node, mine = parse(expression), ClassAd.parse(my or "[]")
        other = ClassAd.parse(target) if target else None
    except ClassAdParseError:
        return "PARSE_ERROR"
    try:
        return unparse(engine(node, mine, other, CONTEXT))
    except EvaluationFailed:
        return "EVAL_FAIL"


@pytest.mark.parametrize("engine", [interpret, evaluate])
def test_what_once_differed_agrees(
    engine: Callable[[Node, ClassAd | None, ClassAd | None, Context], Value],
) -> None:
    """Each expression has the value that the reference implementation gives it."""
    differing = [
        f"{row}\n    but got {got}"
        for row in rows()
        if (got := outcome(row[0], row[1], row[2], engine)) != row[3]
    ]
    assert not differing, "\n".join(differing)
