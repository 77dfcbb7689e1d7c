"""`kettle classad match`: two ads, whether they match, and which clause says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kettle.classad import (
    ClassAd,
    EvaluationFailed,
    Exceptional,
    Node,
    evaluate,
    evaluate_attribute,
    is_true,
    matches,
    unparse,
)
from kettle_services.cli.classad.clauses import annotated, clauses, operands
from kettle_services.cli.classad.error_origins import Side, origins
from kettle_services.cli.classad.sources import ad_of_file, context
from kettle_services.cli.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from kettle.classad import Context, Value
    from kettle_services.cli.output.screen import Screen


class ClauseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be true for a side to agree."""

    attribute: str
    """The attribute in which it is written."""
    text: str
    value: str
    holds: bool
    because: list[str] = []
    """Why it is undefined or error."""
    operands: dict[str, str] = {}
    """What the names in it stand for, where it is false."""


class SideResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the two ads says about the other."""

    ad: str
    """The file."""
    requirements: str | None
    """Their value; null where the ad has none."""
    agrees: bool
    rank: str | None
    clauses: list[ClauseResult]


class MatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `kettle classad match` says."""

    match: bool
    left: SideResult
    right: SideResult


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Look at both, and tell."""
    if arguments.left == arguments.right == "-":
        raise UsageError("standard input can be only one of the two ads")
    left = Side(ad_of_file(arguments.left), arguments.left)
    right = Side(ad_of_file(arguments.right), arguments.right)
    world = context()
    verdict = MatchResult(
        match=matches(left.ad, right.ad, world),
        left=_half(left, right, world),
        right=_half(right, left, world),
    )
    if screen.as_json:
        screen.json(verdict)
    else:
        _show(verdict, screen)
    return 0 if verdict.match else 1


def _half(my: Side, target: Side, world: Context) -> SideResult:
    value = _attribute("Requirements", my.ad, target.ad, world)
    return SideResult(
        ad=my.name,
        requirements=_text(value) if "Requirements" in my.ad else None,
        agrees=value is not None and is_true(value),
        rank=_text(_attribute("Rank", my.ad, target.ad, world)) if "Rank" in my.ad else None,
        clauses=_clauses(my, target, world) if "Requirements" in my.ad else [],
    )


def _clauses(my: Side, target: Side, world: Context) -> list[ClauseResult]:
    found = clauses("Requirements", my.ad["Requirements"], my.ad)
    return [_clause(attribute, node, my, target, world) for attribute, node in found]


def _clause(attribute: str, node: Node, my: Side, target: Side, world: Context) -> ClauseResult:
    try:
        value: Value | None = evaluate(node, my.ad, target.ad, world)
    except EvaluationFailed:
        value = None
    holds = value is not None and is_true(value)
    unknown = isinstance(value, Exceptional)
    return ClauseResult(
        attribute=attribute,
        text=unparse(node).strip(),
        value=_text(value),
        holds=holds,
        because=origins(node, my, target, world) if unknown else [],
        operands={} if holds or unknown else operands(node, my, target, world),
    )


def _attribute(name: str, my: ClassAd, target: ClassAd, world: Context) -> Value | None:
    try:
        return evaluate_attribute(name, my, target, world)
    except EvaluationFailed:
        return None


def _text(value: Value | None) -> str:
    return "given up" if value is None else unparse(value)


def _show(verdict: MatchResult, screen: Screen) -> None:
    screen.say(screen.paint("match", "good") if verdict.match else screen.paint("no match", "bad"))
    for half in (verdict.left, verdict.right):
        screen.say()
        screen.say(screen.paint(_summary(half), "strong"))
        if not half.clauses:
            continue
        rows = [
            (c.value, c.attribute, annotated(c.text, c.operands, _room(half, screen))) for c in half.clauses
        ]
        styles = ["good" if clause.holds else "bad" for clause in half.clauses]
        screen.table(("VALUE", "IN", "CLAUSE"), rows, styles=styles, whole=True)
        for sentence in dict.fromkeys(sentence for clause in half.clauses for sentence in clause.because):
            screen.say(screen.paint(f"  {sentence}", "dim"))


def _room(half: SideResult, screen: Screen) -> int:
    """The columns of the terminal that are left for clauses; 0 where there is no bound."""
    before = [
        max(map(len, column)) for column in zip(*((c.value, c.attribute) for c in half.clauses), strict=True)
    ]
    return screen.width and max(1, screen.width - sum(before) - 2 * len(before))


def _summary(half: SideResult) -> str:
    rank = "no Rank, which counts as 0" if half.rank is None else f"Rank is {half.rank}"
    if half.requirements is None:
        return (
            f"{half.ad}: no Requirements, and an ad without them matches nothing "
            f"(Requirements = true takes everything); {rank}"
        )
    return f"{half.ad}: Requirements is {half.requirements}; {rank}"
