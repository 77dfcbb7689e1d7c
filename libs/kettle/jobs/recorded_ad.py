"""The ad of a job as what is recorded of it makes it."""

from typing import cast

from kettle.jobs.ad import apply
from kettle.jobs.history import Submission
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import RecordedEvent
from kettle_wire.events import ClusterSubmitted, JobEvent, decode
from kettle_wire.jobs import JobId


def after(ad: Ad | None, job: JobId, schedd: str, recorded: RecordedEvent) -> Ad | None:
    """A job's ad after one more event, which changes it in place; None: it is not there yet."""
    event = decode(recorded.data)
    if isinstance(event, ClusterSubmitted):
        return Submission(recorded.at, event).ads(job.proc, schedd)
    if ad is not None and recorded.stream.startswith("job/"):
        apply(ad, cast("JobEvent", event), recorded.at)
    return ad
