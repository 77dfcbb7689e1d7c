"""A queue from its working set: the rows that its changes have left."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.fold import Queue, Unfit, job_of_stream
from kettle_services.schedd.domain.queue.rows import LEFT, NEWEST
from kettle_services.schedd.domain.queue.saved_jobs import entry_of
from kettle_services.schedd.domain.queue.shared_rows import ROW, SharedRows, SharedState
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_services.schedd.domain.submission.submitted_together import Together
from kettle_wire.event_expansion import CLUSTERS, STREAM
from kettle_wire.events import ClaimGranted, ClustersSubmitted, ClusterSubmitted, Event, decode
from kettle_wire.jobs import JobId

_decode_factory: Final = msgspec.msgpack.Decoder(Factory).decode
_decode_row: Final = msgspec.msgpack.Decoder(tuple[msgspec.Raw, int]).decode


def restore(queue: Queue, rows: Iterable[tuple[str, bytes]]) -> None:
    """Have an empty queue take the working set over; the order of its rows does not matter."""
    kinds = defaultdict[str, list[tuple[str, bytes]]](list)
    for stream, state in rows:
        kind = "left" if LEFT in stream else stream.partition("/")[0]
        kinds[kind].append((stream, state))
    gone: dict[str, DepartedJobs] = {}
    for stream, state in kinds["left"]:
        cluster, _, end = stream.partition(LEFT)
        gone.setdefault(cluster, DepartedJobs()).read(end, state)
    factories = {stream.partition("/")[2]: _decode_factory(state) for stream, state in kinds["factory"]}
    for _, state in kinds[NEWEST]:
        queue.newest_cluster = msgspec.msgpack.decode(state, type=int)
    for stream, state in kinds["claim"]:
        granted, at = _recorded(state)
        assert isinstance(granted, ClaimGranted), stream
        queue.claim_use.granted(granted, at)
    alike: dict[bytes, QueuedJob] = {}  # jobs that have been through the same have one entry between them
    for _, state in kinds["job"]:
        if state not in alike:
            alike[state] = entry_of(state)
    known = {job_of_stream(stream): alike[state] for stream, state in kinds["job"]}
    together = _shared(kinds[STREAM.rstrip("/")])
    for stream, state in kinds["cluster"]:
        event, at = _recorded(state)
        assert isinstance(event, ClusterSubmitted), stream
        factory, left = factories.get(str(event.cluster)), gone.get(stream)
        queue.admit(
            event, at, gone=left, known=known, together=together.pop(event.cluster, None), factory=factory
        )
    _admit_together(queue, kinds[CLUSTERS.rstrip("/")], gone, known)
    if together:
        raise Unfit(f"the working set has rows of jobs of cluster {min(together)}, which is not in the queue")
    if stray := next((job for job in known if job not in queue.jobs), None):
        raise Unfit(f"the working set has a row of job {stray}, which is not in the queue")


def _shared(rows: Iterable[tuple[str, bytes]]) -> dict[int, SharedRows]:
    """
    Of each cluster what was recorded of many of its jobs; a release before this one has no rows of it but that of its stream.
    """
    found: dict[int, SharedRows] = {}
    known: dict[tuple[int, bytes], SharedState] = {}
    for name, state in rows:
        stream, page, _ = name.partition(ROW)
        number = int(stream.removeprefix(STREAM))
        shared = found.setdefault(number, SharedRows(number))
        if page:
            shared.read(name, state, known)
    return found


def _admit_together(
    queue: Queue,
    rows: Iterable[tuple[str, bytes]],
    gone: dict[str, DepartedJobs],
    known: Mapping[JobId, QueuedJob],
) -> None:
    """Clusters that were submitted with one event."""
    for left, state in queue.together.restore(rows, gone):
        event, at = _recorded(state)
        assert isinstance(event, ClustersSubmitted)
        queue.admit_together(event, at, Together(event.first, len(event.rows), left), known)


def _recorded(state: bytes) -> tuple[Event, int]:
    """A row that holds an event: it may have been written by a version whose type is superseded by now."""
    data, at = _decode_row(state)
    return decode(bytes(data)), at
