"""What is recorded of one job."""

import msgspec

from kettle.client.errors import CommandRefusedError
from kettle_wire import events
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import JobEvents, RecordedEvent
from kettle_wire.events import ClusterSubmitted, Event
from kettle_wire.jobs import JobId


class JobEvent(msgspec.Struct, frozen=True):
    """One recorded event."""

    stream: str
    version: int
    frame: int
    at: float
    """When it was recorded, seconds since the epoch."""
    event: Event


def decoded(recorded: RecordedEvent) -> JobEvent:
    """An event as it is shown to people."""
    return JobEvent(
        recorded.stream,
        recorded.version,
        recorded.frame,
        recorded.at / 1_000_000,
        events.decode(recorded.data),
    )


def submission(recorded: JobEvents) -> tuple[ClusterSubmitted, int] | None:
    """
    The submission of the cluster that a record is about, and when that was, microseconds since the epoch; None if the record does not say.
    """
    for event in recorded.events:
        if event.stream.startswith("cluster/"):
            match events.decode(event.data):
                case ClusterSubmitted() as found:
                    return found, event.at
                case _:
                    pass
    return None


def submitted(recorded: JobEvents) -> int | None:
    """How many jobs the cluster has that a record is about; None if the record does not say."""
    found = submission(recorded)
    return None if found is None else len(found[0].rows)


def check_member(job: JobId, recorded: JobEvents) -> None:
    """
    Raise CommandRefusedError if the cluster has no such job: what is recorded of it is only its cluster's submission.
    """
    if any(event.stream == f"job/{job}" for event in recorded.events):
        return
    size = submitted(recorded)
    if size is not None and not 0 <= job.proc < size:
        raise no_member(job, size)


def no_member(job: JobId, size: int) -> CommandRefusedError:
    """What is said of a job that its cluster does not have."""
    has = "1 job" if size == 1 else f"{size} jobs"
    return CommandRefusedError(
        RefusalCode.NOT_FOUND, f"there is no job {job}: cluster {job.cluster} has {has}"
    )
