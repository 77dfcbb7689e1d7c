"""What every adapter of the working set promises."""

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kettle.eventsourcing.log import FencedError, Log, StoredEvent, WorkingSet
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.storage import PgLog, PgWorkingSet
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.locations import Place


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def stores(request: pytest.FixtureRequest, real: Place) -> AsyncIterator[tuple[Log, WorkingSet]]:
    if request.param == "memory":
        log = MemoryLog()
        yield log, MemoryWorkingSet(log)
        return
    async with PgLog.connect(real.addresses.database_url, patience=PATIENCE_S) as pg:
        yield pg, PgWorkingSet(pg.database)


@pytest.fixture
def shard() -> str:
    return f"schedd.{uuid.uuid4().hex}"


async def test_rows_and_cursor_are_saved_together(stores: tuple[Log, WorkingSet], shard: str) -> None:
    """Rows are put, replaced and dropped, and the cursor says up to which frame."""
    log, working_set = stores
    assert (0, []) == await working_set.load(shard)
    epoch = (await log.take(shard, owner="a")).epoch
    await working_set.save(
        shard,
        epoch=epoch,
        was=0,
        now=7,
        put=[StoredEvent("a", 1, b"1"), StoredEvent("b", 1, b"2"), StoredEvent("c", 1, b"3")],
        drop=["z"],
    )
    await working_set.save(shard, epoch=epoch, was=7, now=9, put=[StoredEvent("b", 4, b"\0\xff")], drop=["a"])
    assert (9, [StoredEvent("b", 4, b"\0\xff"), StoredEvent("c", 1, b"3")]) == await working_set.load(shard)


async def test_the_guard_wants_the_right_cursor(stores: tuple[Log, WorkingSet], shard: str) -> None:
    """A save from another frame than the last one changes nothing."""
    log, working_set = stores
    epoch = (await log.take(shard, owner="a")).epoch
    await working_set.save(shard, epoch=epoch, was=0, now=5, put=[StoredEvent("a", 1, b"1")], drop=[])
    with pytest.raises(FencedError):
        await working_set.save(shard, epoch=epoch, was=4, now=6, put=[StoredEvent("a", 2, b"2")], drop=[])
    assert (5, [StoredEvent("a", 1, b"1")]) == await working_set.load(shard)


async def test_a_stale_owner_saves_nothing(stores: tuple[Log, WorkingSet], shard: str) -> None:
    """After a take-over the old owner's save fails, also with the right cursor; the new owner's succeeds."""
    log, working_set = stores
    old = (await log.take(shard, owner="a")).epoch
    new = (await log.take(shard, owner="b")).epoch
    with pytest.raises(FencedError):
        await working_set.save(shard, epoch=old, was=0, now=1, put=[StoredEvent("a", 1, b"old")], drop=[])
    await working_set.save(shard, epoch=new, was=0, now=1, put=[StoredEvent("a", 1, b"new")], drop=[])
    assert (1, [StoredEvent("a", 1, b"new")]) == await working_set.load(shard)


async def test_a_shard_that_nobody_took_has_no_working_set(
    stores: tuple[Log, WorkingSet], shard: str
) -> None:
    """Without an owner there is nothing to save for."""
    _, working_set = stores
    with pytest.raises(FencedError):
        await working_set.save(shard, epoch=1, was=0, now=1, put=[], drop=[])
