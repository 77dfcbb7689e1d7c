"""The policies of a job while it waits, runs and ends: expressions that the schedd evaluates."""

from collections.abc import Mapping
from typing import Final

from kettle.classad import unparse
from kettle.classad.nodes import Binary, Logical, Node
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import constant, expression, integer, wire
from kettle.submit.lookup import Lookup, Setting, placed
from kettle_wire.ads.types import Ad, Expr

EXPRESSIONS: Final[Mapping[str, str]] = {
    "allowed_execute_duration": "AllowedExecuteDuration",
    "allowed_job_duration": "AllowedJobDuration",
    "job_max_vacate_time": "JobMaxVacateTime",
    "max_job_retirement_time": "MaxJobRetirementTime",
    "leave_in_queue": "LeaveJobInQueue",
    "on_exit_hold": "OnExitHold",
    "on_exit_hold_reason": "OnExitHoldReason",
    "on_exit_hold_subcode": "OnExitHoldSubCode",
    "on_exit_remove": "OnExitRemove",
    "periodic_hold": "PeriodicHold",
    "periodic_hold_reason": "PeriodicHoldReason",
    "periodic_hold_subcode": "PeriodicHoldSubCode",
    "periodic_release": "PeriodicRelease",
    "periodic_remove": "PeriodicRemove",
    "periodic_vacate": "PeriodicVacate",
}
"""Command -> attribute."""

RETRIES: Final = ("max_retries", "retry_until", "success_exit_code")
DEFAULT_RETRIES: Final = 2


def policies(lookup: Lookup) -> Ad:
    """
    All of them.  Each that retries are asked with says when a job that ended leaves the queue, so they are one rule.
    """
    given = {name: setting for name in EXPRESSIONS if (setting := lookup.get(name))}
    nodes = {name: _node(setting) for name, setting in given.items()}
    ad: Ad = {EXPRESSIONS[name]: wire(node) for name, node in nodes.items()}
    if any(lookup.get(name) for name in RETRIES):
        ad |= _retries(lookup, nodes.get("on_exit_remove"))
        ad.setdefault("OnExitHold", False)
    return ad


def _retries(lookup: Lookup, remove: Node | None) -> Ad:
    """When a job that ended leaves the queue: after its last try, when it succeeded, or when it says so."""
    most = lookup.get("max_retries")
    success = lookup.get("success_exit_code")
    ad: Ad = {"JobMaxRetries": DEFAULT_RETRIES if most is None else _whole(most, "max_retries", least=0)}
    if success:
        ad["JobSuccessExitCode"] = _whole(success, "success_exit_code")
    leaves = [
        "NumJobCompletions > JobMaxRetries",
        f"ExitCode =?= {'JobSuccessExitCode' if success else '0'}",
    ]
    if until := lookup.get("retry_until"):
        leaves.append(_until(until))
    if remove is not None:
        leaves.append(_joinable(remove))
    ad["OnExitRemove"] = Expr(" || ".join(leaves))
    return ad


def _until(given: Setting) -> str:
    node = _node(given)
    value = constant(node)
    if isinstance(value, bool) or not isinstance(value, int):
        return _joinable(node)
    return f"ExitCode =?= {value}"


def _joinable(node: Node) -> str:
    """An expression as a part of an or: in parentheses, unless it holds together without."""
    text = unparse(node)
    tight = isinstance(node, Binary) or (isinstance(node, Logical) and node.op == "||")
    return text if tight else f"({text})"


def _node(given: Setting) -> Node:
    try:
        return expression(given.text)
    except PlacelessError as error:
        raise placed(given, error) from error


def _whole(given: Setting, name: str, *, least: int | None = None) -> int:
    try:
        value = integer(given.text, name)
    except PlacelessError as error:
        raise placed(given, error) from error
    if least is not None and value < least:
        given.refuse(f"{name} must be {least} or more, not {given.text}")
    return value
