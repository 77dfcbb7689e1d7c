"""What of jobs' ads somebody sees who asks the queue, in answers and by constraints."""

from typing import Protocol

import msgspec

from kettle.jobs.private_attributes import for_others
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId


class Owned(Protocol):
    """A queue, as far as it says whose jobs are whose."""

    def owner(self, job: JobId) -> str:
        """Whose job it is."""
        ...


class AdReader(msgspec.Struct, frozen=True):
    """Who asks."""

    queue: Owned
    seal: AttributeSeal
    name: str | None
    """He sees what is private of his own jobs; None: of everybody's."""

    def seen(self, job: JobId, ad: Ad) -> Ad:
        """An ad of a job as he sees it."""
        owner = self.queue.owner(job)
        return self.seal.opened(ad, owner) if self.name in (None, owner) else for_others(ad)
