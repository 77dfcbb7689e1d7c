"""What the queue keeps of each of its jobs; jobs that have been through the same share it."""

from typing import Final

import msgspec

from kettle_services.schedd.domain.jobs.job import Job
from kettle_wire.ads import Ad
from kettle_wire.events import JobEdited, JobEvent


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """A job in the queue: its state, and the attributes that its events have set since submission."""

    job: Job = Job()
    changed: Ad = {}
    by_hand: tuple[str, ...] = ()
    """The attributes among them that a user has set."""

    @property
    def edited(self) -> Ad:
        """What somebody has set, as it is now."""
        return {name: self.changed[name] for name in self.by_hand}


def by_hand(before: tuple[str, ...], event: JobEvent) -> tuple[str, ...]:
    """What somebody has set after an event."""
    return tuple(sorted({*before, *event.attributes})) if isinstance(event, JobEdited) else before


FRESH: Final = QueuedJob()
"""Of jobs to which nothing has happened yet."""
