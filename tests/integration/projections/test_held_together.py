"""Jobs that are held or released together have the rows that they would have one after the other."""

import msgspec
import pytest

from kettle.eventsourcing.projection import decoded_events
from kettle.projections import PROJECTIONS, Refold, rebuild
from kettle.projections.jobs.held_together import FEWEST
from kettle.testing.services import Backend, owned
from kettle_wire.attempts import Ending
from kettle_wire.events import (
    Event,
    JobHeld,
    JobReleased,
    JobsChanged,
    JobVacated,
    Procs,
    encode,
    tag_of,
)

from .workload import AT, Changes, assigned, differing, done, granted, submitted

JOBS = 2 * FEWEST
MINUTE = 60_000_000
TABLES = {
    "live": "cluster, proc, owner, status, entered_at, attempts, slot, claim, assigned_at, hold_reason, happened",
    "depth": "owner, idle, running, removed, held",
    "depth_by_minute": "owner, minute, idle, running, removed, held",
    "history": "cluster, proc, status, replace(search::text, 'one#', 'each#')",
}


def all_of(cluster: int, event: JobHeld | JobReleased, *but: int) -> Changes:
    """What happens to all jobs of a cluster but a few, job by job."""
    return [(f"job/{cluster}.{proc}", event) for proc in range(JOBS) if proc not in but]


def together(changes: Changes, versions: dict[str, int]) -> Changes:
    """What follows each other as one event; `versions` are the last ones of the streams, and are raised."""
    found: list[tuple[str, Event]] = []
    for stream, event in changes:
        version = versions[stream] = versions.get(stream, 0) + 1
        if not isinstance(event, JobHeld | JobReleased):
            found.append((stream, event))
            continue
        cluster, proc = map(int, stream.removeprefix("job/").split("."))
        last = found[-1][1] if found else None
        data, jobs = msgspec.Raw(encode(event)), [Procs(proc, 1, version)]
        if isinstance(last, JobsChanged) and last.cluster == cluster and bytes(last.data) == bytes(data):
            jobs = [*last.jobs, *jobs]
            found.pop()
        found.append(
            (f"jobs/{cluster}", JobsChanged(cluster=cluster, type=tag_of(event), data=data, jobs=jobs))
        )
    return found


def story() -> list[Changes]:
    """Frames in which many are held and released, some of which have run before."""
    held, again = JobHeld(code=3, reason="a policy\0"), JobHeld(code=1, reason="r", by="alice")
    vacated = JobVacated(attempt=1, ending=Ending(code=1004, reason="v"))
    return [
        [submitted(1, count=JOBS), submitted(2, "bob", JOBS), granted("c#1")],
        [("job/1.3", assigned()), ("job/1.3", vacated)],
        [*all_of(1, held), *all_of(2, held, 5, 6), ("job/1.4", JobReleased(reason="one"))],
        all_of(1, again, 4),
        [("job/1.9", JobReleased(reason="one"))],
        [*all_of(2, JobReleased(by="bob"), 5, 6), *all_of(1, JobReleased(by="alice"), 4, 9)],
        [("job/1.3", assigned(2)), ("job/1.3", done(2)), ("job/2.7", assigned())],
    ]


async def rows(backend: Backend, query: str, shard: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await backend.log.database.run(lambda c: c.fetch(query, shard))]


async def test_the_rows_are_those_of_single_events(backend: Backend) -> None:
    """
    The queue, its depth and the history are the same, in whatever groups the frames come, and a fresh fold finds no difference.
    """
    versions = dict[str, int]()
    found: dict[str, list[list[tuple[object, ...]]]] = {table: [] for table in TABLES}
    for shard in ("schedd.one", "schedd.each"):
        async with owned(backend, shard) as owner:
            for number, changes in enumerate(story()):
                some = together(changes, versions) if shard == "schedd.one" else changes
                await owner.record(*some, at_us=AT + number * MINUTE)
        await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
        for table, columns in TABLES.items():
            query = f"SELECT {columns} FROM jobs.{table} WHERE shard = $1 ORDER BY {columns}"
            found[table].append(await rows(backend, query, shard))
    for one, each in found.values():
        assert one == each
    for shard in ("schedd.one", "schedd.each"):
        assert [] == await differing(backend, "jobs", shard)
    read = [decoded_events(frame) async for frame in backend.log.read("schedd.one")]
    async with backend.log.database.connection() as connection, connection.transaction():
        for size in (1, 3):
            fold = Refold(connection, PROJECTIONS["jobs"](), "schedd.one")
            await fold.begin()
            for first in range(0, len(read), size):
                await fold.feed(read[first : first + size])
            assert [] == await fold.differences()


async def test_a_row_that_is_missing_is_told(backend: Backend) -> None:
    """Somebody else has changed the tables: the projection says so, and stops."""
    async with owned(backend, "schedd.one") as owner:
        await owner.record(submitted(1, count=JOBS), at_us=AT)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    async with owned(backend, "schedd.one") as owner:
        await owner.record(*together(all_of(1, JobHeld(code=1, reason="r")), {}), at_us=AT + 1)
    read = [decoded_events(frame) async for frame in backend.log.read("schedd.one", after=1)]
    async with backend.log.database.connection() as connection:
        await connection.execute("DELETE FROM jobs.live WHERE proc = 7")
        async with connection.transaction():
            await connection.execute("SET LOCAL search_path TO jobs")
            with pytest.raises(
                Exception, match=rf"of {JOBS} jobs that were in the queue, only UPDATE {JOBS - 1}"
            ):
                await PROJECTIONS["jobs"]().apply(connection, read)
