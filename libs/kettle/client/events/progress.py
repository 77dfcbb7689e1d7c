"""How far a set of jobs has come: a fold over what is known of each, from ads and from events."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.client.jobs.status import Status, status_of
from kettle_wire.ads.types import Ad
from kettle_wire.events import (
    Event,
    JobAssigned,
    JobCompleted,
    JobContinued,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobSuspended,
    JobVacated,
)
from kettle_wire.jobs import JobId

_ENDED: Final = frozenset({"removed", "completed"})


class JobState(msgspec.Struct, frozen=True):
    """Where one job is."""

    status: Status = "idle"
    exit_code: int | None = None
    exit_signal: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the job."""
        return self.status in _ENDED

    @property
    def well(self) -> bool:
        """Whether the job ran to its end and reported success."""
        return self.status == "completed" and self.exit_code == 0


def state_of(ad: Ad) -> JobState:
    """Where a job is according to its ad."""
    code, number = ad.get("ExitCode"), ad.get("ExitSignal")
    status = status_of(ad)
    if status != "completed":
        return JobState(status)
    return JobState(
        status, code if isinstance(code, int) else None, number if isinstance(number, int) else None
    )


def state_after(state: JobState, event: Event) -> JobState:
    """Where a job is after an event of its own."""
    if state.ended:
        return state
    match event:
        case JobAssigned():
            return JobState("running")
        case JobSuspended() if state.status == "running":
            return JobState("suspended")
        case JobContinued() if state.status == "suspended":
            return JobState("running")
        case JobVacated() if state.status in {"running", "suspended"}:
            return JobState("idle")
        case JobHeld():
            return JobState("held")
        case JobReleased():
            return JobState("idle")
        case JobCompleted(exit=ran):
            return JobState("completed", ran.code, ran.signal)
        case JobRemoved():
            return JobState("removed")
        case _:
            return state


def state_after_all(events: Iterable[Event]) -> JobState:
    """Where a job is after all of its events."""
    state = JobState()
    for event in events:
        state = state_after(state, event)
    return state


class Progress:
    """
    All jobs that are waited for; counts are kept, because they are asked for after each of many changes.
    """

    def __init__(self, jobs: Mapping[JobId, JobState]) -> None:
        self._jobs = dict(jobs)
        self.counts: Final = Counter(state.status for state in self._jobs.values())

    @property
    def jobs(self) -> Mapping[JobId, JobState]:
        """Where each job is, now: the mapping changes with the jobs."""
        return self._jobs

    @property
    def total(self) -> int:
        """How many jobs there are."""
        return len(self._jobs)

    @property
    def done(self) -> int:
        """How many jobs have ended."""
        return self.counts["completed"] + self.counts["removed"]

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to any of them."""
        return self.done == self.total

    @property
    def stuck(self) -> bool:
        """Whether all that have not ended are held: nothing will happen unless somebody does something."""
        return not self.ended and self.done + self.counts["held"] == self.total

    def put(self, job: JobId, state: JobState) -> bool:
        """
        A job is where it is now; whether that is new.  Other jobs than those at the start are passed over.
        """
        before = self._jobs.get(job)
        if before is None or before == state:
            return False
        self.counts[before.status] -= 1
        self.counts[state.status] += 1
        self._jobs[job] = state
        return True

    def bad(self) -> list[tuple[JobId, JobState]]:
        """The jobs that have ended otherwise than well, in queue order."""
        return [(job, state) for job, state in sorted(self._jobs.items()) if state.ended and not state.well]
