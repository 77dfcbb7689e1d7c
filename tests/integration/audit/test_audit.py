from collections.abc import Iterable

import pytest

from kettle.accounting.settings import AccountingSettings
from kettle.accounting.wiring import serve
from kettle.audit import AuditError, AuditReport, check
from kettle.bus.nats import NatsBus
from kettle.eventsourcing.working_set import Checkpointer
from kettle.storage import PgWorkingSet
from kettle.testing.services import Backend, eventually, hosted, owned
from kettle.wire.commands.accounting import QUERY_HISTORY, QueryHistory
from kettle.wire.endpoint import Position
from kettle.wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobRemoved,
    JobStarted,
    JobVacated,
    MachineJoined,
    Usage,
    encode,
)

SHARD = "schedd.ap"
AT = 1_790_000_000_000_000
USAGE = Usage(wall=2.0, user_cpu=0.5)
SUBMITTED = ClusterSubmitted(cluster=1, owner="alice", ad={}, columns=[], rows=[[], [], []])
FRAMES: list[list[tuple[str, Event]]] = [
    [("cluster/1", SUBMITTED)],
    [("job/1.0", JobAssigned(attempt=1, claim="c", slot="s", startd="d"))],
    [
        ("job/1.0", JobStarted(attempt=1)),
        ("job/1.0", JobVacated(attempt=1, code=1004, reason="v", usage=USAGE)),
    ],
    [("job/1.0", JobAssigned(attempt=2, claim="c", slot="s", startd="d"))],
    [
        ("job/1.1", JobAssigned(attempt=1, claim="c", slot="s", startd="d")),
        ("job/1.0", JobStarted(attempt=2)),
    ],
    [("job/1.0", JobCompleted(attempt=2, exit_code=0, usage=USAGE)), ("job/1.2", JobRemoved(reason="r"))],
]
"""Positions 1 | 2 | 3 4 | 5 | 6 7 | 8 9."""


class Counting:
    """A working set of how many events each live job has had."""

    def __init__(self, shard: str) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        self._counts[stream] = self._counts.get(stream, 0) + 1
        over = isinstance(event, JobCompleted | JobRemoved)
        return [(stream, None if over else str(self._counts[stream]).encode())]


FOLDS = {"schedd": Counting}


@pytest.fixture
async def backend(backend: Backend) -> Backend:
    """A log with a past that accounting has followed and a working set that is saved."""
    settings = backend.settings(AccountingSettings, shard_poll=0.1)
    fold = Counting(SHARD)
    async with owned(backend, SHARD) as ap, owned(backend, "collector") as collector:
        checkpointer = Checkpointer(
            PgWorkingSet(backend.log.database), SHARD, epoch=ap.shard.tenure.epoch, frame=0
        )
        await collector.record(("machine/m", MachineJoined(machine="m", cpus=1, memory=1)), at_us=AT)
        async with hosted("accounting", settings, serve), backend.bus() as bus:
            for number, changes in enumerate(FRAMES, 1):
                frame = await ap.record(*changes, at_us=AT + number)
                puts: dict[str, tuple[int, bytes]] = {}
                drops: set[str] = set()
                for stream, event in changes:
                    for name, state in fold(stream, event, AT + number):
                        puts.pop(name, None)
                        if state is None:
                            drops.add(name)
                        else:
                            puts[name] = (ap.shard.version(stream), state)
                checkpointer.mark(frame, puts, drops)
            await checkpointer.flush()
            await bus.call(QUERY_HISTORY, "accounting", QueryHistory(at_least=Position(SHARD, len(FRAMES))))
            for shard, head in ((SHARD, len(FRAMES)), ("collector", 1)):
                stream = backend.subjects.event_stream(shard)
                await eventually(lambda stream=stream, head=head: _reached(bus, stream, head))  # type: ignore[misc]
    return backend


async def _reached(bus: NatsBus, stream: str, head: int) -> bool:
    return await bus.last_sequence(stream) == head


async def audit(backend: Backend, *, full: bool = True) -> AuditReport:
    async with backend.bus() as bus:
        return await check(backend.dsn, bus, subjects=backend.subjects, full=full, folds=FOLDS)


async def damage(backend: Backend, *statements: str | tuple[str, bytes]) -> None:
    for statement in statements:
        text, *values = (statement,) if isinstance(statement, str) else statement
        await backend.log.database.run(lambda c, t=text, v=values: c.execute(t, *v))  # type: ignore[misc]


async def test_a_clean_log(backend: Backend) -> None:
    """Nothing is found in a log with all that belongs to it, and every check had something to look at."""
    report = await audit(backend)
    assert [] == [c.first for c in report.checks if c.problems]
    assert report.clean
    assert {
        "positions": 10, "frames": 7, "versions": 10, "events": 10, "attempts": 3, "head": 2, "bus": 7,
        "working_set": 2, "history": 2, "usage": 1,
    } == {c.name: c.examined for c in report.checks}  # fmt: skip
    assert [("collector", 1, 1, 1), (SHARD, 6, 9, 6)] == [
        (s.shard, s.frames, s.events, s.on_bus) for s in report.shards
    ]


async def test_without_a_bus_and_not_full(backend: Backend) -> None:
    """An audit that is not full folds nothing; one without a bus compares nothing with it."""
    report = await audit(backend, full=False)
    assert report.clean
    assert (0, 0, 7) == tuple(report.check(name).examined for name in ("history", "working_set", "bus"))
    report = await check(backend.dsn, full=True)
    assert report.clean
    assert (2, 0, 0) == tuple(report.check(name).examined for name in ("history", "working_set", "bus"))


async def test_no_log(backend: Backend) -> None:
    """A database that cannot be read is an error, not a clean log."""
    await damage(backend, "DROP TABLE log.shard")
    with pytest.raises(AuditError, match="cannot be read"):
        await audit(backend)


EVENT = (
    "UPDATE log.event SET {} WHERE pos = {} AND shard = (SELECT id FROM log.shard WHERE name = 'schedd.ap')"
)
DELETE = "DELETE FROM log.event WHERE {} AND shard = (SELECT id FROM log.shard WHERE name = 'schedd.ap')"


STRANGER = """
INSERT INTO accounting.history_1
SELECT shard, 9, proc, owner, status, submitted_at, left_at, frame, ad FROM accounting.history_1 WHERE proc = 2
"""


@pytest.mark.parametrize(
    ("statement", "name", "position", "sentence"),
    [
        (DELETE.format("pos = 3"), "positions", 4, "position 4 follows position 2"),
        (DELETE.format("frame = 3"), "frames", 5, "frame 4 follows frame 2"),
        (EVENT.format("epoch = 0", 5), "frames", 5, "frame 4 of epoch 0 follows one of 1"),
        (EVENT.format("at = at + interval '1 s'", 4), "frames", 4, "frame 3 has two times or two epochs"),
        (EVENT.format("ver = ver + 3", 7), "versions", 7, "version 8 of job/1.0 follows version 4"),
        (EVENT.format("data = 'x'", 7), "events", 7, "job/1.0: cannot read a recorded event"),
        (
            EVENT.format("type = 'job.held/1'", 7),
            "events",
            7,
            "the type is job.held/1, the event job.started/1",
        ),
        (
            (EVENT.format("data = $1", 5), encode(JobAssigned(attempt=3, claim="c", slot="s", startd="d"))),
            "attempts",
            5,
            "attempt 3 of job/1.0 follows attempt 1",
        ),
        (
            (EVENT.format("data = $1, type = 'job.started/1'", 4), encode(JobStarted(attempt=1))),
            "attempts",
            5,
            "attempt 2 of job/1.0 begins while attempt 1 lives",
        ),
        (
            (EVENT.format("data = $1", 7), encode(JobStarted(attempt=9))),
            "attempts",
            7,
            "attempt 9 of job/1.0 starts and does not live",
        ),
        (
            "UPDATE log.shard SET head = head + 1 WHERE name = 'schedd.ap'",
            "head",
            9,
            "the shard is at frame 6, position 10; its last event is in frame 6 at position 9",
        ),
        (EVENT.format("meta = 'm'", 5), "bus", 4, "frame 4 is "),
        (DELETE.format("frame = 6"), "bus", 6, "the bus has frame 6, the database has not"),
        ("UPDATE log.working_set SET state = '7'", "working_set", 1, "the state of cluster/1 is not"),
        (
            "UPDATE log.working_set SET ver = 7 WHERE stream = 'job/1.1'",
            "working_set",
            6,
            "job/1.1 has version 7",
        ),
        ("DELETE FROM log.working_set WHERE stream = 'job/1.1'", "working_set", 6, "lacks job/1.1"),
        (
            "UPDATE log.working_set SET stream = 'job/1.0' WHERE stream = 'job/1.1'",
            "working_set",
            6,
            "lacks job/1.1",
        ),
        ("DELETE FROM accounting.history_1 WHERE proc = 0", "history", 9, "the history lacks job 1.0"),
        ("UPDATE accounting.history_1 SET owner = 'eve'", "history", 9, "job 1.0 has another owner"),
        (
            "UPDATE accounting.history_1 SET ad = decode('80', 'hex') WHERE proc = 2",
            "history",
            9,
            "job 1.2 has another ad (ClusterId, CompletionDate",
        ),
        (
            STRANGER,
            "history",
            0,
            "1 jobs that never left the queue",
        ),
        ("UPDATE accounting.usage_1 SET wall = wall + 1", "usage", 0, "alice has used"),
        ("DELETE FROM accounting.usage_1", "usage", 0, "alice has used"),
    ],
)
async def test_damage_is_found(
    backend: Backend, statement: str | tuple[str, bytes], name: str, position: int, sentence: str
) -> None:
    """Each kind of damage is found by the check whose claim it breaks, at its place."""
    await damage(backend, statement)
    found = (await audit(backend)).check(name)
    assert found.first is not None
    assert (SHARD, position) == (found.first.shard, found.first.position)
    assert sentence in found.first.sentence


async def test_a_bus_that_knows_more(backend: Backend) -> None:
    """A bus that is ahead of the database is found: the database was restored from an older copy."""
    async with backend.bus() as bus:
        await bus.append(backend.subjects.events(SHARD), b"frame 7", expect_last=6)
    found = (await audit(backend)).check("bus")
    assert found.first is not None
    assert "the bus has frame 7, the database ends with frame 6" == found.first.sentence


async def test_a_bus_that_forgot(backend: Backend) -> None:
    """A bus without the frames is no problem: it may forget."""
    async with backend.bus() as bus:
        found = await check(backend.dsn, bus, subjects=type(backend.subjects)("another"), folds=FOLDS)
    assert found.clean
    assert 0 == found.check("bus").examined
