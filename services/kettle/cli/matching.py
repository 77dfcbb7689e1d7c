"""
`kettle classad match`: two ads, whether they match, and which clause says no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad import (
    ClassAd,
    EvaluationFailed,
    Exceptional,
    Node,
    conjuncts,
    evaluate,
    evaluate_attribute,
    is_true,
    matches,
    unparse,
)
from kettle.classad.ad import OWN
from kettle.classad.nodes import Reference
from kettle.cli.classads import ad_of_file, context
from kettle.cli.errors import CommandError, UsageError
from kettle.cli.origins import Side, origins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from kettle.classad import Context, Value
    from kettle.cli.screen import Screen

_TROUBLE: Final = 2
"""Exit status where there is no answer; 1 is taken by "no"."""


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """
    What has to be true for a side to agree.
    """

    attribute: str
    """The attribute in which it is written."""
    text: str
    value: str
    holds: bool
    because: list[str] = []
    """Why it is undefined or error."""


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """
    What one of the two ads says about the other.
    """

    ad: str
    """The file."""
    requirements: str | None
    """Their value; null where the ad has none."""
    agrees: bool
    rank: str | None
    clauses: list[Clause]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """
    What `kettle classad match` says.
    """

    match: bool
    left: Half
    right: Half


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Look at both, and tell.
    """
    if arguments.left == arguments.right == "-":
        raise UsageError("standard input can be only one of the two ads")
    try:
        left = Side(ad_of_file(arguments.left), arguments.left)
        right = Side(ad_of_file(arguments.right), arguments.right)
    except CommandError as error:
        screen.trouble(f"kettle classad: {error}")
        return _TROUBLE
    world = context()
    verdict = Verdict(
        match=matches(left.ad, right.ad, world),
        left=_half(left, right, world),
        right=_half(right, left, world),
    )
    if screen.as_json:
        screen.json(verdict)
    else:
        _show(verdict, screen)
    return 0 if verdict.match else 1


def _half(my: Side, target: Side, world: Context) -> Half:
    value = _attribute("Requirements", my.ad, target.ad, world)
    return Half(
        ad=my.name,
        requirements=_text(value) if "Requirements" in my.ad else None,
        agrees=value is not None and is_true(value),
        rank=_text(_attribute("Rank", my.ad, target.ad, world)) if "Rank" in my.ad else None,
        clauses=[_clause(attribute, node, my, target, world) for attribute, node in clauses(my.ad)],
    )


def clauses(ad: ClassAd) -> Iterator[tuple[str, Node]]:
    """
    The clauses of an ad's Requirements, each with the attribute that holds it.

    A clause that only names another expression of the ad stands for the clauses of that.
    """
    if "Requirements" not in ad:
        return
    entered = {"requirements"}
    pending = [("Requirements", clause) for clause in reversed(conjuncts(ad["Requirements"]))]
    while pending:
        attribute, clause = pending.pop()
        key = _own_name(clause)
        if key is None or key in entered or not isinstance(ad.find(key), Node):
            yield attribute, clause
            continue
        entered.add(key)
        name = ad.spelling(key)
        pending.extend((name, inner) for inner in reversed(conjuncts(ad[key])))


def _own_name(clause: Node) -> str | None:
    if not isinstance(clause, Reference) or clause.absolute:
        return None
    base = clause.base
    if base is None or (isinstance(base, Reference) and base.base is None and base.key in OWN):
        return clause.key
    return None


def _clause(attribute: str, node: Node, my: Side, target: Side, world: Context) -> Clause:
    try:
        value: Value | None = evaluate(node, my.ad, target.ad, world)
    except EvaluationFailed:
        value = None
    return Clause(
        attribute=attribute,
        text=unparse(node).strip(),
        value=_text(value),
        holds=value is not None and is_true(value),
        because=origins(node, my, target, world) if isinstance(value, Exceptional) else [],
    )


def _attribute(name: str, my: ClassAd, target: ClassAd, world: Context) -> Value | None:
    try:
        return evaluate_attribute(name, my, target, world)
    except EvaluationFailed:
        return None


def _text(value: Value | None) -> str:
    return "given up" if value is None else unparse(value)


def _show(verdict: Verdict, screen: Screen) -> None:
    screen.say(screen.paint("match", "good") if verdict.match else screen.paint("no match", "bad"))
    for half in (verdict.left, verdict.right):
        screen.say()
        screen.say(screen.paint(_summary(half), "strong"))
        if not half.clauses:
            continue
        rows = [(c.value, c.attribute, c.text) for c in half.clauses]
        styles = ["good" if clause.holds else "bad" for clause in half.clauses]
        screen.table(("VALUE", "IN", "CLAUSE"), rows, styles=styles, whole=True)
        for sentence in dict.fromkeys(sentence for clause in half.clauses for sentence in clause.because):
            screen.say(screen.paint(f"  {sentence}", "dim"))


def _summary(half: Half) -> str:
    rank = "no Rank, which counts as 0" if half.rank is None else f"Rank is {half.rank}"
    if half.requirements is None:
        return (
            f"{half.ad}: no Requirements, and an ad without them matches nothing "
            f"(Requirements = true takes everything); {rank}"
        )
    return f"{half.ad}: Requirements is {half.requirements}; {rank}"
