"""
`KettleCluster`: a Dask cluster whose scheduler and workers are jobs of a pool.

The cluster lives in the pool, not in this object: the object may go, with its notebook, and another one finds the cluster
again by its name (`KettleCluster.from_name`).
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportPrivateUsage=false

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, Self, TypeVar

from distributed.client import Client, Future
from distributed.core import Status, rpc
from distributed.deploy.cluster import Cluster
from distributed.objects import SchedulerInfo
from distributed.security import Security
from distributed.utils import Log, Logs

from kettle.client.errors import ClientError
from kettle.dask.connection import Connect, SessionLink, connected_to_pool
from kettle.dask.description import html_of, read_limits, read_wish, said_of
from kettle.dask.errors import NotReadyError, NotStoppedError, SessionEndedError, VersionMismatchError
from kettle.dask.scheduler.job_scheduler import LIST_KEPT
from kettle.dask.scheduler.local import local_scheduler
from kettle.dask.security import security_of
from kettle.dask.session_service import Limits, SessionService, Situation
from kettle.dask.versions import mismatch, own_versions
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits

Answer = TypeVar("Answer")
Question = Callable[[SessionService, str], Awaitable[Answer]]
"""What is asked of the service about a session."""
_AGAIN: Final = Backoff(first=0.2, longest=5.0)
_LOOK_S: Final = 1.0
"""Between two looks at the workers, for those who look at this object."""
_PATIENT_S: Final = 3.0
"""A start that takes longer is explained."""


class Adapting:
    """
    That a cluster adapts itself: between which limits, and for an asynchronous program something to wait for.
    """

    def __init__(self, limits: Limits, asked: "asyncio.Task[None] | None") -> None:
        self.minimum: Final = limits.minimum
        self.maximum: Final = limits.maximum
        self._asked = asked

    def __await__(self) -> Generator[Any, None, Self]:
        if self._asked is not None:
            yield from self._asked.__await__()
        return self


class KettleCluster(Cluster):
    """
    A cluster that is started with this object, and ended by `close`.

        with KettleCluster(n=4, cores=2, memory="4 GB") as cluster, cluster.get_client() as client:
            ...

    `n`: how many workers; `profile`: the pool's name for a kind of cluster; `cores`, `memory`, `gpus`, `disk`: of each worker;
    `image`: the container image of scheduler and workers; `site`: where they run; `minimum` and `maximum`: adapt to the
    load between these; `life`, `idle`: after how long the cluster ends, at all and without work; `share`: people and
    groups who may use it.  What is left out is as the profile says.

    `scheduler`: `"job"`, which goes on when this program ends and serves workers wherever they are; or `"local"`: this program is the
    scheduler, and workers of its machine come to it, with `site` those of that site, whose machines have to reach this one.

    `wait`: how many seconds starting may take before this object is handed out without a scheduler, as a panel
    wants it; None: until there is one.  `connect`: another way to the pool than the one that `kettle` takes.
    """

    def __init__(
        self,
        n: int | None = None,
        *,
        name: str = "",
        minimum: int | None = None,
        maximum: int | None = None,
        scheduler: str = "job",
        wait: float | None = None,
        shutdown_on_close: bool | None = None,
        connect: Connect | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        quiet: bool = False,
        existing: str = "",
        **wish: Any,
    ) -> None:
        """
        Raises:
            ClientError: the pool refuses, or does not answer.
            ClusterError: the session ended before there was a scheduler, or its versions are others.
            TypeError, ValueError: of arguments that there are not, or that say nothing that is to be had.
        """
        self._wish: Final = read_wish(
            n, name=name, minimum=minimum, maximum=maximum, scheduler=scheduler, **wish
        )
        self._existing: Final = existing
        self._wait = wait
        self._stops: Final = not existing if shutdown_on_close is None else shutdown_on_close
        self._connect: Final = connect or connected_to_pool
        self._link: SessionLink | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._dashboard = ""
        self.security = Security()
        super().__init__(asynchronous=asynchronous, loop=loop, quiet=quiet, name=existing or name or "dask")
        if not self.asynchronous:
            self._loop_runner.start()
            try:
                self.sync(self._begin)
            except BaseException:
                with contextlib.suppress(NotStoppedError):
                    self.close()
                raise

    @classmethod
    def from_name(cls, name: str, **options: Any) -> Self:
        """
        The cluster that exists already, by its id, or its name if it is our own; closing this object leaves it as it is.

        Raises:
            CommandRefusedError: there is none of that name that is ours, and none of that id that we may use.
        """
        return cls(existing=name, **options)

    # What the session is asked

    def scale(self, n: int) -> Any:
        """
        To `n` workers; it no longer adapts.  Returns when that is recorded, not when they are there.

        Raises:
            ClientError: the pool refuses, or does not answer.
        """
        return self._ask(lambda service, session: service.scale(session, n))

    def adapt(self, minimum: int = 0, maximum: int | None = None, **_: Any) -> Adapting:  # type: ignore[override]
        """
        To the load: the scheduler says how many workers it could use, the service keeps between the limits.

        Raises:
            ClientError: the pool refuses, or does not answer.
            ValueError: there is nothing between the limits.
        """
        limits = read_limits(minimum, maximum)
        assert limits is not None
        return Adapting(limits, self._ask(lambda service, session: service.adapt(session, limits)))

    def why(self) -> str:
        """Why the cluster is as it is: for what its workers wait, what went wrong, or that nobody answers."""
        if self._serving is not None and self._serving.done() and not self._serving.cancelled():
            return str(self._serving.exception())
        return said_of(self.situation, self._link.trouble if self._link is not None else "")

    @property
    def situation(self) -> Situation | None:
        """What is known of the session; None before it has begun."""
        return self._link.situation if self._link is not None else None

    @property
    def dashboard_link(self) -> str:
        """Where a browser finds the dashboard of the scheduler; empty as long as there is none."""
        return self._dashboard

    def kept_results(self, client: Client) -> Any:
        """
        What earlier clients were lost with, as of a kernel that died: futures by their keys.

        Scheduler and workers keep it for a quarter of an hour; who takes it has it as long as he wants.
        """
        return self.sync(self._kept_results, client)

    # Its life

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begin().__await__()

    def close(self, timeout: float | None = None) -> Any:
        """
        End the session, if it was begun with this object, and let go of it.

        Raises:
            NotStoppedError: the pool did not answer; the session goes on until its idle time is over.
        """
        try:
            return super().close(timeout)
        finally:
            if not self.asynchronous:
                self._loop_runner.stop()

    async def _begin(self) -> Self:
        """Until there is a scheduler, or for as long as may be waited."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve(), name=f"cluster {self.name}")
        limit, self._wait = self._wait, None
        ready = asyncio.create_task(self._ready.wait())
        explained = "" if not self.quiet else None
        try:
            async with asyncio.timeout(limit):
                while not ready.done() and not self._serving.done():
                    await asyncio.wait(
                        (ready, self._serving), timeout=_PATIENT_S, return_when=asyncio.FIRST_COMPLETED
                    )
                    if (
                        explained is not None
                        and not ready.done()
                        and (said := self.why()) not in {"", explained}
                    ):
                        explained = said
                        self._log(said)
        except TimeoutError:
            return self
        finally:
            ready.cancel()
        if self._serving.done():
            failed = self._serving
            with contextlib.suppress(NotStoppedError):  # what went wrong first is what is told
                await self._close()
            failed.result()
        return self

    async def _serve(self) -> None:
        async with SessionLink.opened(self._connect, self._first) as link:
            self._link = link
            self.name = link.situation.name
            if not self._wish.local:
                await self._follow(link)
                return
            async with local_scheduler(link.service, link.situation.id, site=self._wish.site) as scheduler:
                dashboard: Any = scheduler.http_server
                self._dashboard = f"http://127.0.0.1:{dashboard.port}/status"
                await self._follow(link)

    async def _follow(self, link: SessionLink) -> None:
        """Be attached to the scheduler of the session, whichever that is, until the session is over."""
        waits = Waits(_AGAIN)
        while True:
            situation = await link.until(lambda now: now.over or bool(now.contact))
            if situation.over:
                raise SessionEndedError(
                    f"the session {situation.name} is over: {situation.reason or situation.state}"
                )
            try:
                await self._attach(link.service, situation)
            except (OSError, ClientError) as error:
                link.trouble = f"the scheduler is not reached: {error}"
                await waits.wait()
                continue
            waits.reset()
            link.trouble = ""
            await self._stay(link, situation.contact)

    async def _first(self, service: SessionService) -> Situation:
        if self._existing:
            return await service.show(self._existing)
        return await service.create(self._wish)

    async def _attach(self, service: SessionService, situation: Situation) -> None:
        """Raises OSError if the scheduler is not reached."""
        if said := mismatch(own_versions(), situation.versions, we="this Python", they="the cluster"):
            other = f"the profile {situation.profile}" if situation.profile else "another profile"
            raise VersionMismatchError(f"{said}: start the kernel with {other}, or pass image=...")
        credentials = await service.credentials(situation.id)
        self.security = security_of(credentials, service.open_stream)
        self.scheduler_comm = rpc(
            situation.contact, connection_args=self.security.get_connection_args("client")
        )
        self.scheduler_info = await self._asked_scheduler()
        if situation.scheduler_job:
            self._dashboard = await service.link(situation.scheduler_job, "dashboard")
        self.status = Status.running
        self._ready.set()

    async def _asked_scheduler(self) -> SchedulerInfo:
        """
        Dask's own clusters subscribe to news of workers, which one object alone can have of a scheduler.
        """
        scheduler: Any = self.scheduler_comm
        return SchedulerInfo(await scheduler.identity(n_workers=-1))

    async def _stay(self, link: SessionLink, contact: str) -> None:
        """Until the session has another scheduler, is over, or this one is no longer reached."""
        looking = asyncio.create_task(self._look())
        moved = asyncio.create_task(link.until(lambda now: now.over or now.contact != contact))
        try:
            await asyncio.wait((looking, moved), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ready.clear()
            for each in (looking, moved):
                each.cancel()
            await asyncio.wait((looking, moved))
            if self.scheduler_comm is not None:  # pyright: ignore[reportUnnecessaryComparison] - its annotation is wrong
                await self.scheduler_comm.close_rpc()
            self.scheduler_info = {"workers": {}}
        if not looking.cancelled() and (error := looking.exception()) is not None:
            link.trouble = f"the scheduler is no longer reached: {error}"

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self.scheduler_info = await self._asked_scheduler()

    async def _close(self) -> None:
        if self.status == Status.closed:
            return
        failure: ClientError | None = None
        link = self._link
        try:
            if self._stops and link is not None and not link.situation.over:
                await self._asked(link, lambda service, session: service.stop(session))
        except ClientError as error:
            failure = error
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait((self._serving,))
            if not self._serving.cancelled():
                self._serving.exception()  # that the session is over is no news to who closes it
        await super()._close()
        if failure is not None:
            raise NotStoppedError(
                f"the session {self.name} was not stopped ({failure}): say `kettle dask stop {self.name}` later"
            ) from failure

    # How it looks

    def __repr__(self) -> str:
        workers = self.scheduler_info["workers"]
        known = self.situation
        threads = sum(each["nthreads"] for each in workers.values())
        wanted = known.wanted if known is not None else len(workers)
        state = known.state if known is not None else self.status.name
        return f"KettleCluster({self.name!r}, {state}, workers={len(workers)} of {wanted}, threads={threads})"

    def _repr_html_(self, cluster_status: str | None = None) -> str:
        links = [self._dashboard] if self._dashboard else []
        trouble = self._link.trouble if self._link is not None else ""
        return html_of(self.name, self.situation, trouble, self.scheduler_info["workers"], links)

    def _scaling_status(self) -> str:
        return self._repr_html_()

    async def _get_logs(self, cluster: bool = True, scheduler: bool = True, workers: bool = True) -> Logs:  # noqa: FBT001, FBT002  Dask's names
        connected = self._ready.is_set()
        found: Logs = await super()._get_logs(False, scheduler and connected, workers and connected)
        if cluster and self._link is not None:
            story = await self._asked(self._link, lambda service, session: service.story(session))
            found["Cluster"] = Log("\n".join(story))
        return found

    async def _kept_results(self, client: Client) -> dict[Any, Future[Any]]:
        if not self._ready.is_set():
            raise NotReadyError(self.why())
        kept: dict[str, list[Any]] = await getattr(self.scheduler_comm, LIST_KEPT)()
        found: dict[Any, Future[Any]] = {
            key: Future(key, client=client) for keys in kept.values() for key in keys
        }
        # From now on it is this client's, as with a future that somebody sends.
        client._send_to_scheduler(  # noqa: SLF001  Dask has no other word for it
            {"op": "client-desires-keys", "keys": list(found), "client": client.id}
        )
        return found

    def _ask(self, question: Question[Situation]) -> Any:
        """In an asynchronous program it is asked at once, whether or not somebody waits for the answer."""
        if self.asynchronous:
            return asyncio.ensure_future(self._answered(question))
        return self.sync(self._answered, question)

    async def _answered(self, question: Question[Situation]) -> None:
        if self._link is None:
            await self._begin()
        link = self._link
        if link is None:
            raise NotReadyError("the session has not begun")
        await link.tell(await self._asked(link, question))

    async def _asked(self, link: SessionLink, question: Question[Answer]) -> Answer:
        """
        The answer; of a link that has been let go, over a connection for this question.  Raises ClientError.
        """
        if not link.closed:
            return await link.ask(question)
        async with self._connect() as service:
            return await question(service, link.situation.id)
