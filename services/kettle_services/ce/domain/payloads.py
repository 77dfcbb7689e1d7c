"""
What a pilot runs for others by its own word: what a report changes, and what the record of a pilot comes to.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.commands.payloads import ReportedPayload
from kettle_wire.events.payload import PayloadBegun, PayloadEvent, PayloadOver, PilotOver
from kettle_wire.jobs import JobId
from kettle_wire.payloads import Payload, PayloadReport

PAYLOAD: Final = "payload/"
MOST_RUNNING: Final = 1000
"""So many a pilot runs at the same time."""
MOST_SAID: Final = 100_000
"""So many begin in one pilot: what is more is no work, and would fill the log."""
_OVER: Final = frozenset({JobStatus.REMOVED, JobStatus.COMPLETED, JobStatus.HELD})


class TooManyError(Exception):
    """More than one pilot may report; the message is a sentence."""


class RunningPayload(msgspec.Struct, frozen=True):
    """One that has begun and is not over."""

    payload: Payload
    began: float


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has reported what it runs."""

    by: str
    """Whose job it is."""
    heard: float
    """When it has reported last, seconds since the epoch."""
    begun: int = 0
    """So many have begun in it."""
    running: dict[str, RunningPayload] = {}
    """By their names, in the order in which they began."""


def fold_pilot(pilot: Pilot | None, event: PayloadEvent, at: float) -> Pilot | None:
    """After a report; nothing is kept of a pilot that has left the queue."""
    pilot = pilot or Pilot(by=event.by, heard=at)
    if isinstance(event, PilotOver):
        return None if event.gone else msgspec.structs.replace(pilot, running={})
    if isinstance(event, PayloadBegun):
        running = {**pilot.running, event.payload.name: RunningPayload(event.payload, at)}
        return msgspec.structs.replace(pilot, heard=at, begun=pilot.begun + 1, running=running)
    running = {name: each for name, each in pilot.running.items() if name != event.name}
    return msgspec.structs.replace(pilot, heard=at, running=running)


def reported(pilot: Pilot | None, by: str, report: PayloadReport) -> list[PayloadEvent]:
    """
    What a report changes: what is known is not recorded again.

    Raises TooManyError, and nothing of the report counts.
    """
    running = set(pilot.running) if pilot is not None else set[str]()
    said = pilot.begun if pilot is not None else 0
    events: list[PayloadEvent] = []
    for each in report.begun:
        if each.name not in running:
            running.add(each.name)
            events.append(PayloadBegun(by=by, payload=each))
    said += len(events)
    for end in report.over:
        if end.name in running:
            running.discard(end.name)
            events.append(PayloadOver(by=by, name=end.name, exit_code=end.exit_code))
    if len(running) > MOST_RUNNING:
        raise TooManyError(f"a pilot runs {MOST_RUNNING:,} payloads at the most, and this would be one more")
    if said > MOST_SAID:
        raise TooManyError(f"{MOST_SAID:,} payloads have begun in this pilot: no more are recorded")
    return events


def has_ended(ad: Ad, heard: float) -> bool:
    """
    Whether a job runs no more that was heard at a time, in seconds since the epoch.  One that waits has been ended if it waits since
    then: its access point may hear of its beginning later than we hear of its first payload.
    """
    if ad.get("JobStatus") in _OVER:
        return True
    since = ad.get("EnteredCurrentStatus", 0)
    return ad.get("JobStatus") == JobStatus.IDLE and isinstance(since, int | float) and since > heard


def ended(pilot: Pilot, ad: Ad | None) -> list[PayloadEvent]:
    """What follows for a pilot from its job's ad; None: it has left the queue."""
    if ad is None:
        return [PilotOver(by=pilot.by, gone=True)]
    return [PilotOver(by=pilot.by)] if pilot.running and has_ended(ad, pilot.heard) else []


def history(job: JobId, events: Iterable[tuple[float, PayloadEvent]]) -> list[ReportedPayload]:
    """All that a pilot has run, from its record: each event with its time."""
    told: list[ReportedPayload] = []
    running: dict[str, int] = {}
    for at, event in events:
        match event:
            case PayloadBegun(by=by, payload=payload):
                running[payload.name] = len(told)
                told.append(ReportedPayload(job=job, by=by, payload=payload, began=at))
            case PayloadOver(name=name, exit_code=code):
                place = running.pop(name)
                told[place] = msgspec.structs.replace(told[place], ended=at, exit_code=code)
            case PilotOver():
                for place in running.values():
                    told[place] = msgspec.structs.replace(told[place], ended=at, with_pilot=True)
                running.clear()
    return told
