"""
The policy of the machine's owner: expressions with HTCondor's names, compiled once, over a slot (MY) and a job (TARGET).

An expression that cannot be evaluated, or has no value of the kind that is asked for, is as good as its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, Protocol

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Context,
    EvaluationFailed,
    Node,
    Value,
    evaluate,
    evaluate_attribute,
    is_true,
    parse,
)
from kettle.classad.nodes import Literal
from kettle_wire.ads import Ad
from kettle_wire.attempts import SUBCODES

DEFAULTS: Final[Mapping[str, str]] = {
    "START": "true",
    "RANK": "0.0",
    "IS_OWNER": "false",
    "WANT_SUSPEND": "false",
    "SUSPEND": "false",
    "CONTINUE": "true",
    "PREEMPT": "false",
    "WANT_VACATE": "true",
    "KILL": "false",
    "WANT_HOLD": "false",
    "WANT_HOLD_REASON": "undefined",
    "WANT_HOLD_SUBCODE": "0",
    "MaxJobRetirementTime": "0",
    "MachineMaxVacateTime": "600",
    "CLAIM_WORKLIFE": "1200",
    "START_BACKFILL": "false",
    "EVICT_BACKFILL": "false",
}
"""All expressions of a policy, and what each is if nobody says otherwise: HTCondor's defaults."""

_LOOKED_AT: Final = ("WANT_SUSPEND", "SUSPEND", "PREEMPT")
"""With literals for all of these nothing ever happens to a job that runs."""
_ASKED_AT_THE_END: Final = ("MaxJobRetirementTime", "MachineMaxVacateTime", "WANT_VACATE", "KILL")
"""What is asked about a job that has to go, for whatever reason."""
_JOB_KEEPS: Final = frozenset({"maxjobretirementtime", "jobmaxvacatetime"})
_OF_JOB: Final = {"MaxJobRetirementTime": "MaxJobRetirementTime", "MachineMaxVacateTime": "JobMaxVacateTime"}
_LARGEST: Final = 2.0**53


class PolicyError(ValueError):
    """
    An expression of the policy is none; `name` is HTCondor's name of it, the message says where in its text.
    """

    def __init__(self, name: str, cause: ClassAdParseError) -> None:
        super().__init__(str(cause))
        self.name = name


class PolicyExpressions:
    """All expressions; those that are not given have their defaults."""

    def __init__(self, texts: Mapping[str, str] = DEFAULTS) -> None:
        """
        Raises:
            PolicyError: a text is not an expression.
            KeyError: the name of one is not known.
        """
        if unknown := set(texts) - set(DEFAULTS):
            raise KeyError(", ".join(sorted(unknown)))
        self.texts: Final = {**DEFAULTS, **texts}
        self._nodes: Final = {name: _compiled(name, text) for name, text in self.texts.items()}

    def node(self, name: str) -> Node:
        """The compiled expression."""
        return self._nodes[name]

    def literal(self, name: str) -> bool:
        """Whether an expression is the same for every slot and job at every time."""
        return isinstance(self._nodes[name], Literal)

    @cached_property
    def watches(self) -> bool:
        """Whether it has to be asked again and again about jobs that run."""
        return not all(self.literal(name) and not is_true(evaluate(self.node(name))) for name in _LOOKED_AT)

    @property
    def ranks(self) -> bool:
        """Whether it likes some jobs more than others."""
        return self.texts["RANK"] != DEFAULTS["RANK"]

    def keeps(self, job: Ad) -> Ad:
        """
        What of a job's ad is needed while it runs: all of it if the policy looks at jobs, else the times it asks for.
        """
        if self.watches or not all(map(self.literal, _ASKED_AT_THE_END)):
            return job
        return {name: value for name, value in job.items() if name.lower() in _JOB_KEEPS}


def _compiled(name: str, text: str) -> Node:
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise PolicyError(name, error) from error


class SlotEvaluation(Protocol):
    """A policy, as it is asked about one slot at one moment."""

    def holds(self, name: str) -> bool:
        """Whether an expression is true."""
        ...

    def refuses(self, name: str) -> bool:
        """Whether an expression is false, and not only unknown, of the slot alone."""
        ...

    def seconds(self, name: str) -> float:
        """A time span; of the two that a job may shorten, the shorter one."""
        ...

    def hold_reason(self) -> tuple[str, int]:
        """WANT_HOLD_REASON, empty if it is no text, and WANT_HOLD_SUBCODE."""
        ...


class JobEvaluation:
    """A policy asked about a slot, and the job that runs on it or asks for it."""

    def __init__(
        self,
        policy: PolicyExpressions,
        slot: Callable[[], Ad],
        job: Ad | None = None,
        context: Context | None = None,
    ) -> None:
        """`slot` makes the slot's ad; it is called if an expression needs one."""
        self._policy = policy
        self._make = slot
        self._job = None if job is None else ClassAd.from_wire(job)
        self._context = context or Context()

    @cached_property
    def _slot(self) -> ClassAd:
        return ClassAd.from_wire(self._make())

    def _value(self, name: str, *, alone: bool = False) -> Value | None:
        my = None if self._policy.literal(name) else self._slot
        try:
            return evaluate(self._policy.node(name), my, None if alone else self._job, self._context)
        except EvaluationFailed:
            return None

    def holds(self, name: str) -> bool:
        """Whether an expression is true."""
        value = self._value(name)
        return value is not None and is_true(value)

    def refuses(self, name: str) -> bool:
        """Whether an expression is false, and not only unknown, of the slot alone."""
        value = self._value(name, alone=True)
        return value is False or (_number(value) == 0 and value is not None)

    def number(self, name: str) -> float:
        """A number; 0 for whatever is none."""
        return _number(self._value(name)) or 0.0

    def seconds(self, name: str) -> float:
        """A time span; of the two that a job may shorten, the shorter one."""
        own = _number(self._value(name))
        span = float(DEFAULTS[name]) if own is None else own
        if self._job is not None and name in _OF_JOB and _OF_JOB[name] in self._job:
            try:
                asked = _number(evaluate_attribute(_OF_JOB[name], self._job, self._slot, self._context))
            except EvaluationFailed:
                asked = None
            span = span if asked is None else min(span, asked)
        return span

    def hold_reason(self) -> tuple[str, int]:
        """WANT_HOLD_REASON, empty if it is no text, and WANT_HOLD_SUBCODE, 0 if it is none."""
        reason, subcode = self._value("WANT_HOLD_REASON"), int(self.number("WANT_HOLD_SUBCODE"))
        return reason if isinstance(reason, str) else "", subcode if abs(subcode) < SUBCODES else 0


def _number(value: Value | None) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float) and -_LARGEST < value < _LARGEST:
        return float(value)
    return None
