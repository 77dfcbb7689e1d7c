"""
The attempts of jobs: when each was begun and ended, what it has used, and how much of that is not lost.

Pure.  Times are whole microseconds: sums of them come out the same in any order.

An attempt counts from the moment at which it was recorded to be assigned, for as long as its machine measured (`wall`).
So its time is given by one clock, that of its queue, no matter how late the report of its end came.  The rest of the
time until the queue recorded the end is `uncharged`: the way to the machine, a report that came late, or all of an
attempt that no machine ever reported.
"""

from typing import Final

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.events.job import JobAssigned, JobCheckpointed, JobCompleted, JobEvent, JobVacated
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

US: Final = 1_000_000


class Run(msgspec.Struct):
    """The attempt of a job that runs."""

    machine: str
    slot: str
    begun: int
    """When it was assigned, microseconds since the epoch."""
    saved: int = 0
    """Microseconds of it that its last checkpoint has saved."""


class EndedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that has ended; times in microseconds."""

    job: JobId
    number: int
    """Counts the runs of the job from 1."""
    owner: str
    group: str
    """AcctGroup; empty: none."""
    project: str
    """ProjectName; empty: none."""
    machine: str
    slot: str
    begun: int
    """Since the epoch."""
    ended: int
    """When its end was recorded."""
    wall: int
    """As its machine measured."""
    slot_time: int
    """Wall-clock time times cores."""
    cpu: int
    """User and system."""
    good: int
    """Of `wall`, what is not lost: all if its program ran to its end, else up to its last checkpoint."""
    uncharged: int
    """What its queue saw of it beyond `wall`, times cores."""
    completed: bool
    """It was the last one of a job that ran to its end."""
    code: int
    """
    Why it ended early: HTCondor's VacateReasonCode, or HoldReasonCode (below 1000); 0: its program ran to its end.
    """
    frame: int
    """That in which its end was recorded."""

    @property
    def until(self) -> int:
        """From when on nothing of it counts."""
        return max(self.ended, self.begun + self.wall)


def noted(runs: dict[JobId, Run], job: JobId, event: JobEvent, at: int) -> None:
    """Keep what the end of an attempt does not tell: its beginning and its checkpoints."""
    if isinstance(event, JobAssigned):
        runs[job] = Run(event.startd, event.slot, at)
    elif isinstance(event, JobCheckpointed) and (run := runs.get(job)) is not None:
        run.saved = max(run.saved, round(event.usage.wall * US))


def attempt_of(
    job: JobId, ad: Ad, run: Run | None, event: JobCompleted | JobVacated, frame: Frame
) -> EndedAttempt:
    """The attempt that an event has ended. `ad` is that of the job, with this event applied."""
    usage, cpus = event.usage, ad.get("RequestCpus")
    cores = cpus if isinstance(cpus, int | float) else 1
    wall = round(usage.wall * US)
    if run is None:  # recorded by nobody: it is believed to have begun as long ago as it has lasted
        run = Run("", "", frame.at - wall)
    return EndedAttempt(
        job=job,
        number=event.attempt,
        owner=_text(ad, "Owner"),
        group=_text(ad, "AcctGroup"),
        project=_text(ad, "ProjectName"),
        machine=run.machine,
        slot=run.slot,
        begun=run.begun,
        ended=frame.at,
        wall=wall,
        slot_time=round(wall * cores),
        cpu=round(usage.user_cpu * US) + round(usage.system_cpu * US),
        good=wall if event.exit is not None else min(wall, run.saved),
        uncharged=round(max(0, frame.at - run.begun - wall) * cores),
        completed=ad["JobStatus"] == JobStatus.COMPLETED,
        code=0 if isinstance(event, JobCompleted) else event.ending.code,
        frame=frame.number,
    )


def _text(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
