"""What can be known about why a job is where it is."""

import msgspec

from kettle.client.events.following import JobEvent
from kettle_wire.commands.negotiator import Verdict
from kettle_wire.commands.schedd import Explanation
from kettle_wire.jobs import JobId


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool knows about why a job is where it is."""

    job: JobId
    explanation: Explanation | None = None
    """The schedd's side; None: the job has left the queue."""
    verdict: Verdict | None = None
    """The negotiator's side; None: it was not asked, or did not answer."""
    events: list[JobEvent] = []
    """What happened to a job that has left the queue."""
    trouble: str = ""
    """Why there is no verdict although there should be one."""
