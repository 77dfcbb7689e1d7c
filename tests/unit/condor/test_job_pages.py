"""Jobs that are printed page by page."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, cast

from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.connections.job_pages import job_pages
from kettle_services.condor.printing.values import AdRow, Needs
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.commands.queue import JobAds, Select
from kettle_wire.jobs import JobId

QUEUE: list[Ad] = [
    {"ProcId": 0, "Wanted": 1},
    {"ProcId": 1, "Wanted": Expr("Half * 2"), "Half": 4},
    {"ProcId": 2, "Wanted": Expr("Half + Rest"), "Half": 5, "Rest": Expr("ProcId * 10")},
    {"ProcId": 3, "Wanted": 9, "Half": 1},
]


class Pool:
    """A queue whose pages have one job each."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, list[str], int]] = []

    async def pages(
        self, select: Select, *, projection: Sequence[str], limit: int, after: JobId | None
    ) -> AsyncGenerator[JobAds, None]:
        del select
        begin = 0 if after is None else after.proc + 1
        for at in range(begin, min(len(QUEUE), begin + (limit or len(QUEUE)))):
            self.asked.append((at, list(projection), limit))
            ad = {name: QUEUE[at][name] for name in projection if name in QUEUE[at]}
            last = at == len(QUEUE) - 1
            yield JobAds(jobs=[ad], total=1, more=None if last else JobId(1, at))

    def run(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        asyncio.run(work(self))


def shown(pool: Pool, limit: int = 0) -> list[object]:
    needs, values = Needs(["Wanted"]), list[object]()

    def show(ads: Sequence[Ad]) -> list[str]:
        if more := needs.of(ads):
            return more
        values.extend(AdRow(ad).value("Wanted") for ad in ads)
        return []

    job_pages(cast("ShortLivedClient", pool), Select(), limit)(needs.names, show)
    return values


def test_what_a_later_page_needs_is_asked_for_from_there_on() -> None:
    """No page is shown twice or left out, and earlier ones are not asked for again."""
    pool = Pool()
    assert [1, 8, 25, 9] == shown(pool)
    assert [0, 1, 1, 2, 2, 2, 3] == [at for at, _, _ in pool.asked]
    assert ["Wanted", "Half", "Rest", "ProcId"] == pool.asked[-1][1]


def test_a_limit_counts_what_was_shown() -> None:
    pool = Pool()
    assert [1, 8, 25] == shown(pool, limit=3)
