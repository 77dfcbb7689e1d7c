"""
The runs of a job that ran more than once, told apart for APEL: each was a job of its own to the batch system, with its own number.

Pure: made from what is recorded of a job, by the numbers of its attempts, so what is recorded twice, or read again, is one run.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Usage
from kettle_wire.events import Event
from kettle_wire.events.job import JobAssigned, JobCompleted, JobStarted, JobTold, JobVacated

_ROUNDED_S: Final = 1.0
"""By so much each run may differ from its part in the sum that the ad has."""


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that has ended; times in seconds since the epoch."""

    number: int
    began: float
    ended: float
    usage: Usage
    grid_id: str
    """GridJobId while it ran; empty: it ran on no batch system."""


def ended_runs(events: Iterable[tuple[float, Event]]) -> list[EndedRun]:
    """The runs that used something, in their order; events with the moments at which they were recorded."""
    began: dict[int, float] = {}
    grid_ids: dict[int, str] = {}
    found: dict[int, EndedRun] = {}
    for at, event in events:
        match event:
            case JobAssigned(attempt=number):
                began.setdefault(number, at)
            case JobStarted(attempt=number):
                began[number] = event.at or at
            case JobTold(attempt=number) if (name := event.attributes.get("GridJobId")) is not None:
                grid_ids[number] = str(name).strip('"')
            case JobVacated(attempt=number) | JobCompleted(attempt=number) if event.usage.wall > 0:
                ended = event.exit.at if event.exit is not None and event.exit.at else at
                found[number] = EndedRun(
                    number=number,
                    began=began.get(number, ended - event.usage.wall),
                    ended=ended,
                    usage=event.usage,
                    grid_id=grid_ids.get(number, ""),
                )
            case _:
                pass
    return [found[number] for number in sorted(found)]


def is_run_again(ad: Ad) -> bool:
    """Whether a job began more than once, so that its ad has sums."""
    return any(
        isinstance(count := ad.get(name), int) and count > 1 for name in ("NumShadowStarts", "NumJobStarts")
    )


def told_apart(ad: Ad, runs: Sequence[EndedRun]) -> list[Ad]:
    """
    An ad for each run; the first has the name of the job, later ones have their number behind it.

    If the runs do not add up to what the ad says (their record is not there any more, or is that of another queue's job), the job is told
    of as one.
    """
    said = ad.get("RemoteWallClockTime")
    total = sum(each.usage.wall for each in runs)
    if not runs or not isinstance(said, int | float) or abs(total - said) > _ROUNDED_S * len(runs):
        return [ad]
    return [_of(ad, each) for each in runs]


def _of(ad: Ad, run: EndedRun) -> Ad:
    name = ad.get("GlobalJobId") or f"{ad.get('ClusterId')}.{ad.get('ProcId')}"
    theirs: Ad = {
        "GlobalJobId": f"{name}#{run.number}" if run.number > 1 else str(name),
        "JobStartDate": int(run.began),
        "CompletionDate": int(run.ended),
        "RemoteWallClockTime": run.usage.wall,
        "RemoteUserCpu": run.usage.user_cpu,
        "RemoteSysCpu": run.usage.system_cpu,
    }
    if run.usage.memory_kib:
        theirs["ResidentSetSize"] = run.usage.memory_kib
    if run.grid_id:
        theirs["GridJobId"] = run.grid_id
    return {name: value for name, value in ad.items() if name != "GridJobId"} | theirs
