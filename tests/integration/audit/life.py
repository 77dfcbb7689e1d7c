"""The life of a small pool, and what the tests do to its log."""

from collections.abc import Sequence

from kettle.audit import AuditReport, AuditScope, Fold, check
from kettle.bus.nats import NatsBus
from kettle.eventsourcing.working_set import Checkpointer
from kettle.projections import PROJECTIONS, prepare
from kettle.storage import PgWorkingSet
from kettle.testing.services import Backend, Owner, eventually, owned
from kettle_services.cli.log.folds import WORKING_SETS, collector_fold, schedd_fold
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobRemoved,
    JobStarted,
    JobVacated,
    MachineJoined,
    MachineLeft,
    Usage,
)

SHARD = "schedd.ap"
AT = 1_790_000_000_000_000
USAGE = Usage(wall=2.0, user_cpu=0.5)
SUBMITTED = ClusterSubmitted(cluster=1, owner="alice", ad={"RequestCpus": 2}, columns=[], rows=[[], [], []])


def granted(claim: str) -> tuple[str, Event]:
    return f"claim/{claim}", ClaimGranted(
        claim=claim,
        startd="d",
        slot=f"slot1_{claim}@d",
        slot_ad={},
        submitter="alice",
        autocluster=1,
        lease=60.0,
    )


def assigned(attempt: int, claim: str) -> JobAssigned:
    return JobAssigned(attempt=attempt, claim=claim, slot=f"slot1_{claim}@d", startd="d")


FRAMES: list[list[tuple[str, Event]]] = [
    [("cluster/1", SUBMITTED)],
    [granted("c"), ("job/1.0", assigned(1, "c"))],
    [
        ("job/1.0", JobStarted(attempt=1)),
        ("job/1.0", JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=USAGE)),
    ],
    [("job/1.0", assigned(2, "c"))],
    [granted("e"), ("job/1.1", assigned(1, "e")), ("job/1.0", JobStarted(attempt=2))],
    [
        ("job/1.0", JobCompleted(attempt=2, exit=ExitRecord(code=0), usage=USAGE)),
        ("job/1.2", JobRemoved(reason="r")),
    ],
    [("claim/c", ClaimEnded(claim="c", reason="no more jobs"))],
]
"""Positions 1 | 2 3 | 4 5 | 6 | 7 8 9 | 10 11 | 12."""
MACHINES: list[list[tuple[str, Event]]] = [
    [("machine/m", MachineJoined(machine="m", cpus=1, memory=1))],
    [("machine/n", MachineJoined(machine="n", cpus=1, memory=1))],
    [("machine/m", MachineLeft(machine="m", reason="drained"))],
]


async def live(
    backend: Backend, owner: Owner, shard: str, frames: list[list[tuple[str, Event]]], fold: Fold
) -> None:
    """What the shard's owner does: record, fold, save."""
    working_set = PgWorkingSet(backend.log.database)
    checkpointer = Checkpointer(working_set, shard, epoch=owner.shard.tenure.epoch, frame=0)
    for number, changes in enumerate(frames, 1):
        frame = await owner.record(*changes, at_us=AT + number)
        puts: dict[str, tuple[int, bytes]] = {}
        drops: set[str] = set()
        versions = {stream: owner.shard.version(stream) for stream, _ in changes}
        for index, (stream, event) in enumerate(changes):
            version = versions[stream] - sum(later == stream for later, _ in changes[index + 1 :])
            for name, state in fold(stream, event, AT + number):
                puts.pop(name, None)
                if state is None:
                    drops.add(name)
                else:
                    puts[name] = (version, state)
        checkpointer.mark(frame, puts, drops)
    await checkpointer.flush()


async def live_through(backend: Backend) -> Backend:
    """A log with a past, working sets that are saved, projections, and all frames on the bus."""
    async with owned(backend, SHARD) as ap, owned(backend, "collector") as collector, backend.bus() as bus:
        await live(backend, ap, SHARD, FRAMES, schedd_fold(SHARD))
        await live(backend, collector, "collector", MACHINES, collector_fold("collector"))
        for shard, head in ((SHARD, len(FRAMES)), ("collector", len(MACHINES))):
            stream = backend.subjects.event_stream(shard)
            await eventually(lambda stream=stream, head=head: reached(bus, stream, head))  # type: ignore[misc]
    for make in PROJECTIONS.values():
        await prepare(make(), backend.log.database, [backend.log])
    return backend


async def reached(bus: NatsBus, stream: str, head: int) -> bool:
    return await bus.last_sequence(stream) == head


async def audit(backend: Backend, *, full: bool = True, shards: Sequence[str] = ()) -> AuditReport:
    wanted = AuditScope(full=full, shards=frozenset(shards), folds=WORKING_SETS)
    async with backend.bus() as bus:
        return await check(backend.dsn, bus, subjects=backend.subjects, wanted=wanted)


async def damage(backend: Backend, *statements: str | tuple[str, bytes]) -> None:
    for statement in statements:
        text, *values = (statement,) if isinstance(statement, str) else statement
        await backend.log.database.run(lambda c, t=text, v=values: c.execute(t, *v))  # type: ignore[misc]


def firsts(report: AuditReport) -> dict[str, tuple[str, int]]:
    """What is wrong: check to shard and position of its first problem."""
    return {c.name: (p.shard, p.position) for c in report.checks for p in c.firsts[:1]}
