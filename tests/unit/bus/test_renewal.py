"""What the holder of a lease does when the bus fails it in the middle of a renewal."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

from kettle.bus.leases import HeldLease
from kettle.bus.ports import Bus, BusError, BusUnavailableError, KeyChange, WrongSequenceError
from kettle.testing.patience import PATIENCE_S

TTL_S = 3.0
"""A third of it passes before a renewal; two thirds are left for a machine that is slow just then."""


class Trouble:
    """A bus that answers each write with the next of some errors, and then stores it."""

    def __init__(self, *errors: BusError) -> None:
        self._errors = list(errors)
        self.stored = asyncio.Event()

    async def update(self, *_place: object, expect: int, **_limits: object) -> int:
        if self._errors:
            raise self._errors.pop(0)
        self.stored.set()
        return expect + 1

    async def delete(self, *_place: object, **_limits: object) -> None:
        pass

    async def watch(self, *_place: object) -> AsyncGenerator[KeyChange | None, None]:
        yield None


def held(trouble: Trouble) -> HeldLease:
    return HeldLease(cast("Bus", trouble), "leases", "shard", b"us", ttl=TTL_S, revision=7)


async def test_a_lost_bucket_on_a_bus_that_comes_and_goes_does_not_end_the_renewal() -> None:
    """The first write finds the bucket empty, the second one nobody who answers, the third one is stored."""
    trouble = Trouble(WrongSequenceError("not there", expected=7), BusUnavailableError("away"))
    lease = held(trouble)
    async with asyncio.timeout(PATIENCE_S):
        await trouble.stored.wait()
    await lease.release()


async def test_a_renewal_that_fails_for_good_loses_the_lease() -> None:
    """The holder is notified, and may give it back without harm."""
    lease = held(Trouble(BusError("no space left")))
    async with asyncio.timeout(PATIENCE_S):
        await lease.lost
    await lease.release()
