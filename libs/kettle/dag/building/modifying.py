"""What a command changes of one node, or why it cannot."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import (
    Abort,
    Category,
    Done,
    Modifier,
    PreSkip,
    Priority,
    Retry,
    SavePoint,
    ScriptCommand,
    ToleranceCommand,
    Vars,
)
from kettle.dag.structure import Node, NodeKind, ScriptKind, Variable

_ONLY_ORDINARY: Final[dict[type[Modifier], str]] = {
    Retry: "is not tried again: RETRY",
    Priority: "has no priority: PRIORITY",
    Category: "belongs to no category: CATEGORY",
    SavePoint: "has no save file: SAVE_POINT_FILE",
}


def modified(node: Node, command: Modifier, warn: Callable[[str], None]) -> Node:
    """The node after the command; raises `PlacelessFault` if it is not for such a node."""
    _refuse_kind(node, command)
    match command:
        case Vars() | ScriptCommand() | Priority() | Category() | PreSkip():
            return _said_again(node, command, warn)
        case Retry():
            return replace(node, retries=command.retries, unless_exit=command.unless_exit)
        case Abort():
            return replace(node, abort=command.rule)
        case ToleranceCommand():
            return replace(node, tolerance=command.tolerance)
        case SavePoint():
            return replace(node, save_point=command.path)
        case Done():
            if not node.is_ordinary:
                warn(f"the {node.kind.upper()} node {node.name} cannot be done before it has run; it runs")
                return node
            return replace(node, is_done=True)


def _said_again(
    node: Node, command: Vars | ScriptCommand | Priority | Category | PreSkip, warn: Callable[[str], None]
) -> Node:
    """What may have been said before, in other words: then there is a warning."""
    match command:
        case Vars():
            return replace(node, variables=_merged(node, command.variables, warn))
        case ScriptCommand():
            return _scripted(node, command, warn)
        case Priority():
            _warn_of_other(node, "priority", node.priority or None, command.priority, warn)
            return replace(node, priority=command.priority)
        case Category():
            _warn_of_other(node, "category", node.category, command.category, warn)
            return replace(node, category=command.category)
        case PreSkip():
            _warn_of_other(node, "exit code of PRE_SKIP", node.pre_skip, command.exit_code, warn)
            return replace(node, pre_skip=command.exit_code)


def _refuse_kind(node: Node, command: Modifier) -> None:
    if not node.is_ordinary and (cannot := _ONLY_ORDINARY.get(type(command))):
        raise PlacelessFault(f"the {node.kind.upper()} node {node.name} {cannot} is for JOB and SUBDAG nodes")
    if node.kind is NodeKind.FINAL and isinstance(command, Abort):
        raise PlacelessFault(
            f"the FINAL node {node.name} cannot abort the DAG: its result is the result of the DAG"
        )


def _warn_of_other(node: Node, what: str, old: object, new: object, warn: Callable[[str], None]) -> None:
    if old is not None and old != new:
        warn(f"the {what} of node {node.name} was {old} and becomes {new}")


def _scripted(node: Node, command: ScriptCommand, warn: Callable[[str], None]) -> Node:
    old = {ScriptKind.PRE: node.pre, ScriptKind.POST: node.post, ScriptKind.HOLD: node.hold}[command.when]
    if old is not None:
        warn(
            f"the {command.when} script of node {node.name} takes the place of an earlier one, {old.command}"
        )
    match command.when:
        case ScriptKind.PRE:
            return replace(node, pre=command.script)
        case ScriptKind.POST:
            return replace(node, post=command.script)
        case ScriptKind.HOLD:
            return replace(node, hold=command.script)


def _merged(node: Node, said: tuple[Variable, ...], warn: Callable[[str], None]) -> tuple[Variable, ...]:
    """A name that is said again keeps its place and placement, and gets the new value."""
    if not node.variables and len(said) == 1:
        return said
    found = {variable.name: variable for variable in node.variables}
    for variable in said:
        old = found.get(variable.name)
        if old is None:
            found[variable.name] = variable
        else:
            if old.value != variable.value:
                warn(
                    f"the variable {variable.name} of node {node.name} was {old.value!r} and becomes {variable.value!r}"
                )
            found[variable.name] = replace(old, value=variable.value)
    return tuple(found.values())
