"""
Jobs with a deferral time: when they are offered, and when those with a calendar run next.

Pure. A job is offered at the time of HTCondor's clause in its Requirements: DeferralPrepTime and ScheddInterval
before its time, so that its files are in place by then. The starter waits for the time itself, and knows the window.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kettle.classad import UNDEFINED, ClassAd, EvaluationFailed, Value, evaluate_attribute, is_true
from kettle.jobs.crontab import FIELDS, crontab, next_run
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import ExitRecord

_CRON: Final = {name.lower(): name for name in FIELDS}
_NOOP: Final = "IsNoopJob"
ATTRIBUTES: Final = frozenset({"deferraltime", _NOOP.lower(), *_CRON})
"""What jobs say, in lower case, that start at a time of their own, or are none for any machine."""
_PREP_TIME: Final = 300
_SCHEDD_INTERVAL: Final = 300


class Wait(msgspec.Struct, frozen=True):
    """The job is offered at this time, seconds since 1970."""

    until: float


class Move(msgspec.Struct, frozen=True):
    """Its time is over or was never set: by the calendar this is the next one."""

    to: int


class Senseless(msgspec.Struct, frozen=True):
    """The calendar has no time for it."""

    reason: str


def timed(attributes: Iterable[str]) -> bool:
    """Whether jobs with these attributes start at a time of their own, or are none for any machine."""
    return any(name.lower() in ATTRIBUTES for name in attributes)


def plan(ad: Ad, now: float) -> Wait | Move | Senseless | ExitRecord:
    """
    What a job that could run at `now` waits for. The calendar is that of the clock on this machine's wall.

    An exit: it is no job for any machine, and has ended this way.
    """
    seen = _Ad(ad, now)
    if seen.is_true(_NOOP):
        # As if it had run: NoopJobExitSignal, or NoopJobExitCode, which is 0 if the job says neither.
        signal, code = seen.number("NoopJobExitSignal"), seen.number("NoopJobExitCode")
        if signal and code is None:
            return ExitRecord(signal=signal, at=now)
        return ExitRecord(code=code or 0, at=now)
    at, window = seen.number("DeferralTime"), seen.window()
    fields = {name: str(value) for folded, name in _CRON.items() if (value := seen.value(folded)) is not None}
    ran = at is not None and (seen.number("JobCurrentStartExecutingDate") or 0) >= at
    if fields and (at is None or now >= at + window or ran):
        # The clock of the machine where it ran may be ahead of ours: this time is used, even if it is still to come here.
        used = at if ran and at is not None else 0
        try:
            following = next_run(crontab(fields), max(int(now), used))
        except ValueError as error:
            return Senseless(f"its cron settings cannot be read: {error}")
        return (
            Senseless("no year has the days that its cron settings name")
            if following is None
            else Move(following)
        )
    if at is None:
        return Wait(0)  # no time that we know of: its Requirements say
    prep, interval = seen.number("DeferralPrepTime"), seen.number("ScheddInterval")
    return Wait(
        at - (_PREP_TIME if prep is None else prep) - (_SCHEDD_INTERVAL if interval is None else interval)
    )


def settled(ad: Ad, now: float) -> Ad:
    """The ad with its time as a number, as it is now: who runs the job has no evaluator."""
    if not any(isinstance(ad.get(name), Expr) for name in ("DeferralTime", "DeferralWindow")):
        return ad
    seen = _Ad(ad, now)
    known = {
        name: value for name in ("DeferralTime", "DeferralWindow") if (value := seen.number(name)) is not None
    }
    return {**ad, **known}


def waits(ad: Ad, now: float) -> str:
    """A sentence on why such a job does not run at `now`."""
    seen = _Ad(ad, now)
    at, window = seen.number("DeferralTime"), seen.window()
    if at is None:
        return "it waits for its time, and DeferralTime is none"
    if now >= at + window:
        return f"its DeferralTime, {at}, and its DeferralWindow of {window} s have passed: it does not run any more"
    return f"it starts at its DeferralTime, {at}, in {at - now:.0f} s"


class _Ad:
    """The ad of a job at one moment."""

    def __init__(self, ad: Ad, now: float) -> None:
        self._ad = ClassAd.from_wire(ad)
        self._context = evaluation.at(now)

    def is_true(self, name: str) -> bool:
        """Whether there is such an attribute and it is true."""
        return name in self._ad and is_true(self._evaluated(name))

    def _evaluated(self, name: str) -> Value:
        try:
            return evaluate_attribute(name, self._ad, context=self._context)
        except EvaluationFailed:
            return UNDEFINED

    def value(self, name: str) -> str | int | None:
        """A text or a whole number; None for anything else."""
        if name not in self._ad:
            return None
        value = self._evaluated(name)
        return value if isinstance(value, str | int) and not isinstance(value, bool) else None

    def number(self, name: str) -> int | None:
        """A whole number; None for anything else."""
        value = self.value(name)
        return value if isinstance(value, int) else None

    def window(self) -> int:
        """How many seconds late it may start."""
        return max(0, self.number("DeferralWindow") or 0)
