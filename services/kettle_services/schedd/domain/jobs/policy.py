"""
What a job's own policy and the site's want to become of it: HTCondor's order, in which the first rule that fires counts.

    1 running: allowed durations -> hold; PeriodicVacate, SYSTEM_PERIODIC_VACATE -> vacate
    2 TimerRemove is in the past -> remove
    3 not held: PeriodicHold, SYSTEM_PERIODIC_HOLD -> hold
    4 held, but not by its owner: PeriodicRelease, SYSTEM_PERIODIC_RELEASE -> release
    5 PeriodicRemove, SYSTEM_PERIODIC_REMOVE -> remove
    6 at its exit only, where nothing is vacated: OnExitHold -> hold; OnExitRemove false -> back into the queue

Pure.  An expression fires if it is a number or truth value that is not zero without its fraction; a string, undefined
and error never fire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from kettle.classad import (
    ClassAd,
    ClassAdError,
    EvaluationFailed,
    Value,
    evaluate,
    evaluate_attribute,
    parse,
    unparse,
)
from kettle.jobs.durations import exceeded
from kettle.runtime.expression_types import ConditionText, NumberText, ReasonText
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import SUBCODES, Ending
from kettle_wire.codes import HoldCode, JobStatus, VacateCode

_REASON_CHARS: Final = 1000
"""The maximum length of a reason, because it is recorded permanently."""

Action = Literal["hold", "release", "remove", "vacate", "requeue"]
Periodic = Literal["Hold", "Release", "Remove", "Vacate"]

_LIVE: Final = frozenset({JobStatus.IDLE, JobStatus.RUNNING})
_ANY: Final = _LIVE | {JobStatus.HELD}
_PERIODIC: Final[Mapping[str, frozenset[JobStatus]]] = {
    "allowedexecuteduration": frozenset({JobStatus.RUNNING}),
    "allowedjobduration": frozenset({JobStatus.RUNNING}),
    "periodicvacate": frozenset({JobStatus.RUNNING}),
    "timerremove": _ANY | {JobStatus.COMPLETED},
    "periodichold": _LIVE,
    "periodicrelease": frozenset({JobStatus.HELD}),
    "periodicremove": _ANY | {JobStatus.COMPLETED},
}
"""What a policy of the job's own is called, and what the job must be for it to fire."""
_AT_EXIT: Final = frozenset(_PERIODIC) - {"periodicvacate", "periodicrelease"} | {
    "onexithold",
    "onexitremove",
}

ATTRIBUTES: Final = _AT_EXIT.union(_PERIODIC)
"""What jobs say of policies of their own, in lower case."""
_FALSE_COUNTS: Final = frozenset({"onexitremove", "timerremove"})
"""The one fires just then, and for the other it is no time."""


class PolicyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about a job."""

    action: Action
    ending: Ending
    """Why; the code is 0 where the action has none."""


class SystemRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    One SYSTEM_PERIODIC_... macro; all texts are expressions over the job's ad. Raises ValueError for what is none.
    """

    expression: ConditionText
    name: str = ""
    """Rules with a name come in their order, before the one without."""
    reason: ReasonText = ""
    """A string: why, instead of the sentence that shows the expression."""
    subcode: NumberText = ""
    """An integer: HoldReasonSubCode or VacateReasonSubCode."""

    def __post_init__(self) -> None:
        for field in ("expression", "reason", "subcode"):
            text = getattr(self, field)
            try:
                if text or field == "expression":
                    parse(text)
            except ClassAdError as error:
                raise ValueError(f"the {field} '{text}' cannot be read: {error}") from error


class SystemPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """
    The site's rules for all jobs; `max_releases` -1: held jobs are released however often they were held.
    """

    hold: tuple[SystemRule, ...] = ()
    release: tuple[SystemRule, ...] = ()
    remove: tuple[SystemRule, ...] = ()
    vacate: tuple[SystemRule, ...] = ()
    max_releases: int = -1

    def __post_init__(self) -> None:
        """Each kind in the order in which its rules are tried."""
        for kind in ("hold", "release", "remove", "vacate"):
            rules = tuple(sorted(getattr(self, kind), key=lambda rule: not rule.name))
            msgspec.structs.force_setattr(self, kind, rules)
        if any(rule.subcode for rule in (*self.release, *self.remove)):
            raise ValueError("a rule that releases or removes has no subcode")

    @property
    def concerned(self) -> frozenset[JobStatus]:
        """The statuses in which a rule may fire."""
        rules = ((self.hold, "periodichold"), (self.release, "periodicrelease"),
                 (self.remove, "periodicremove"), (self.vacate, "periodicvacate"))  # fmt: skip
        return frozenset[JobStatus]().union(*(_PERIODIC[name] for given, name in rules if given))

    def rules(self, kind: Periodic) -> tuple[SystemRule, ...]:
        """The rules of one kind, in the order in which they are tried."""
        match kind:
            case "Hold":
                return self.hold
            case "Release":
                return self.release
            case "Remove":
                return self.remove
            case "Vacate":
                return self.vacate


def periodic(attributes: Mapping[str, Scalar] | list[str]) -> frozenset[JobStatus]:
    """
    The statuses in which jobs with these attributes are looked at now and then for a policy of their own.
    """
    return frozenset[JobStatus]().union(*(_PERIODIC.get(name, ()) for name in _stated(attributes)))


def at_exit(attributes: Mapping[str, Scalar] | list[str]) -> bool:
    """Whether jobs with these attributes have a policy of their own that is looked at when they exit."""
    return not _AT_EXIT.isdisjoint(_stated(attributes))


def _stated(attributes: Mapping[str, Scalar] | list[str]) -> Iterator[str]:
    """Of most policies a literal false is as good as none."""
    if isinstance(attributes, list):
        yield from map(str.lower, attributes)
        return
    for name, value in attributes.items():
        if value is not False or name.lower() in _FALSE_COUNTS:
            yield name.lower()


def decide(
    ad: Ad, status: JobStatus, now: int, system: SystemPolicy, *, exited: bool = False
) -> PolicyVerdict | None:
    """
    The decision about a job with this ad and status at `now`, seconds since 1970; None: do nothing.

    `exited`: its program has just run to its end, and the ad says how. None means then that it leaves the queue, and so
    does the verdict to remove it.
    """
    case = _Case(ad, status, now, system, exited=exited)
    if status == JobStatus.REMOVED or case.exempt:
        return None
    for step in _ORDER:
        verdict = step(case)
        if verdict is not None:
            return verdict
    return None


class _Case:
    """One job at one moment."""

    def __init__(self, ad: Ad, status: JobStatus, now: int, system: SystemPolicy, *, exited: bool) -> None:
        self.ad = ClassAd.from_wire(ad)
        self._said = ad
        self.status = status
        self.now = now
        self.system = system
        self.exited = exited
        self._context = evaluation.at(now)

    @property
    def exempt(self) -> bool:
        """Whether it waits for its input: the client that sends that handles it."""
        return self.status == JobStatus.HELD and self.integer("HoldReasonCode") == HoldCode.SpoolingInput

    def value(self, name: str) -> Value | None:
        """What an attribute evaluates to; None if there is none, or it takes too long."""
        if name not in self.ad:  # most attributes of most jobs
            return None
        try:
            return evaluate_attribute(name, self.ad, context=self._context)
        except EvaluationFailed:
            return None

    def evaluated(self, expression: str) -> Value | None:
        """What an expression evaluates to in the ad; None if it takes too long."""
        try:
            return evaluate(parse(expression), my=self.ad, context=self._context)
        except EvaluationFailed:
            return None

    def integer(self, name: str) -> int | None:
        """The number that an attribute evaluates to, without its fraction; None for anything else."""
        return _integer(self.value(name))

    def text(self, name: str) -> str:
        """The expression behind an attribute, as it was written."""
        said = self._said[self.ad.spelling(name.lower())]
        return said.expr if isinstance(said, Expr) else unparse(said)

    def own(self, name: str, action: Action, code: int = 0) -> PolicyVerdict | None:
        """The verdict of an attribute of the job, if it fires."""
        if name not in self.ad or not fires(self.value(name)):
            return None
        said = self.value(f"{name}Reason")
        usual = f"The job attribute {name} expression '{self.text(name)}' evaluated to TRUE"
        subcode = _subcode(self.value(f"{name}SubCode"))
        return PolicyVerdict(
            action=action, ending=Ending(code=code, subcode=subcode, reason=_reason(said, usual))
        )

    def of_system(self, kind: Periodic, action: Action, code: int = 0) -> PolicyVerdict | None:
        """The verdict of the first of the site's rules that fires."""
        for rule in self.system.rules(kind):
            if not fires(self.evaluated(rule.expression)):
                continue
            # A rule's own name is not told: scripts look for these words.
            usual = f"The system macro SYSTEM_PERIODIC_{kind.upper()} expression '{rule.expression}' evaluated to TRUE"
            reason = _reason(self.evaluated(rule.reason) if rule.reason else None, usual)
            subcode = _subcode(self.evaluated(rule.subcode)) if rule.subcode else 0
            return PolicyVerdict(action=action, ending=Ending(code=code, subcode=subcode, reason=reason))
        return None


def _durations(case: _Case) -> PolicyVerdict | None:
    begun = case.integer("ShadowBday")
    if case.status != JobStatus.RUNNING or begun is None:
        return None
    allowed = case.integer("AllowedJobDuration")
    if allowed is not None and case.now - begun >= allowed:
        return _hold_for(HoldCode.JobDurationExceeded, exceeded("job", allowed))
    allowed = case.integer("AllowedExecuteDuration")
    executing = case.integer("JobCurrentStartExecutingDate")  # of this attempt, by the worker's clock
    if allowed is None or executing is None:
        return None
    since = max(executing, begun, case.integer("TransferOutFinished") or 0)
    if case.now - since > allowed:
        return _hold_for(HoldCode.JobExecuteExceeded, exceeded("execute", allowed))
    return None


def _vacate(case: _Case) -> PolicyVerdict | None:
    if case.status != JobStatus.RUNNING or case.exited:
        return None
    return case.own("PeriodicVacate", "vacate", VacateCode.JobPolicyVacate) or case.of_system(
        "Vacate", "vacate", VacateCode.SystemPolicyVacate
    )


def _timer(case: _Case) -> PolicyVerdict | None:
    if "TimerRemove" not in case.ad:
        return None
    at = case.value("TimerRemove")
    shown = f"The job attribute TimerRemove expression '{case.text('TimerRemove')}' evaluated to"
    if isinstance(at, bool) or not isinstance(at, int):
        if case.status == JobStatus.COMPLETED:  # it is in the queue, but can run no more
            return None
        return _hold_for(HoldCode.JobPolicyUndefined, _cut(f"{shown} UNDEFINED"))
    if not 0 <= at < case.now:
        return None
    return PolicyVerdict(action="remove", ending=Ending(code=0, reason=_cut(f"{shown} TRUE")))


def _hold(case: _Case) -> PolicyVerdict | None:
    if case.status in {JobStatus.HELD, JobStatus.COMPLETED}:
        return None
    return case.own("PeriodicHold", "hold", HoldCode.JobPolicy) or case.of_system(
        "Hold", "hold", HoldCode.SystemPolicy
    )


def _release(case: _Case) -> PolicyVerdict | None:
    if case.status != JobStatus.HELD or case.integer("HoldReasonCode") == HoldCode.UserRequest:
        return None
    if 0 <= case.system.max_releases <= (case.integer("NumHolds") or 0):
        return None
    return case.own("PeriodicRelease", "release") or case.of_system("Release", "release")


def _remove(case: _Case) -> PolicyVerdict | None:
    return case.own("PeriodicRemove", "remove") or case.of_system("Remove", "remove")


def _on_exit(case: _Case) -> PolicyVerdict | None:
    if not case.exited:
        return None
    if "ExitBySignal" not in case.ad or not ("ExitCode" in case.ad or "ExitSignal" in case.ad):
        return _hold_for(HoldCode.JobPolicyUndefined, "The job ended, and nobody knows how")
    held = case.own("OnExitHold", "hold", HoldCode.JobPolicy)
    if held is not None or "OnExitRemove" not in case.ad:
        return held
    if _number(case.value("OnExitRemove")) != 0:
        return None
    usual = f"The job attribute OnExitRemove expression '{case.text('OnExitRemove')}' evaluated to FALSE"
    reason = _reason(case.value("OnExitRemoveReason"), usual)
    return PolicyVerdict(action="requeue", ending=Ending(code=VacateCode.JobShouldRequeue, reason=reason))


def _hold_for(code: HoldCode, reason: str) -> PolicyVerdict:
    return PolicyVerdict(action="hold", ending=Ending(code=code, reason=reason))


_ORDER: Final[tuple[Callable[[_Case], PolicyVerdict | None], ...]] = (
    _durations, _vacate, _timer, _hold, _release, _remove, _on_exit,
)  # fmt: skip


def fires(value: Value | None) -> bool:
    """Whether an expression with this value has its effect."""
    return bool(_number(value))


def _number(value: Value | None) -> int | None:
    """The whole part of a number or truth value; None for anything else."""
    return int(value) if isinstance(value, bool) else _integer(value)


def _integer(value: Value | None) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return int(value)
    except (OverflowError, ValueError):  # infinite, or no number
        return None


def _subcode(value: Value | None) -> int:
    """What can be recorded as one; anything else is none."""
    number = _integer(value) or 0
    return number if abs(number) < SUBCODES else 0


def _reason(said: Value | None, usual: str) -> str:
    return _cut(said if isinstance(said, str) and said else usual)


def _cut(reason: str) -> str:
    """Without what no log can hold: half characters, ends of texts, and no end."""
    shown = reason.encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return shown if len(shown) <= _REASON_CHARS else f"{shown[:_REASON_CHARS]} ..."
