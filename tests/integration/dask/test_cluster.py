"""KettleCluster with the real Dask, over a service of sessions in this process."""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportGeneralTypeIssues=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from distributed import Client
from distributed.comm.core import CommClosedError, FatalCommClosedError
from distributed.comm.registry import backends

from kettle.client.errors import CommandRefusedError
from kettle.dask import KettleCluster
from kettle.dask.addresses import SCHEME
from kettle.dask.comm import KettleBackend
from kettle.dask.credentials import Credentials
from kettle.dask.errors import NotStoppedError, SessionEndedError, VersionMismatchError
from kettle.dask.session_service import Situation, Wish
from kettle.testing.patience import PATIENCE_S

from .sessions_here import SessionsHere, issued, sessions_here


@pytest_asyncio.fixture
async def service() -> AsyncIterator[SessionsHere]:
    async with sessions_here() as running:
        yield running


class Connected:
    """The service as one connection has it: when that is closed it cannot be asked there any more."""

    def __init__(self, service: SessionsHere) -> None:
        self._service = service
        self.open = True

    def __getattr__(self, name: str) -> Any:
        assert self.open, f"{name} is asked on a connection that is closed"
        asked = getattr(self._service, name)

        async def answered(*words: Any) -> Any:
            answer = await asked(*words)
            assert self.open, f"the connection was closed before {name} was answered"
            return answer

        return answered


def cluster(service: SessionsHere, n: int | None = None, **options: Any) -> KettleCluster:
    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any]:
        connected = Connected(service)
        try:
            yield connected
        finally:
            connected.open = False

    return KettleCluster(n, connect=connect, asynchronous=True, quiet=True, **options)


async def test_a_cluster_computes_and_grows_and_shrinks(service: SessionsHere) -> None:
    """A result that only a retired worker had is still there: it moved before the worker went."""
    async with cluster(service, 1, name="mine") as mine, Client(mine, asynchronous=True) as client:
        assert "mine" == mine.name
        await client.wait_for_workers(1, timeout=PATIENCE_S)
        await mine.scale(3)
        await client.wait_for_workers(3, timeout=PATIENCE_S)
        futures = client.map(lambda n: n * n, range(30), pure=False)
        assert sum(n * n for n in range(30)) == sum(await client.gather(futures))
        await mine.scale(1)
        async with asyncio.timeout(PATIENCE_S):
            while len(mine.scheduler_info["workers"]) != 1:
                await asyncio.sleep(0.02)
        computed = await client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.computations))
        assert sum(n * n for n in range(30)) == sum(await client.gather(futures))
        assert computed == await client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.computations)
        )
        assert {("dask", "tcp"), ("dashboard", "http-prefix"), ("worker", "tcp")} == set(service.published)
        assert "https://pool.example/jobs/1.0/dashboard/status" == mine.dashboard_link
        assert mine.scheduler_address.startswith("kettle://1.0/dask@")
        assert "workers=1 of 1" in repr(mine)
        assert "mine" in mine._repr_html_()
    assert "ended" == service.situation.state


async def test_a_scheduler_in_this_program_has_workers_that_are_jobs(service: SessionsHere) -> None:
    """It publishes nothing, computes, gives workers up without losing a result, and ends with the object."""
    async with cluster(service, 2, scheduler="local") as mine, Client(mine, asynchronous=True) as client:
        await client.wait_for_workers(2, timeout=PATIENCE_S)
        futures = client.map(lambda n: n * n, range(30), pure=False)
        assert sum(n * n for n in range(30)) == sum(await client.gather(futures))
        await mine.scale(1)
        async with asyncio.timeout(PATIENCE_S):
            while len(mine.scheduler_info["workers"]) != 1:
                await asyncio.sleep(0.02)
        assert sum(n * n for n in range(30)) == sum(await client.gather(futures))
        assert {("worker", "tcp")} == set(service.published)
        assert mine.scheduler_address.startswith("kettle://0.0/dask@127.0.0.1:")
        assert mine.dashboard_link.startswith("http://127.0.0.1:")
    assert "ended" == service.situation.state


async def test_a_client_that_has_an_address_alone_asks_the_pool(service: SessionsHere) -> None:
    """
    As what the panel of dask-labextension writes into a notebook: the certificates are those that its person may have, and are asked for
    again where they are refused; where there is no such cluster it is said at once, and a pool that does not answer is asked again.
    """
    async with cluster(service, 1) as mine:
        async with asyncio.timeout(PATIENCE_S):
            while not mine.scheduler_info["workers"]:  # which says what this process is, too
                await asyncio.sleep(0.02)
        current = service.credentials

        async def of_another_time(session: str) -> Credentials:
            service.credentials = current  # type: ignore[method-assign]
            return issued("another")

        service.credentials = of_another_time  # type: ignore[method-assign]
        backends[SCHEME] = backend = KettleBackend(connect=mine._connect)
        async with Client(mine.scheduler_address, asynchronous=True, set_as_default=False) as client:
            assert 6 == await asyncio.wait_for(client.submit(sum, [1, 2, 3]), PATIENCE_S)
        connector = backend.get_connector()
        with pytest.raises(
            FatalCommClosedError, match=r"no cluster .* has its scheduler at kettle://9.0/dask"
        ):
            await connector.connect("kettle://9.0/dask")
        service.unreachable = True
        with pytest.raises(CommClosedError, match="nobody answers"):
            await connector.connect("kettle://8.0/dask")
        service.unreachable = False


async def test_a_load_has_workers(service: SessionsHere) -> None:
    """Adapting starts at the minimum, and the scheduler asks for more when there is work."""
    async with cluster(service, minimum=0, maximum=2) as mine, Client(mine, asynchronous=True) as client:
        assert 0 == len(mine.scheduler_info["workers"])
        assert 6 == await asyncio.wait_for(client.submit(sum, [1, 2, 3]), PATIENCE_S)
        adapting = await mine.adapt(minimum=1, maximum=3)
        assert (1, 3) == (adapting.minimum, adapting.maximum)
        assert service.situation.adapt is not None


async def test_another_object_finds_the_cluster_and_what_was_computed(service: SessionsHere) -> None:
    """A client that is lost leaves its results; one that says goodbye does not."""
    first = cluster(service, 1)
    await first
    lost = Client(first, asynchronous=True)
    await lost
    future = lost.submit(lambda: "kept", key="found-again", pure=False)
    assert "kept" == await future
    lost.status = "closed"  # as the kernel of a notebook dies: it says nothing, and does not come back
    connection: Any = lost.scheduler_comm
    connection.comm.abort()
    again = cluster(service, existing=first.name)
    async with again, Client(again, asynchronous=True) as client:
        async with asyncio.timeout(PATIENCE_S):
            while not (kept := await again.kept_results(client)):
                await asyncio.sleep(0.02)
        assert ["found-again"] == list(kept)
        assert "kept" == await kept["found-again"]
    assert "ended" != service.situation.state, "who found it leaves it"
    async with cluster(service, existing="s1") as third, Client(third, asynchronous=True) as client:
        gone = client.submit(lambda: 1, key="said-goodbye", pure=False)
        await gone
        await client.close()
        async with Client(third, asynchronous=True) as other:
            assert "said-goodbye" not in await third.kept_results(other)
    await first.close()
    assert "ended" == service.situation.state


async def test_it_stays_while_nobody_answers(service: SessionsHere) -> None:
    """It says so, computes on, and is not stopped silently."""
    mine = cluster(service, 1)
    await mine
    async with Client(mine, asynchronous=True) as client:
        service.unreachable = True
        async with asyncio.timeout(PATIENCE_S):
            while "nobody answers" not in mine.why():
                await asyncio.sleep(0.02)
        assert 3 == await client.submit(sum, [1, 2])
        service.unreachable = False
        async with asyncio.timeout(PATIENCE_S):
            while "nobody answers" in mine.why():
                await asyncio.sleep(0.02)
        service.unreachable = True
    with pytest.raises(NotStoppedError, match="kettle dask stop dask-1"):
        await mine.close()
    service.unreachable = False


async def test_a_scheduler_that_is_replaced_is_found(service: SessionsHere) -> None:
    """Workers and the cluster object go over to the new one."""
    async with cluster(service, 1) as mine:
        await mine.wait_for_workers(1, timeout=PATIENCE_S)
        task, end = service.jobs["1.0"]
        end.set()
        await task
        del service.jobs["1.0"]
        await service.change(contact="", state="degraded", reason="the scheduler was lost")
        await service.start_scheduler()
        async with asyncio.timeout(PATIENCE_S):
            while "kettle://1.0/" in mine.scheduler_address or mine.status.name != "running":
                await asyncio.sleep(0.02)
            await mine._ready.wait()
        async with Client(mine, asynchronous=True) as client:
            assert 3 == await asyncio.wait_for(client.submit(sum, [1, 2]), PATIENCE_S)


async def test_what_is_wrong_is_said_before_anything_is_computed(service: SessionsHere) -> None:
    """Another version; a session that is over; one that there is not."""
    async with cluster(service, 0) as mine:
        await service.change(versions={"distributed": "2020.1", "python": "3.1.2"}, profile="cms-2026")
        with pytest.raises(
            VersionMismatchError, match=r"distributed 2020\.1, .*start the kernel with the profile cms-2026"
        ):
            await cluster(service, existing=mine.name)
        with pytest.raises(CommandRefusedError, match="no session another"):
            await cluster(service, existing="another")
    with pytest.raises(SessionEndedError, match="it was stopped"):
        await cluster(service, existing="s1")


async def test_a_cluster_that_has_let_go_of_its_connection_is_asked_on_another_one(
    service: SessionsHere,
) -> None:
    """When its session is over; what is asked then has an answer at once."""
    async with cluster(service, 0) as mine:
        await service.change(state="ended", reason="its life of 1 hour is over", contact="")
        async with asyncio.timeout(PATIENCE_S):
            while "is over: its life" not in mine.why():
                await asyncio.sleep(0.02)
        logs = await mine.get_logs(cluster=True, scheduler=False, workers=False)
        assert "the session was requested" == logs["Cluster"]


async def test_that_it_is_stopped_may_be_news_before_it_is_answered(service: SessionsHere) -> None:
    """The connection stays for the answer."""

    async def stop(session: str) -> Situation:
        stopped = await stopping(session)
        async with asyncio.timeout(PATIENCE_S):
            while not (mine._link and mine._link.closed):
                await asyncio.sleep(0.02)
        return stopped

    stopping, service.stop = service.stop, stop  # type: ignore[method-assign]
    async with cluster(service, 0) as mine:
        pass
    assert "ended" == service.situation.state


async def test_a_cluster_that_is_of_no_use_is_stopped(service: SessionsHere) -> None:
    """Its jobs do not go on without anybody who could use them."""

    async def told(wish: Wish) -> Situation:
        await create(wish)
        await service.until(lambda now: bool(now.contact))
        await service.change(versions={"distributed": "2020.1", "python": "3.1.2"})
        return service.situation

    create, service.create = service.create, told  # type: ignore[method-assign]
    with pytest.raises(VersionMismatchError):
        await cluster(service, 0)
    assert "ended" == service.situation.state


async def test_a_panel_has_a_cluster_that_waits(service: SessionsHere) -> None:
    """With `wait` it is there before its scheduler, and says for what it waits."""

    async def not_yet() -> None:
        await service.change(state="queued", reason="all 40 cores of the interactive class are in use")

    service.start_scheduler, start = not_yet, service.start_scheduler  # type: ignore[method-assign]
    async with cluster(service, 1, wait=0.05) as mine:
        assert "<Not Connected>" == mine.scheduler_address
        assert "queued: all 40 cores" in mine.why()
        assert "all 40 cores" in mine._repr_html_()
        await start()
        assert mine is await mine
        assert mine.scheduler_address.startswith("kettle://")
