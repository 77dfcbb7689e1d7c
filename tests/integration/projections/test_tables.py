"""What the tables of the projections say."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kettle.eventsourcing.projection import decoded_events
from kettle.projections import PROJECTIONS, Refold, prepare, rebuild
from kettle.projections.jobs.projection import INLINE
from kettle.storage.migration import migrate
from kettle.testing.services import Backend, owned
from kettle_wire.attempts import Ending
from kettle_wire.events import (
    ClaimEnded,
    Clause,
    CycleNegotiated,
    JobCompleted,
    JobHeld,
    JobRemoved,
    JobStarted,
    JobVacated,
    MachineJoined,
    MachineLeft,
    Match,
    Rejection,
)

from .workload import (
    AT,
    SHARD,
    USAGE,
    Changes,
    assigned,
    day,
    differing,
    done,
    granted,
    late_day,
    submitted,
)

MINUTE = 60_000_000
LARGE = 2**48 - 1
"""Autoclusters are numbered by a hash of 48 bits."""
NOON = datetime.fromtimestamp(AT / 1_000_000, UTC)


async def recorded(backend: Backend, shard: str, frames: list[tuple[int, Changes]]) -> None:
    async with owned(backend, shard) as owner:
        for at, changes in frames:
            await owner.record(*changes, at_us=AT + at)


async def rows(backend: Backend, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await backend.log.database.run(lambda c: c.fetch(query))]


async def test_live_jobs_and_claims(backend: Backend) -> None:
    """Every job in the queue as it is now, idle ones included, and every claim that is held or was."""
    await recorded(
        backend,
        SHARD,
        [
            (0, [submitted(1, count=5), granted("c#1"), granted("c#2")]),
            (1_000_000, [("job/1.1", assigned()), ("job/1.1", JobStarted(attempt=1, pid=7, at=AT / 1e6 + 2))]),
            (2_000_000, [("job/1.2", assigned()), ("job/1.2", JobRemoved(reason="r"))]),
            (3_000_000, [("job/1.3", JobHeld(code=1, reason="by\0hand")), ("job/1.4", JobRemoved())]),
            (4_000_000, [("claim/c#2", ClaimEnded(claim="c#2", reason="idle"))]),
        ],
    )  # fmt: skip
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])

    def at(seconds: int) -> datetime:
        return NOON + timedelta(seconds=seconds)

    held = "by\ufffdhand"
    assert [
        (0, 1, 0, None, None, at(0), None, None, None),
        (1, 2, 1, "slot1@ep", "c#1", at(1), at(1), at(2), None),
        (2, 3, 1, "slot1@ep", "c#1", at(2), at(2), None, None),
        (3, 5, 0, None, None, at(3), None, None, held),
    ] == await rows(
        backend,
        "SELECT proc, status, attempts, slot, claim, entered_at, assigned_at, executing_at, hold_reason "
        "FROM jobs.live ORDER BY proc",
    )
    assert [("c#1", None, None), ("c#2", at(4), "idle")] == await rows(
        backend, "SELECT claim, ended_at, reason FROM jobs.claim ORDER BY claim"
    )
    assert [(4, 3)] == await rows(backend, "SELECT proc, status FROM jobs.history")


async def test_queue_depth(backend: Backend) -> None:
    """The present depth by owner and status, and how it was at the end of each minute in which it changed."""
    await recorded(
        backend,
        SHARD,
        [
            (0, [submitted(1, count=3)]),
            (1, [("job/1.0", assigned()), ("job/1.1", JobHeld(code=1, reason="h"))]),
            (MINUTE, [("job/1.0", JobRemoved()), submitted(2, "bob")]),
            (3 * MINUTE, [("job/1.0", JobVacated(attempt=1, ending=Ending(code=1, reason="v")))]),
            (3 * MINUTE + 1, [("job/1.2", assigned()), ("job/1.2", done())]),
        ],
    )
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [("alice", 0, 0, 0, 1), ("bob", 1, 0, 0, 0)] == await rows(
        backend, "SELECT owner, idle, running, removed, held FROM jobs.depth ORDER BY owner"
    )
    assert [
        ("alice", 0, 1, 1, 0, 1),
        ("alice", 1, 1, 0, 1, 1),
        ("alice", 3, 0, 0, 0, 1),
        ("bob", 1, 1, 0, 0, 0),
    ] == await rows(
        backend,
        "SELECT owner, extract(epoch FROM minute - (SELECT min(minute) FROM jobs.depth_by_minute))::int / 60, "
        "idle, running, removed, held FROM jobs.depth_by_minute ORDER BY owner, minute",
    )


async def test_usage_is_the_sum_of_attempts(backend: Backend) -> None:
    """To the microsecond, those that did not finish their job included."""
    frames = [(i, changes) for i, changes in enumerate(day(1, jobs=20))]
    await recorded(backend, SHARD, frames)
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    ends = [
        event for _, changes in frames for _, event in changes if isinstance(event, JobCompleted | JobVacated)
    ]
    assert all(event.usage == USAGE for event in ends)
    assert [(len(ends), 2_000_000 * len(ends), 4_000_000 * len(ends), 750_000 * len(ends))] == await rows(
        backend, "SELECT attempts, wall, slot_time, cpu FROM jobs.usage"
    )


async def test_machines(backend: Backend) -> None:
    """Which machines are there, and when which came and left."""
    joined = MachineJoined(machine="a", cpus=4, memory=8192)
    left = MachineLeft(machine="a", reason="expired")
    await recorded(
        backend,
        "collector",
        [
            (0, [("machine/a", joined), ("machine/b", MachineJoined(machine="b", cpus=1, memory=1))]),
            (1, [("machine/a", left), ("machine/a", joined), ("machine/a", left)]),
            (2, [("machine/a", joined), ("machine/b", MachineLeft(machine="b", reason="drained"))]),
        ],
    )
    await prepare(PROJECTIONS["machines"](), backend.log.database, [backend.log])
    assert [("a", True, 4, 8192, 3, None), ("b", False, 1, 1, 1, "drained")] == await rows(
        backend,
        "SELECT machine, present, cpus, memory, joined, reason FROM machines.machine ORDER BY machine",
    )
    assert [
        (1, "a", True, None), (2, "b", True, None), (3, "a", False, "expired"), (4, "a", True, None),
        (5, "a", False, "expired"), (6, "a", True, None), (7, "b", False, "drained"),
    ] == await rows(backend, "SELECT pos, machine, came, reason FROM machines.passage ORDER BY pos")  # fmt: skip


def negotiated(cycle: int) -> tuple[str, CycleNegotiated]:
    match = Match(submitter="alice", schedd="ap", autocluster=LARGE, slot="slot1@ep", startd="ep", count=2)
    clause = Clause(side="job", text="Memory >= 10\0", refuses=3)
    rejection = Rejection(
        submitter="bob",
        schedd="ap",
        autocluster=LARGE - 1,
        count=5,
        reason="no slot",
        slots=4,
        clauses=[clause],
    )
    event = CycleNegotiated(
        cycle=cycle,
        started=1.5,
        duration=0.5,
        slots=4,
        idle=7,
        matches=[match, match],
        rejections=[rejection],
    )
    return f"cycle/{cycle}", event


async def test_negotiation(backend: Backend) -> None:
    """Cycles with what they gave and refused and why; whole days are forgotten after 30 of them."""
    days = 86_400_000_000
    await recorded(
        backend,
        "negotiator",
        [(0, [negotiated(1)]), (29 * days, [negotiated(2)]), (32 * days, [negotiated(3)])],
    )
    await prepare(PROJECTIONS["negotiation"](), backend.log.database, [backend.log])
    assert [(2, 4, 7, 4, 5), (3, 4, 7, 4, 5)] == await rows(
        backend, "SELECT cycle, slots, idle, matched, rejected FROM negotiation.cycle ORDER BY cycle"
    )
    assert [(2, 0), (2, 1), (3, 0), (3, 1)] == await rows(
        backend, "SELECT cycle, number FROM negotiation.match ORDER BY 1, 2"
    )
    assert [("no slot", 3, "Memory >= 10\ufffd")] == await rows(
        backend,
        "SELECT reason, (clauses->0->>'refuses')::int, clauses->0->>'text' FROM negotiation.rejection WHERE cycle = 3",
    )
    assert [] == await differing(backend, "negotiation", "negotiator")


@pytest.mark.parametrize("seed", range(3))
async def test_how_frames_are_grouped_makes_no_difference(backend: Backend, seed: int) -> None:
    """
    Folded in groups of any size, also over minutes and days and with a clock that jumps back, the rows are the same.
    """
    chance = random.Random(seed)
    at = 0
    frames: list[tuple[int, Changes]] = []
    for cluster in range(1, 10):
        how = late_day if cluster % 3 == 0 else day
        for changes in how(cluster, owner=f"user{cluster % 2}"):
            at += chance.choice((1, 1, 20_000_000, MINUTE, 7_200_000_000, 4_000_000_000_000, -7_200_000_000))
            frames.append((at, changes))
    await recorded(backend, SHARD, frames)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [] == await differing(backend, "jobs")
    read = [decoded_events(frame) async for frame in backend.log.read(SHARD)]
    async with backend.log.database.connection() as connection, connection.transaction():
        fold = Refold(connection, PROJECTIONS["jobs"](), SHARD)
        await fold.begin()
        while read:
            size = chance.randint(1, 5)
            group, read = read[:size], read[size:]
            await fold.feed(group)
        assert [] == await fold.differences()


async def test_jobs_that_come_little_by_little(backend: Backend) -> None:
    """
    A job has a row from the time when it is made, and a cluster until its last job has left and none is to come.
    """
    late = list(late_day(1, jobs=4, unmade=1000))
    seen: list[tuple[object, ...]] = []
    async with owned(backend, SHARD) as owner:
        for i, changes in enumerate(late):
            await owner.record(*changes, at_us=AT + i)
            await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
            seen += await rows(
                backend,
                "SELECT (SELECT count(*) FROM jobs.live), (SELECT sum(idle + running + removed + held) FROM jobs.depth), "
                "(SELECT count(*) FROM jobs.history), (SELECT count(*) FROM jobs.cluster)",
            )
    assert (0, 0, 0, 1) == seen[0]
    assert all(live == depth for live, depth, _, _ in seen)
    assert (0, 0, 4, 1) == seen[-2]
    assert (0, 0, 4, 0) == seen[-1]


async def test_many_jobs_that_leave_at_once(backend: Backend) -> None:
    """Those that come and go in one transaction leave the same rows as those that are stored in between."""
    await recorded(backend, SHARD, [(i, changes) for i, changes in enumerate(day(1, jobs=2 * INLINE))])
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [(2 * INLINE // 5, 2 * INLINE * 4 // 5)] == await rows(
        backend, "SELECT (SELECT count(*) FROM jobs.live), (SELECT count(*) FROM jobs.history)"
    )
    read = [decoded_events(frame) async for frame in backend.log.read(SHARD)]
    async with backend.log.database.connection() as connection, connection.transaction():
        fold = Refold(connection, PROJECTIONS["jobs"](), SHARD)
        await fold.begin()
        for first in range(0, len(read), 7):
            await fold.feed(read[first : first + 7])
        assert [] == await fold.differences()
        half = len(read) // 2
        fold = Refold(connection, PROJECTIONS["jobs"](), SHARD)
        await fold.begin()
        await fold.feed(read[:half])
        await fold.feed(read[half:])
        assert [] == await fold.differences()


async def test_what_was_rolled_back_is_not_remembered(backend: Backend) -> None:
    """
    Frames that were folded and rolled back, in part or as a whole, are folded again without any difference.
    """
    await recorded(backend, SHARD, [(i, changes) for i, changes in enumerate(day(1, jobs=10))])
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    read = [decoded_events(frame) async for frame in backend.log.read(SHARD)]
    async with backend.log.database.connection() as connection, connection.transaction():
        fold = Refold(connection, PROJECTIONS["jobs"](), SHARD)
        await fold.begin()
        for frame, events in read:
            for upto in (len(events), len(events) // 2):
                if upto:
                    vain = connection.transaction()
                    await vain.start()
                    part = msgspec.structs.replace(frame, entries=frame.entries[:upto])
                    await fold.feed([(part, events[:upto])])
                    await vain.rollback()
            await fold.feed([(frame, events)])
        assert [] == await fold.differences()


async def test_differences_are_told(backend: Backend) -> None:
    """
    A row that was changed, one that is missing and one too many, each by its key and the columns that differ.
    """
    await recorded(backend, SHARD, [(i, changes) for i, changes in enumerate(day(1))])
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [] == await differing(backend, "jobs")
    await backend.log.database.run(
        lambda c: c.execute(
            "UPDATE jobs.history SET exit_code = 77, owner = 'eve' WHERE proc = 0; DELETE FROM jobs.history WHERE proc = 1; "
            "INSERT INTO jobs.usage VALUES ('schedd.ap', 'ghost', 0, 0, 0, 0, 0)"
        )
    )
    assert [
        "jobs.history (cluster 1, proc 0) has another owner, exit_code",
        "jobs.history (cluster 1, proc 1) is missing",
        "jobs.usage (owner ghost) should not be there",
    ] == [str(one) for one in await differing(backend, "jobs")]


OLD = """
DROP TABLE log.projected;
ALTER TABLE log.projection DROP CONSTRAINT projection_pkey, DROP COLUMN error;
UPDATE log.projection SET shard = (SELECT id FROM log.shard WHERE name = shard);
ALTER TABLE log.projection ALTER shard TYPE integer USING shard::integer, ADD PRIMARY KEY (name, version, shard);
INSERT INTO log.projection (name, version, shard, frame) SELECT 'accounting', 1, id, 7 FROM log.shard;
CREATE SCHEMA accounting; CREATE TABLE accounting.history_1 (ad bytea);
INSERT INTO log.migration (component, name) VALUES ('accounting', 'schema');
DELETE FROM log.migration WHERE name = '01_post_projections';
"""


async def test_a_database_of_the_release_before(backend: Backend) -> None:
    """
    Cursors of working sets go on, the old tables of accounting are dropped, and the new ones fill from the log.
    """
    await recorded(backend, SHARD, [(i, changes) for i, changes in enumerate(day(1))])
    await backend.log.database.run(lambda c: c.execute(OLD))
    assert ["01_post_projections"] == await backend.log.database.run(migrate)
    assert [("working_set", SHARD)] == await rows(backend, "SELECT name, shard FROM log.projection")
    assert [(None,)] == await rows(backend, "SELECT to_regnamespace('accounting')")
    await recorded(backend, SHARD, [(99, [submitted(2)])])
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [] == await differing(backend, "jobs")
    assert [] == await backend.log.database.run(migrate)
