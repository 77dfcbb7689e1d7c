"""What is heard of attempts that live, and is not recorded: no part of the fold, and a restart forgets it."""

from typing import Final

from kettle_wire.events import Event, JobAssigned, JobCompleted, JobReconnected, JobVacated, Usage
from kettle_wire.jobs import JobId

ENDINGS: Final = frozenset({JobAssigned, JobCompleted, JobReconnected, JobVacated})
"""After these, something of it does not hold any more."""


class LiveReports:
    """Of the jobs of one queue; their ads show it beside what is recorded."""

    def __init__(self) -> None:
        self.measured: Final[dict[JobId, Usage]] = {}
        """What live attempts use, as their workers said last."""
        self.reconnecting: Final[dict[JobId, int]] = {}
        """How often it was tried to reach the workers of disconnected jobs."""
        self.renewed: Final[dict[str, int]] = {}
        """Startd -> when it last renewed the leases of its claims, seconds since 1970."""
        self.lost: Final[set[str]] = set()
        """Claims that are certainly dead, while other claims of their jobs may live."""

    def forget(self, job: JobId, event: Event) -> None:
        """What one of `ENDINGS` ends for a job."""
        self.reconnecting.pop(job, None)
        if type(event) is not JobReconnected:
            self.measured.pop(job, None)
