"""The client for programs without an event loop."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kettle.client.client import Client
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.transport import PATIENCE_S
from kettle.client.events.progress import Progress
from kettle.client.hosts import Speed
from kettle.client.jobs.records import JobEvent
from kettle.client.why_report import WhyReport
from kettle_wire.ads.types import Ad
from kettle_wire.commands.accounting import OwnerUsage
from kettle_wire.commands.schedd import Acted, Edited, RunningNow, Select, Submitted
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.submit import Submission

T = TypeVar("T")


class SyncClient:
    """
    A connection to a pool, with the methods of `Client` that block.  One thread of its own serves it.

        with SyncClient.connect() as pool:
            submitted = pool.submit(Path("sweep.sub"))
            pool.wait(select(submitted.cluster))

    It may be used from several threads at once.
    """

    def __init__(self, context: AbstractAsyncContextManager[Client]) -> None:
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kettle-client", daemon=True)
        self._client: Client | None = None

    @classmethod
    def connect(
        cls,
        nats_url: str | None = None,
        *,
        credentials: str | Path | None = None,
        home: Path | None = None,
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE_S,
    ) -> Self:
        """Like `Client.connect`; the connection is made on entering the context."""
        return cls(
            Client.connect(
                nats_url,
                credentials=credentials,
                home=home,
                environ=os.environ if environ is None else environ,
                patience=patience,
            )
        )

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._client = self._run(self._context.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._context.__aexit__(kind, error, trace))
        finally:
            self._client = None
            self._stop()

    @property
    def pool(self) -> PoolFile:
        """The pool that this is connected to."""
        return self._connected.pool

    def submit(
        self,
        description: "str | Path | Submission",
        *,
        given: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        source: str | None = None,
    ) -> Submitted:
        """See `Client.submit`."""
        return self._run(self._connected.submit(description, given=given, cwd=cwd, source=source))

    def hold(self, select: Select, reason: str = "") -> Acted:
        """See `Client.hold`."""
        return self._run(self._connected.hold(select, reason))

    def release(self, select: Select, reason: str = "") -> Acted:
        """See `Client.release`."""
        return self._run(self._connected.release(select, reason))

    def edit(self, cluster: int, attributes: Ad) -> Edited:
        """See `Client.edit`."""
        return self._run(self._connected.edit(cluster, attributes))

    def run_now(self, job: JobId, instead_of: Sequence[JobId]) -> RunningNow:
        """See `Client.run_now`."""
        return self._run(self._connected.run_now(job, instead_of))

    def remove(self, select: Select, reason: str = "") -> Acted:
        """See `Client.remove`."""
        return self._run(self._connected.remove(select, reason))

    def jobs(
        self, select: Select | None = None, *, projection: Sequence[str] = (), limit: int = 0
    ) -> list[Ad]:
        """See `Client.jobs`."""
        return self._run(self._connected.jobs(select, projection=projection, limit=limit))

    def history(
        self,
        select: Select | None = None,
        *,
        limit: int = 100,
        since: float | None = None,
        until: float | None = None,
        searched: Callable[[int, int], None] | None = None,
    ) -> list[Ad]:
        """See `Client.history`."""
        return self._run(
            self._connected.history(select, limit=limit, since=since, until=until, searched=searched)
        )

    def events(self, job: JobId) -> list[JobEvent]:
        """See `Client.events`."""
        return self._run(self._connected.events(job))

    def follow(self, job: JobId) -> Iterator[JobEvent]:
        """See `Client.follow`."""
        return self._iterate(self._connected.follow(job))

    def watch(self, select: Select) -> Iterator[Progress]:
        """See `Client.watch`."""
        return self._iterate(self._connected.watch(select))

    def wait(self, select: Select, *, through_hold: bool = True) -> Progress:
        """See `Client.wait`."""
        return self._run(self._connected.wait(select, through_hold=through_hold))

    def why(self, job: JobId) -> WhyReport:
        """See `Client.why`."""
        return self._run(self._connected.why(job))

    def ads(
        self,
        ad_type: str = "",
        *,
        constraint: str = "",
        projection: Sequence[str] = (),
        forwarded: bool = False,
    ) -> list[Ad]:
        """See `Client.ads`."""
        return self._run(
            self._connected.ads(ad_type, constraint=constraint, projection=projection, forwarded=forwarded)
        )

    def usage(self, owners: Sequence[str] = ()) -> list[OwnerUsage]:
        """See `Client.usage`."""
        return self._run(self._connected.usage(owners))

    def drain(
        self,
        machine: str,
        *,
        speed: Speed = "graceful",
        reason: str = "",
        check: str = "",
        start: str = "",
        resume: bool = False,
    ) -> str:
        """See `Hosts.drain`."""
        return self._run(
            self._connected.hosts.drain(
                machine, speed=speed, reason=reason, check=check, start=start, resume=resume
            )
        )

    def cancel_drain(self, machine: str, request: str = "") -> None:
        """See `Hosts.cancel_drain`."""
        self._run(self._connected.hosts.cancel_drain(machine, request))

    def run(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """What the asynchronous client answers: for methods of it that are not here."""
        return self._run(work(self._connected))

    @property
    def _connected(self) -> Client:
        if self._client is None:
            raise RuntimeError("not connected: use SyncClient as a context manager")
        return self._client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # of a thread that is interrupted nobody waits for the answer
            raise

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        try:
            while True:
                try:
                    yield self._run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._run(_close(items))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncIterator[object]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
