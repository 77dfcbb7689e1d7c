"""
Leases in a bucket of the bus.

A lease elects a process; it does not fence. The holder renews at a third of its time, and gives up a margin before the
server would let the next one in, on its own clock. A process that can prove that the holder has ended does not have to
wait for that.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from kettle.bus.ports import Bus, BusError, BusUnavailableError, KeyChange, WrongSequenceError
from kettle.bus.retryable import UNHEARD
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits

SHORTEST_S: Final = 1.0
"""The server counts lives of entries in no less."""

Gone = Callable[[str], Awaitable[None]]
"""Waits until it is proven that a holder has ended; where nothing can be proven, it never returns."""

_log = logging.getLogger(__name__)


class HeldLease:
    """See `Lease`."""

    def __init__(self, bus: Bus, bucket: str, key: str, holder: bytes, *, ttl: float, revision: int) -> None:
        self._bus = bus
        self._bucket = bucket
        self._key = key
        self._holder = holder
        self._ttl = ttl
        self._revision = revision
        self._doubtful = False
        """Whether what is in the bucket may have another revision."""
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._renewal = asyncio.create_task(self._renew(), name=f"lease-{key}")

    @property
    def lost(self) -> Awaitable[None]:
        """See `Lease.lost`."""
        return asyncio.shield(self._lost)

    async def release(self) -> None:
        """See `Lease.release`."""
        self._renewal.cancel()
        with suppress(asyncio.CancelledError):
            await self._renewal
        with suppress(BusError):
            await self._bus.delete(self._bucket, self._key, expect=self._revision)

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        held_until = loop.time() + self._ttl
        try:
            while True:
                await asyncio.sleep(self._ttl / 3)
                asked = loop.time()
                async with asyncio.timeout_at(held_until):
                    await self._once_more()
                held_until = asked + self._ttl
        except (TimeoutError, BusError) as error:
            _log.warning("the lease of %s is lost: %s", self._key, str(error) or "not renewed in time")
            self._lost.set_result(None)
        except Exception as error:  # noqa: BLE001 - handed to the task that awaits `lost`, so it does not go unnoticed
            self._lost.set_exception(error)

    async def _once_more(self) -> None:
        waits = Waits(Backoff(first=0.05, longest=self._ttl / 6))
        while True:
            try:
                self._revision = await self._write(await self._expected())
            except UNHEARD:
                await waits.wait()
            except WrongSequenceError:
                self._doubtful = True
                await waits.wait()
            else:
                self._doubtful = False
                return

    async def _expected(self) -> int:
        """
        After what revision to write; raises BusError if somebody else is the holder.

        In doubt that is looked up: ours was written and its answer lost, or the bucket was lost with everything in it.
        """
        if not self._doubtful:
            return self._revision
        now = await _entry(self._bus, self._bucket, self._key)
        if now is not None and now.value is not None and now.value != self._holder:
            raise BusError("somebody else holds it")
        return now.revision if now else 0

    async def _write(self, expect: int) -> int:
        return await self._bus.update(
            self._bucket, self._key, self._holder, expect=expect, ttl=self._ttl, deadline=self._ttl / 3
        )


class KeyLeases:
    """See `Leases`. The bucket must have been ensured."""

    def __init__(self, bus: Bus, bucket: str, *, gone: Gone | None = None) -> None:
        self._bus = bus
        self._bucket = bucket
        self._gone = gone

    async def acquire(self, key: str, holder: str, *, ttl: float) -> HeldLease:
        """
        See `Leases.acquire`; `ttl` is at least `SHORTEST_S`. `holder` must be new with each process that tries: an entry that names
        it is left of a lease that it has lost, whose last renewal got no answer, and is taken over.
        """
        if ttl < SHORTEST_S:
            raise ValueError(f"a lease of {ttl} seconds is too short; at least {SHORTEST_S}")
        present: KeyChange | None = None
        ours, waits = holder.encode(), Waits()
        async with (
            aclosing(self._bus.watch(self._bucket, key)) as changes,
            self._mourning(key) as mourn,
        ):
            async for change in changes:
                present = change or present
                mourn(present)
                while present is None or present.value in {None, ours}:
                    try:
                        return await self._try(key, ours, present.revision if present else 0, ttl)
                    except WrongSequenceError:
                        present = await _entry(self._bus, self._bucket, key)
                    except UNHEARD:
                        await waits.wait()
        raise BusUnavailableError("the watch ended")

    @asynccontextmanager
    async def _mourning(self, key: str) -> AsyncGenerator[Callable[[KeyChange | None], None], None]:
        """Receives each holder of the lease, and withdraws the entry of one that has provably ended."""
        waiting: asyncio.Task[None] | None = None
        awaited = b""

        def mourn(present: KeyChange | None) -> None:
            nonlocal waiting, awaited
            holder = (present.value if present else None) or b""
            if self._gone is None or holder == awaited:
                return
            if waiting is not None:
                waiting.cancel()
            awaited, waiting = holder, None
            if holder:
                waiting = asyncio.create_task(self._withdraw(key, holder, self._gone), name=f"withdraw-{key}")

        try:
            yield mourn
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.wait({waiting})

    async def _withdraw(self, key: str, holder: bytes, gone: Gone) -> None:
        await gone(holder.decode(errors="replace"))
        now = await _entry(self._bus, self._bucket, key)
        if now is not None and now.value == holder:
            _log.info("the holder of %s is no more: its lease is withdrawn", key)
            await self._bus.delete(self._bucket, key, expect=now.revision)

    async def _try(self, key: str, holder: bytes, expect: int, ttl: float) -> HeldLease:
        revision = await self._bus.update(self._bucket, key, holder, expect=expect, ttl=ttl, deadline=ttl / 3)
        return HeldLease(self._bus, self._bucket, key, holder, ttl=ttl, revision=revision)


async def _entry(bus: Bus, bucket: str, key: str) -> KeyChange | None:
    """What is there now: an entry, the mark of a deletion, or nothing."""
    found: KeyChange | None = None
    async with aclosing(bus.watch(bucket, key)) as changes:
        async for change in changes:
            if change is None:
                break
            found = change
    return found
