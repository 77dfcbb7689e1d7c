"""What happens in the queues of a pool, for projections to follow."""

from collections.abc import Iterator

from kettle.projections import PROJECTIONS, Difference, differences, refold
from kettle.testing.services import Backend
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    Usage,
)

AT = 1_790_000_000_000_000
USAGE = Usage(wall=2.0, user_cpu=0.5, system_cpu=0.25, memory_kib=50_000)
SHARD = "schedd.ap"

Changes = list[tuple[str, Event]]


def submitted(cluster: int, owner: str = "alice", count: int = 1) -> tuple[str, Event]:
    event = ClusterSubmitted(
        cluster=cluster, owner=owner, ad={"RequestCpus": 2, "Cmd": "/bin/true"}, columns=[], rows=[[]] * count
    )
    return f"cluster/{cluster}", event


def granted(claim: str) -> tuple[str, Event]:
    event = ClaimGranted(
        claim=claim,
        startd="ep",
        slot="slot1@ep",
        slot_ad={},
        submitter="alice",
        autocluster=2**48 - 1,
        lease=60.0,
    )
    return f"claim/{claim}", event


def assigned(attempt: int = 1, claim: str = "c#1") -> JobAssigned:
    return JobAssigned(attempt=attempt, claim=claim, slot="slot1@ep", startd="ep")


def done(attempt: int = 1, code: int = 0) -> JobCompleted:
    return JobCompleted(attempt=attempt, exit=ExitRecord(code=code), usage=USAGE)


def life(cluster: int, proc: int) -> Iterator[Changes]:
    """The frames of one job: each job fares otherwise."""
    job = f"job/{cluster}.{proc}"
    match proc % 5:
        case 0:
            yield [(job, assigned()), (job, JobStarted(attempt=1, pid=1))]
            yield [(job, done(code=proc % 2))]
        case 1:
            yield [(job, assigned())]
            yield [(job, JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=USAGE))]
            yield [(job, assigned(2)), (job, JobStarted(attempt=2)), (job, done(2, 1))]
        case 2:
            yield [(job, JobHeld(code=1, reason="by its owner"))]
            yield [(job, JobReleased()), (job, assigned()), (job, done())]
        case 3:
            yield [(job, assigned())]
            yield [(job, JobRemoved(reason="r"))]
            yield [(job, JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=USAGE))]
        case _:
            yield [(job, JobHeld(code=3, reason="policy"))]  # and stays


def day(cluster: int, *, jobs: int = 5, owner: str = "alice") -> Iterator[Changes]:
    """The frames of one cluster and its claim, lives of jobs side by side."""
    claim = f"c#{cluster}"
    yield [submitted(cluster, owner, jobs), granted(claim)]
    lives = [life(cluster, proc) for proc in range(jobs)]
    while lives:
        for one in list(lives):
            if (frame := next(one, None)) is None:
                lives.remove(one)
            else:
                yield frame
    yield [(f"claim/{claim}", ClaimEnded(claim=claim, reason="idle"))]


def late_day(cluster: int, *, jobs: int = 5, unmade: int = 3, owner: str = "alice") -> Iterator[Changes]:
    """The late day with jobs that enter the queue gradually, some of them never."""
    size = jobs + unmade
    event = FactorySubmitted(
        cluster=cluster, owner=owner, ad={"RequestCpus": 2, "Cmd": "/bin/true"}, columns=[], rows=[[]] * size
    )
    factory = f"factory/{cluster}"
    yield [(f"cluster/{cluster}", event)]
    lives: list[Iterator[Changes]] = []
    for proc in range(jobs):
        yield [(factory, FactoryMaterialized(cluster=cluster, owner=owner, first=proc, count=1))]
        lives.append(life(cluster, proc))
        for one in lives:
            yield from (frame for frame in (next(one, None),) if frame is not None)
    for one in lives:
        yield from one
    yield [(factory, FactoryChanged(cluster=cluster, first=jobs, paused=1))]
    yield [(factory, FactoryClosed(cluster=cluster, owner=owner, first=jobs, count=unmade))]


async def differing(backend: Backend, name: str, shard: str = SHARD) -> list[Difference]:
    """What the stored tables of a shard say otherwise than a fresh fold up to their cursor."""
    async with (
        backend.log.database.connection() as connection,
        connection.transaction(isolation="repeatable_read"),
    ):
        upto = await connection.fetchval(
            "SELECT frame FROM log.projection WHERE name = $1 AND shard = $2", name, shard
        )
        projection = PROJECTIONS[name]()
        assert await refold(connection, projection, shard, upto or 0, log=backend.log)
        return await differences(connection, projection, shard)


async def count(backend: Backend, table: str) -> int:
    return int(await backend.log.database.run(lambda c: c.fetchval(f"SELECT count(*) FROM {table}")))
