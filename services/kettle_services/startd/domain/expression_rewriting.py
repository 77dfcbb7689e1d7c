"""An expression of a job, as a slot has to write it to say the same."""

from functools import lru_cache
from typing import Final, cast

import msgspec

from kettle.classad import Node, unparse
from kettle.classad.ad import OTHER, OWN
from kettle.classad.nodes import AdLiteral, Elvis, Parentheses, Reference
from kettle.classad.scope import MAGIC

_SWAPPED: Final = {**dict.fromkeys(OWN, "TARGET"), **dict.fromkeys(OTHER, "MY")}


class CannotTurn(Exception):  # noqa: N818 - no error: there is another way
    """It uses a whole ad, or makes one, so that its names cannot be rewritten for the other side."""


@lru_cache(maxsize=256)
def rewritten(expression: Node) -> str | None:
    """
    The text whose value in the slot, with the job as TARGET, is that of `expression` in the job, with the slot as TARGET.

    None: there is no such text.
    """
    try:
        return unparse(Parentheses(_turn(expression)))
    except CannotTurn:
        return None


def _turn(node: Node) -> Node:
    if isinstance(node, Reference):
        return _turn_reference(node)
    if isinstance(node, AdLiteral):
        raise CannotTurn
    fields = {name: _turn_part(getattr(node, name)) for name in node.__struct_fields__}
    return msgspec.structs.replace(node, **fields)


def _turn_part(part: object) -> object:
    if isinstance(part, Node):
        return _turn(part)
    return tuple(map(_turn_part, cast("tuple[object, ...]", part))) if isinstance(part, tuple) else part


def _turn_reference(node: Reference) -> Node:
    base = node.base
    if base is None:
        if node.key in OWN | OTHER or node.absolute:
            raise CannotTurn
        if node.key in MAGIC:
            return node
        # What has no scope is looked for in the job first, and then in the slot.
        return Parentheses(Elvis(_in("TARGET", node), _in("MY", node)))
    if not isinstance(base, Reference) or base.base is not None:
        return msgspec.structs.replace(node, base=_turn(base))
    if base.key in _SWAPPED:
        return _in(_SWAPPED[base.key], node)
    return msgspec.structs.replace(node, base=_turn(base))


def _in(scope: str, node: Reference) -> Reference:
    return Reference(node.name, node.key, Reference(scope, scope.lower()))
