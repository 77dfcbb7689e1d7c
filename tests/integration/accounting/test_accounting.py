import asyncio
import os
import signal
from pathlib import Path

import asyncpg
import pytest

from kettle.bus.nats import NatsBus
from kettle.bus.ports import NoResponderError, RefusedError
from kettle.jobs.sealed_attributes import KEY_BYTES, AttributeSeal, is_sealed
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, Owner, eventually, hosted, owned
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.commands.accounting import (
    QUERY_HISTORY,
    QUERY_USAGE,
    OwnerUsage,
    QueryHistory,
    QueryUsage,
    UsageReport,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import (
    ClusterSubmitted,
    JobAssigned,
    JobCompleted,
    JobRemoved,
    JobStarted,
    JobVacated,
    Usage,
)
from kettle_wire.identity import user
from kettle_wire.jobs import JobId

USAGE = Usage(wall=2.0, user_cpu=0.5, system_cpu=0.25)
AT = 1_790_000_000_000_000


def settings(backend: Backend, *, patience: float = PATIENCE_S) -> AccountingSettings:
    return backend.settings(AccountingSettings, shard_poll=0.1, patience=patience)


def submitted(cluster: int, owner: str = "alice", count: int = 1) -> tuple[str, ClusterSubmitted]:
    event = ClusterSubmitted(
        cluster=cluster, owner=owner, ad={"RequestCpus": 2, "Cmd": "/bin/true"}, columns=[], rows=[[]] * count
    )
    return f"cluster/{cluster}", event


async def run_job(owner: Owner, job: str, *, at: int = 0, tries: int = 1) -> int:
    """Each attempt in frames of its own; all but the last are vacated."""
    frame = 0
    for attempt in range(1, tries + 1):
        stream = f"job/{job}"
        await owner.record(
            (stream, JobAssigned(attempt=attempt, claim="c", slot="s@ep", startd="ep")), at_us=AT + at
        )
        end: JobCompleted | JobVacated = JobVacated(
            attempt=attempt, ending=Ending(code=1004, reason="v"), usage=USAGE
        )
        if attempt == tries:
            end = JobCompleted(attempt=attempt, exit=ExitRecord(code=0), usage=USAGE)
        frame = await owner.record(
            (stream, JobStarted(attempt=attempt)), (stream, end), at_us=AT + at + 1_000_000
        )
    return frame


async def history(bus: NatsBus, at_least: tuple[str, int] | None = None, **select: object) -> list[str]:
    position = None if at_least is None else Position(*at_least)
    request = QueryHistory(at_least=position, **select)  # type: ignore[arg-type]
    answer = await bus.call(QUERY_HISTORY, "accounting", request)
    return [f"{ad['ClusterId']}.{ad['ProcId']}" for ad in answer.jobs]


async def usage(bus: NatsBus, *owners: str) -> UsageReport:
    return await bus.call(QUERY_USAGE, "accounting", QueryUsage(owners=list(owners)))


def used(owner: str, completed: int, attempts: int) -> OwnerUsage:
    return OwnerUsage(
        owner=owner,
        jobs_completed=completed,
        attempts=attempts,
        wall=2.0 * attempts,
        slot_time=4.0 * attempts,
        cpu=0.75 * attempts,
    )


async def test_history_and_usage(backend: Backend) -> None:
    """
    Jobs that have left are found by id, cluster and owner, newest first; usage is summed over all queues.
    """
    async with (
        owned(backend, "schedd.ap") as ap,
        hosted("accounting", settings(backend), serve),
        backend.bus(user("test")) as bus,
    ):
        await ap.record(submitted(1, count=3), submitted(2, owner="bob"), at_us=AT)
        await run_job(ap, "1.0", at=1, tries=2)
        await run_job(ap, "2.0", at=2)
        last = await ap.record(("job/1.2", JobRemoved(reason="r")), at_us=AT + 9_000_000)
        assert ["1.2", "2.0", "1.0"] == await history(bus, ("schedd.ap", last))
        assert ["1.2"] == await history(bus, limit=1)
        assert ["2.0", "1.0"] == await history(bus, jobs=[JobId(1, 0)], owners=["bob"])
        assert ["1.2", "1.0"] == await history(bus, clusters=[1])
        assert [] == await history(bus, jobs=[JobId(1, 1)])
        async with owned(backend, "schedd.second") as second:
            await second.record(submitted(1, owner="bob"), at_us=AT)
            last = await run_job(second, "1.0", at=3)
            assert ["1.0", "2.0"] == await history(bus, ("schedd.second", last), owners=["bob"])
        assert [used("alice", 1, 2), used("bob", 2, 2)] == (await usage(bus)).owners
        assert [used("bob", 2, 2)] == (await usage(bus, "bob", "nobody")).owners
        ad = (await bus.call(QUERY_HISTORY, "accounting", QueryHistory(jobs=[JobId(2, 0)]))).jobs[0]
        assert (4, 0, "ap#2.0#1790000000", 2.0) == (
            ad["JobStatus"], ad["ExitCode"], ad["GlobalJobId"], ad["RemoteWallClockTime"],
        )  # fmt: skip


@pytest.mark.parametrize("access_points", [(), ("ap2",)], ids=["none", "joined"])
async def test_the_history_opens_no_environments_where_access_points_have_joined(
    backend: Backend, tmp_path: Path, access_points: tuple[str, ...]
) -> None:
    """
    Root of one vouches for people of all names, and the history sees names: the queue opens them; else it shows them to their owner.
    """
    (tmp_path / "ap.seal").write_bytes(b"k" * KEY_BYTES)
    seal = AttributeSeal([b"k" * KEY_BYTES])
    event = ClusterSubmitted(
        cluster=1, owner="test", ad=seal.sealed({"Environment": "canary"}, "test"), columns=[], rows=[[]]
    )
    own = backend.settings(
        AccountingSettings, shard_poll=0.1, seal_directory=str(tmp_path), access_points=access_points
    )
    async with (
        owned(backend, "schedd.ap") as ap,
        hosted("accounting", own, serve),
        backend.bus(user("test")) as bus,
    ):
        await ap.record(("cluster/1", event), at_us=AT)
        last = await run_job(ap, "1.0")
        request = QueryHistory(at_least=Position("schedd.ap", last))
        [ad] = (await bus.call(QUERY_HISTORY, "accounting", request)).jobs
    assert bool(access_points) == is_sealed(ad["Environment"])
    assert "canary" == seal.opened(ad, "test")["Environment"]


async def test_what_is_not_there_yet(backend: Backend) -> None:
    """A query for what has not been recorded waits for a while and is then refused."""
    async with hosted("accounting", settings(backend, patience=0.5), serve), backend.bus(user("test")) as bus:
        with pytest.raises(RefusedError, match=r"seen frame 0 of schedd\.ap and not yet 5") as refused:
            await history(bus, ("schedd.ap", 5))
        assert "behind" == refused.value.code


async def test_a_history_that_lags_says_how_far(backend: Backend) -> None:
    """
    While somebody keeps it from writing, each frame that is recorded counts; when it has read them, none does.
    """
    async with (
        owned(backend, "schedd.ap") as ap,
        hosted("accounting", settings(backend), serve),
        backend.bus(user("test")) as bus,
    ):
        seen = await ap.record(submitted(1, count=2), at_us=AT)
        await history(bus, ("schedd.ap", seen))
        blocker = await asyncpg.connect(backend.place.addresses.database_url)
        async with blocker.transaction():
            await blocker.execute("LOCK TABLE log.projection IN EXCLUSIVE MODE")
            await ap.record(("job/1.0", JobRemoved(reason="r")), at_us=AT)
            last = await ap.record(("job/1.1", JobRemoved(reason="r")), at_us=AT)
            async with asyncio.timeout(PATIENCE_S):
                while (answer := await bus.call(QUERY_HISTORY, "accounting", QueryHistory())).behind < 2:
                    await asyncio.sleep(0.01)
            assert ([], 2) == (answer.jobs, answer.behind)
        await blocker.close()
        answer = await bus.call(
            QUERY_HISTORY, "accounting", QueryHistory(at_least=Position("schedd.ap", last))
        )
        assert (2, 0) == (len(answer.jobs), answer.behind)


async def test_a_restart_counts_nothing_twice(backend: Backend) -> None:
    """
    What was applied before a restart is not applied again; what was recorded meanwhile is; jobs go on in between.
    """
    async with owned(backend, "schedd.ap") as ap, backend.bus(user("test")) as bus:
        await ap.record(submitted(1, count=2), at_us=AT)
        async with hosted("accounting", settings(backend), serve):
            seen = await run_job(ap, "1.0")
            assigned = JobAssigned(attempt=1, claim="c", slot="s", startd="ep")
            await ap.record(("job/1.1", assigned), at_us=AT)
            assert ["1.0"] == await history(bus, ("schedd.ap", seen + 1))
        last = await ap.record(
            ("job/1.1", JobCompleted(attempt=1, exit=ExitRecord(code=3), usage=USAGE)), at_us=AT + 9_000_000
        )
        async with hosted("accounting", settings(backend), serve):
            assert ["1.1", "1.0"] == await history(bus, ("schedd.ap", last))
            assert [used("alice", 2, 2)] == (await usage(bus)).owners
    left = await backend.log.database.run(
        lambda c: c.fetchval("SELECT (SELECT count(*) FROM jobs.cluster) + (SELECT count(*) FROM jobs.live)")
    )
    assert 0 == left


@pytest.mark.breaks_servers
@pytest.mark.parametrize("server", ["nats", "postgres"])
async def test_servers_that_restart(backend: Backend, server: str) -> None:
    """History and usage are complete and nothing is counted twice when a server was killed and came back."""
    async with (
        owned(backend, "schedd.ap") as ap,
        hosted("accounting", settings(backend), serve),
        backend.bus(user("test")) as bus,
    ):
        await ap.record(submitted(1, count=40), at_us=AT)
        last = 0
        victim = backend.servers.nats if server == "nats" else backend.servers.postgres
        for proc in range(40):
            if proc == 20:
                os.kill(victim.pid, signal.SIGKILL)
                await victim.wait()
                await victim.start()
            last = await run_job(ap, f"1.{proc}", at=proc)

        async def complete() -> bool:
            try:
                return 40 == len(await history(bus, ("schedd.ap", last)))
            except (NoResponderError, RefusedError):  # we may be connected again before the service is
                return False

        await eventually(complete)
        assert [used("alice", 40, 40)] == (await usage(bus)).owners
