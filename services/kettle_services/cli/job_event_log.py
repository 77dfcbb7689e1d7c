"""The progress of jobs according to a job event log, without a pool."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kettle.client import JobId, JobState, Progress, Select
from kettle.userlog import (
    Aborted,
    ClusterRemove,
    ClusterSubmit,
    Evicted,
    Executing,
    Held,
    LogEvent,
    LogReader,
    ReconnectFailed,
    Released,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
    UserLogFormatError,
    event_of,
)
from kettle_services.cli.errors import CommandError

_LOOK_S: Final = 0.2
"""
Seconds between two checks of a file: there is no notification that it has grown, because it may be on another machine.
"""


@dataclass
class LogProgress:
    """The progress of the selected jobs according to a log."""

    select: Select
    jobs: dict[JobId, JobState] = field(default_factory=dict[JobId, JobState])
    coming: set[int] = field(default_factory=set[int])
    """Clusters of which more jobs will be made."""

    def add_event(self, event: LogEvent) -> None:
        """Take the next event."""
        if not self._is_meant(event.job):
            return
        match event:
            case ClusterSubmit():
                self.coming.add(event.job.cluster)
            case ClusterRemove():
                self.coming.discard(event.job.cluster)
            case _:
                if (state := after(event)) is not None:
                    self.jobs[event.job] = state

    @property
    def all_ended(self) -> bool:
        """Whether the log contains selected jobs, and nothing more will happen to any."""
        return bool(self.jobs) and not self.coming and all(state.ended for state in self.jobs.values())

    def _is_meant(self, job: JobId) -> bool:
        select = self.select
        everything = not select.jobs and not select.clusters
        cluster = job.cluster in select.clusters or (
            job.proc < 0 and any(job.cluster == each.cluster for each in select.jobs)
        )
        return everything or cluster or job in select.jobs


def after(event: LogEvent) -> JobState | None:
    """Where a job is after an event; None: where it was before."""
    match event:
        case Submitted() | Evicted() | ReconnectFailed() | Released():
            return JobState()
        case Executing() | Unsuspended():
            return JobState("running")
        case Suspended():
            return JobState("suspended")
        case Held():
            return JobState("held")
        case Terminated(exit=ran):
            return JobState("completed", ran.code, ran.signal)
        case Aborted():
            return JobState("removed")
        case _:
            return None


async def watched(path: Path, select: Select) -> AsyncIterator[Progress]:
    """
    How far the jobs are, whenever the log has grown, until all have ended; raises CommandError for what is no log.
    """
    told, log = LogProgress(select), LogReader(path)
    while not told.all_ended:
        try:
            events = [event_of(block) for block in log.all()]
        except OSError as error:
            raise CommandError(f"the log {path} cannot be read: {error.strerror}") from error
        except UserLogFormatError as error:
            raise CommandError(f"the log {path} cannot be read: {error}") from error
        for event in events:
            told.add_event(event)
        if events:
            yield Progress(told.jobs)
        if not told.all_ended:
            await asyncio.sleep(_LOOK_S)
