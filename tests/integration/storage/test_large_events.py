"""What a reader of the log holds at once, whatever people submit."""

from kettle.storage import PgLog
from kettle.storage.archived_pieces import NoArchives
from kettle.storage.event_reader import PAGE_BYTES, ShardKey, events
from kettle_wire.frames import Entry, Frame

LARGE = bytes(PAGE_BYTES // 2)
COUNT = 5


async def test_a_page_of_large_events_is_bounded(dsn: str) -> None:
    """No page has more than it should and one event; all of them together have everything, in order."""
    async with PgLog.connect(dsn, patience=30.0) as log:
        tenure = await log.take("large", owner="test")
        for number in range(1, COUNT + 1):
            entry = Entry(f"cluster/{number}", 1, "cluster.submitted", LARGE, b"")
            await log.append(Frame("large", tenure.epoch, number, number, 1, [entry]))
        row = await log.database.run(
            lambda c: c.fetchrow("SELECT id, piece_events FROM log.shard WHERE name = 'large'")
        )
        assert row is not None
        shard = ShardKey(row["id"], "large", row["piece_events"])
        pages = [
            [one.frame for one in page]
            async for page in events(log.database, NoArchives(), shard, after=0, until=COUNT)
        ]
    assert [[1, 2], [3, 4], [5]] == pages
