"""Where an undefined or an error comes from: the names that nobody defines, the operands that do not suit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from kettle.classad import (
    ERROR,
    UNDEFINED,
    ClassAd,
    Context,
    EvaluationFailed,
    Exceptional,
    Node,
    evaluate,
    is_true,
    unparse,
)
from kettle.classad.ad import OTHER, OWN
from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import Call, Conditional, Literal, Reference
from kettle.classad.reference_analysis import children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from kettle.classad import Value

_LONGEST: Final = 100
_MOST_STEPS: Final = 100_000
"""An explanation evaluates parts again and again; a part that takes longer stays unexplained."""
_MOST_PARTS: Final = 2_000
_WITH_PATTERN: Final = frozenset(
    {"regexp", "regexpmember", "regexps", "replace", "replaceall", "stringlist_regexpmember"}
)
"""Functions whose first argument is a pattern."""


class Side(NamedTuple):
    """One of the two ads, and what it is called to the reader."""

    ad: ClassAd
    name: str


class _Part(NamedTuple):
    """
    A part of an expression whose value is `wanted`; `path` are the attributes through which it was reached.
    """

    node: Node
    my: Side
    target: Side | None
    wanted: Exceptional
    path: frozenset[tuple[int, str]]

    def at(self, node: Node, wanted: Exceptional | None = None) -> _Part:
        """A part within this one."""
        return self._replace(node=node, wanted=self.wanted if wanted is None else wanted)


def origins(expression: Node, my: Side, target: Side | None, context: Context) -> list[str]:
    """Why the value of an expression is undefined or error, in sentences; none if it is neither."""
    search = _Search(msgspec.structs.replace(context, trace=None, max_steps=_MOST_STEPS))
    search.follow(expression, my, target)
    return list(search.found)


class _Search:
    """Goes down to the innermost parts that have the value in question while nothing within them has."""

    def __init__(self, context: Context) -> None:
        self.found: dict[str, None] = {}
        self._context = context

    def follow(self, expression: Node, my: Side, target: Side | None) -> None:
        pending = [_Part(expression, my, target, wanted, frozenset()) for wanted in (ERROR, UNDEFINED)]
        for _ in range(_MOST_PARTS):
            if not pending:
                return
            part = pending.pop()
            if self._value(part, part.node) is part.wanted:
                pending.extend(reversed(list(self._causes(part))))

    def _value(self, part: _Part, node: Node) -> Value | None:
        try:
            return evaluate(node, part.my.ad, None if part.target is None else part.target.ad, self._context)
        except EvaluationFailed:
            return None

    def _causes(self, part: _Part) -> Iterator[_Part]:
        node = part.node
        if isinstance(node, Reference) and (node.base is None or _side_named(node.base)):
            yield from self._reference(part, node)
            return
        within = [(inner, self._value(part, inner)) for inner in self._evaluated(part)]
        same = [inner for inner, value in within if value is part.wanted]
        if same:
            yield from map(part.at, same)
        elif not isinstance(node, Literal):
            self._tell(_sentence(node, part.wanted, [value for _, value in within]))
            yield from (part.at(inner, UNDEFINED) for inner, value in within if value is UNDEFINED)

    def _evaluated(self, part: _Part) -> list[Node]:
        """The expressions within that have a say in the value."""
        node = part.node
        if not isinstance(node, Conditional):
            return list(children(node))
        condition = self._value(part, node.condition)
        if not isinstance(condition, bool | int | float):
            return [node.condition]
        return [node.then if is_true(condition) else node.otherwise]

    def _reference(self, part: _Part, node: Reference) -> Iterator[_Part]:
        """Go where the name leads, or say that it leads nowhere."""
        my, target = part.my, part.target
        which = _side_named(node.base)
        if which == "target" and target is None:
            self._tell(f"{unparse(node)}: there is no target")
            return
        sides = [(my, target)] if which != "target" else []
        if target is not None and which != "my":
            sides.append((target, my))
        for side, other in sides:
            stored = side.ad.find(node.key)
            if stored is None:
                continue
            if (id(side.ad), node.key) in part.path:
                self._tell(f"{node.name} of {side.name} leads back to itself")
            elif isinstance(stored, Node):
                yield _Part(stored, side, other, part.wanted, part.path | {(id(side.ad), node.key)})
            else:
                self._tell(f"{node.name} is {part.wanted!r} in {side.name}")
            return
        self._tell(_nowhere(node.name, [side for side, _ in sides], alone=target is None))

    def _tell(self, sentence: str) -> None:
        self.found.setdefault(sentence)


def _side_named(base: Node | None) -> str:
    """Which ad a reference names: "my", "target", or neither of them."""
    if not isinstance(base, Reference) or base.base is not None or base.absolute:
        return ""
    return "my" if base.key in OWN else "target" if base.key in OTHER else ""


def _nowhere(name: str, sides: list[Side], *, alone: bool) -> str:
    if len(sides) > 1:
        return f"{name} is defined in neither ad"
    [side] = sides
    return f"{name} is not defined in {side.name}{', and there is no target' if alone else ''}"


def _sentence(node: Node, value: Exceptional, operands: list[Value | None]) -> str:
    if isinstance(node, Call):
        function = FUNCTIONS.get(node.key)
        if function is None:
            return f"there is no function {node.name}"
        if not function.accepts(len(node.arguments)):
            return f"{node.name} takes {_count(function.least, function.most)}, not {len(node.arguments)}"
        if node.key in _WITH_PATTERN and value is ERROR and _is_bad_pattern(operands[0]):
            return f"{_short(unparse(operands[0]))} is a bad pattern"
    shown = " and ".join(_short(unparse(operand)) for operand in operands if operand is not None)
    return f"{_short(unparse(node))} is {value!r}{f', of {shown}' if shown else ''}"


def _is_bad_pattern(value: Value | None) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    return evaluate(Call("regexp", "regexp", (Literal(value), Literal(""))), ClassAd()) is ERROR


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} arguments or more"
    return f"{least} arguments" if least == most else f"{least} to {most} arguments"


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
