"""What the site knows about users; the context says how to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle.classad.errors import EvaluationFailed
from kettle.classad.functions.registry import Function, attempted, lazy, strict
from kettle.classad.nodes import Node
from kettle.classad.values import ERROR, UNDEFINED, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kettle.classad.scope import Scope


def _user_home(arguments: Sequence[Node], scope: Scope) -> Value:
    if not 1 <= len(arguments) <= 2:
        raise EvaluationFailed("userHome() takes a name and perhaps a default")
    default = attempted(arguments[1], scope) if len(arguments) > 1 else ""
    name = attempted(arguments[0], scope)
    if not isinstance(default, str):
        default = ""
    if not isinstance(name, str):
        return default or (UNDEFINED if name is UNDEFINED else ERROR)
    ask = scope.state.context.home
    home = ask(name) if ask is not None else None
    return home or default or UNDEFINED


def _user_map(arguments: Sequence[Value], scope: Scope) -> Value:
    """
    With a preferred group: that one if the user has it, else the first; the fourth argument stands in for none.
    """
    if any(value is ERROR for value in arguments[:2]):
        return ERROR
    default = arguments[3] if len(arguments) > 3 else UNDEFINED
    name, user = arguments[:2]
    ask = scope.state.context.user_map
    if not isinstance(name, str) or not isinstance(user, str) or ask is None:
        return default
    mapped = ask(name, user)
    if mapped is None:
        return default
    if len(arguments) == 2:
        return mapped
    groups = [group.strip() for group in mapped.split(",") if group.strip()]
    preferred = arguments[2].lower() if isinstance(arguments[2], str) else ""
    return next((group for group in groups if group.lower() == preferred), groups[0] if groups else default)


FAMILY: Final[Mapping[str, Function]] = {
    "userhome": lazy(_user_home, 0, None),
    "usermap": strict(_user_map, 2, 4),
}
