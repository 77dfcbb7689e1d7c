"""Lists of queues of the past hold up nobody else, however much is recorded of the jobs in them."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, Reading
from kettle_services.gateway.rest.past_queues import PastQueues, RecordedJobs
from kettle_wire import event_expansion, events
from kettle_wire.event_expansion import stream_of_cluster
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    JobEdited,
    JobHeld,
    JobsChanged,
    Procs,
    encode,
)
from kettle_wire.frames import Entry
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import ListJobs

JOBS, EDITS = 50, 1_000
AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


class OneCluster:
    """
    What the tables have of the jobs of a cluster that have left, and that were changed together many times.
    """

    is_late = False

    def __init__(self) -> None:
        submitted = ClusterSubmitted(cluster=7, owner="ada", ad={"Cmd": "x"}, columns=[], rows=[[]] * JOBS)
        self._events: list[tuple[str, Event]] = [("cluster/7", submitted)]
        for edit in range(EDITS):
            data = msgspec.Raw(encode(JobEdited(attributes={"Edit": edit})))
            changed = JobsChanged(
                cluster=7, type="job.edited/1", data=data, jobs=[Procs(0, JOBS - 1, edit + 1)]
            )
            self._events.append((stream_of_cluster(7), changed))

    async def fetch(self, query: str, *_: object) -> list[dict[str, Any]]:
        """Jobs, shards or events."""
        if query == QUERIES["log_shards"]:
            return [{"id": 1, "name": "schedd.ap", "archived": 0}]
        if query == QUERIES["log_until"]:
            return [
                {"stream": stream, "ver": 1, "type": event.__struct_config__.tag, "data": encode(event)}
                | {"frame": number, "at": AT}
                for number, (stream, event) in enumerate(self._events, 1)
            ]
        of_all = {"shard": "schedd.ap", "cluster": 7, "owner": "ada", "submitted_at": AT, "happened": None}
        return [of_all | {"proc": proc} for proc in range(JOBS)]

    async def ads_of_queued(self, rows: list[object], *, until: int) -> list[None]:
        """None of them is in a queue."""
        assert until
        return [None] * len(rows)


async def test_an_event_of_many_jobs_is_read_once_and_others_come_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One cluster can have events without end, and a page hundreds of its jobs."""
    turns, read = 0, 0
    over = asyncio.Event()
    decode = events.decode

    async def other() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    def counted(data: bytes) -> Event:
        nonlocal read
        read += 1
        return decode(data)

    monkeypatch.setattr(event_expansion, "decode", counted)
    asked = ListJobs(as_of=AT, limit=JOBS, fields=["Edit"])
    task = asyncio.create_task(other())
    reading = cast("Reading", OneCluster())
    found = await PastQueues(reading, asked, Viewer.of("ada", ["Edit"])).page(None, None)
    over.set()
    await task
    edits = [cast("dict[str, object]", job.attributes)["Edit"] for job in found.jobs if job.attributes]
    assert [EDITS - 1] * (JOBS - 1) == edits
    assert JOBS == len(found.jobs)
    assert EDITS == read
    assert turns > 2


async def test_clusters_that_were_submitted_together_were_there_at_that_time() -> None:
    """Each with its own ad, from their one event."""
    recorded = RecordedJobs("ap", [JobId(7, 0), JobId(8, 0), JobId(20, 0)])
    assert {"cluster/7", "clusters/0", "jobs/8", "job/20.0"} < {*recorded.streams}
    event = ClustersSubmitted(
        first=6, owner="ada", ad={"Cmd": "x"}, columns=["Args"], rows=[["a"], ["b"], ["c"]]
    )
    recorded.take(Entry("clusters/0", 1, "clusters.submitted/1", encode(event)), 1)
    recorded.take(Entry("job/8.0", 1, "job.held/1", encode(JobHeld(code=1, reason="r"))), 2)
    found = {
        str(job): None if ad is None else (ad["Args"], ad["JobStatus"]) for job, ad in recorded.ads.items()
    }
    assert {"7.0": ("b", 1), "8.0": ("c", 5), "20.0": None} == found
