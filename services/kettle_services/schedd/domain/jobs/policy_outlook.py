"""
What may still become of a waiting, running or held job by periodic expressions, and what these wait for.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from kettle.classad import (
    ClassAd,
    ClassAdError,
    EvaluationFailed,
    Node,
    NotRepresentable,
    Value,
    conjuncts,
    evaluate,
    parse,
    references,
    unparse,
)
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.jobs.policy import SystemPolicy, fires
from kettle_wire.ads import Ad
from kettle_wire.codes import HoldCode, JobStatus
from kettle_wire.commands.schedd import PolicyOutlook

Action = Literal["hold", "release", "remove", "vacate"]
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_LOOKS: Final = (0, 1, 10, 60, 300, 600, 1200, 1800, *(hours * _HOUR for hours in (1, 2, 4, 8, 12)), *(
    days * _DAY for days in (1, 2, 4, 7, 14, 30, 60)
))  # fmt: skip
"""After how many seconds one looks whether an expression is true, before the exact second is sought."""
_VALUES: Final = 6
_TEXT: Final = 300

_KINDS: Final[dict[JobStatus, tuple[Action, ...]]] = {
    JobStatus.IDLE: ("hold", "remove"),
    JobStatus.RUNNING: ("vacate", "hold", "remove"),
    JobStatus.HELD: ("release", "remove"),
}


class _Rule(msgspec.Struct, frozen=True):
    name: str
    action: Action
    text: str
    node: Node


def outlook(ad: Ad, status: JobStatus, now: float, system: SystemPolicy) -> list[PolicyOutlook]:
    """
    The periodic expressions that count for a job in this status, its own and the site's; of those that never fire, none.
    """
    if status == JobStatus.HELD and ad.get("HoldReasonCode") == HoldCode.SpoolingInput:
        return []
    job = ClassAd.from_wire(ad)
    rules = [rule for action in _KINDS.get(status, ()) for rule in _rules(job, action, system)]
    return [_outlook(rule, ad, job, now, system) for rule in rules]


def _rules(job: ClassAd, action: Action, system: SystemPolicy) -> Iterator[_Rule]:
    kind = {"hold": "Hold", "release": "Release", "remove": "Remove", "vacate": "Vacate"}[action]
    stored = job.find(f"periodic{action}")
    if isinstance(stored, Node):
        yield _Rule(f"Periodic{kind}", action, _written(stored), stored)
    elif stored is True:
        yield _Rule(f"Periodic{kind}", action, "true", parse("true"))
    given = {"hold": system.hold, "release": system.release, "remove": system.remove, "vacate": system.vacate}
    for rule in given[action]:
        try:
            node = parse(rule.expression)
        except ClassAdError:  # checked when the settings were read
            continue
        name = f"SYSTEM_PERIODIC_{action.upper()}{f'_{rule.name}' if rule.name else ''}"
        yield _Rule(name, action, rule.expression, node)


def _outlook(rule: _Rule, ad: Ad, job: ClassAd, now: float, system: SystemPolicy) -> PolicyOutlook:
    failing = [clause for clause in conjuncts(rule.node) if not fires(_value(clause, job, now))]
    asked = [references(clause, job) for clause in failing]
    names = {name for each in asked for name in each.internal | each.external}
    shown = sorted(names, key=str.lower)[:_VALUES]
    return PolicyOutlook(
        name=rule.name,
        action=rule.action,
        expression=rule.text[:_TEXT],
        delay=_delay(rule.node, job, now),
        false=[_written(clause)[:_TEXT] for clause in failing],
        values={name: _shown(job, name, now) for name in shown},
        never=_never(rule, ad, system),
    )


def _never(rule: _Rule, ad: Ad, system: SystemPolicy) -> str:
    if rule.action != "release":
        return ""
    if ad.get("HoldReasonCode") == HoldCode.UserRequest:
        return "the job was held by hand"
    holds = ad.get("NumHolds", 0)
    if isinstance(holds, int) and 0 <= system.max_releases <= holds:
        return (
            f"the job was held {holds} times, and is released by itself {system.max_releases} times at most"
        )
    return ""


def _delay(node: Node, job: ClassAd, now: float) -> float | None:
    """Seconds to the first moment at which it is true, if nothing changes but the time."""
    before = 0
    for look in _LOOKS:
        if fires(_value(node, job, now + look)):
            low, high = before, look
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if fires(_value(node, job, now + middle)) else (middle, high)
            return float(high)
        before = look
    return None


def _value(node: Node, job: ClassAd, now: float) -> "Value | None":
    try:
        return evaluate(node, my=job, context=evaluation.at(now))
    except EvaluationFailed:
        return None


def _shown(job: ClassAd, name: str, now: float) -> str:
    stored = job.find(name.lower())
    value = _value(stored, job, now) if isinstance(stored, Node) else stored
    return "undefined" if value is None else _written(value)[:_TEXT]


def _written(value: "Value | Node") -> str:
    try:
        return unparse(value)
    except NotRepresentable:
        return "(an expression that is nested too deeply to be shown)"
