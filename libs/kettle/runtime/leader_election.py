"""
One process's candidacy for the ownership of a shard.

A thread with a connection of its own keeps it up: a service that computes for some seconds is not dead, and must not
lose its work to a standby. But a service that is silent for `STALLED` loses the ownership.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

from kettle.bus.credentials import service_identity
from kettle.bus.leases import KeyLeases
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BucketSpec
from kettle.runtime.process_identity import gone, presence
from kettle.runtime.settings import OwnerSettings
from kettle_wire.subjects import Subjects, token

STALLED: Final = 30.0
"""Seconds without a turn of the service's event loop after which it does not ask to be elected any more."""
_SIGN: Final = 5.0
"""Seconds between signs of life of the service's event loop, and between looks for them while there are none."""
_KEPT: Final = 60.0
"""Seconds: a bucket that was lost is taken for empty after this, if nobody writes his lease into it again."""

_numbers: Final = count(1)
_log: Final = logging.getLogger(__name__)


class Candidacy:
    """Elected, or waiting to be."""

    def __init__(self, settings: OwnerSettings, role: str, shard: str) -> None:
        self._settings = settings
        self._role = role
        self._shard = shard
        self._holder = presence(next(_numbers))
        self._service = asyncio.get_running_loop()
        self._signed = self._service.time()
        self._elected = asyncio.Event()
        self._ended: asyncio.Future[None] = self._service.create_future()
        self._loop = asyncio.new_event_loop()
        self._campaign: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"lease-{shard}", daemon=True)

    @classmethod
    @asynccontextmanager
    async def enter(cls, settings: OwnerSettings, role: str, shard: str) -> AsyncGenerator["Candidacy", None]:
        """Be a candidate while the context lasts; the lease is given back at its end."""
        candidacy = cls(settings, role, shard)
        candidacy._thread.start()
        signs = asyncio.create_task(candidacy._sign(), name=f"signs-{shard}")
        try:
            yield candidacy
        finally:
            signs.cancel()
            with suppress(RuntimeError):  # its loop is closed: the thread has failed, and reported it
                candidacy._loop.call_soon_threadsafe(candidacy._give_up)
            await asyncio.to_thread(candidacy._thread.join)
            candidacy._ended.cancel()

    async def elected(self) -> None:
        """Wait until we are elected for the first time."""
        await self._elected.wait()

    async def failure(self) -> None:
        """Wait for a failure that no retry repairs, and raise it."""
        await self._ended

    async def _sign(self) -> None:
        while True:
            self._signed = self._service.time()
            await asyncio.sleep(_SIGN)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._campaign = self._loop.create_task(self._be_candidate())
            self._loop.run_until_complete(self._campaign)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the service, which stops
            self._tell(self._fail, error)
        finally:
            self._loop.close()

    def _give_up(self) -> None:
        if self._campaign is not None:
            self._campaign.cancel()

    async def _be_candidate(self) -> None:
        settings = self._settings
        subjects = Subjects(settings.pool)
        async with (
            NatsBus.connect(
                settings.nats_url,
                subjects=subjects,
                identity=service_identity(self._role, settings.nats_credentials),
                credentials=settings.nats_credentials,
                ca=settings.nats_ca,
                name=f"{self._role} lease",
            ) as bus,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(bus.failure())
            # Not in memory, which machines can fill with ads: the services would lose their shards.
            await bus.ensure_bucket(BucketSpec(name=subjects.leases, ttl=_KEPT, memory=False))
            await self._press(KeyLeases(bus, subjects.leases, gone=gone))

    async def _press(self, leases: KeyLeases) -> None:
        """Be elected, and be elected again whenever the lease was lost; never returns."""
        while True:
            await self._responsive()
            lease = await leases.acquire(token(self._shard), self._holder, ttl=self._settings.owner_lease)
            lost = asyncio.ensure_future(lease.lost)
            stalled = asyncio.create_task(self._stalled())
            try:
                self._tell(self._elected.set)
                await asyncio.wait({lost, stalled}, return_when=asyncio.FIRST_COMPLETED)
                if lost.done():
                    lost.result()
            finally:
                stalled.cancel()
                await lease.release()
            _log.warning("%s: the lease is lost; owning on as long as nobody else does", self._shard)

    async def _stalled(self) -> None:
        while (left := STALLED - self._silence) > 0:  # noqa: ASYNC110 - a loop that hangs says nothing, in no way
            await asyncio.sleep(left)

    async def _responsive(self) -> None:
        while self._silence >= STALLED:  # noqa: ASYNC110 - as above
            await asyncio.sleep(_SIGN)

    @property
    def _silence(self) -> float:
        return self._service.time() - self._signed

    def _tell(self, what: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the service's loop is closed: nobody is left to be notified
            self._service.call_soon_threadsafe(what, *arguments)

    def _fail(self, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
