"""The jobs of a queue page by page, with the attributes that turn out to be needed to show them."""

import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from kettle.client.connections.condor_config import user_identity
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.printing.queued_jobs import QueuedJobs
from kettle_services.condor.printing.values import Show, Source
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Select, Unmade

if TYPE_CHECKING:
    from kettle.client.client import Client


def jobs_in_queue(client: ShortLivedClient, select: Select, limit: int) -> QueuedJobs:
    """The jobs of a schedd."""
    from kettle_services.condor.printing.queue_table import head

    unmade: list[Unmade] = []
    return QueuedJobs(
        head=head(client.pool, time.time()) + "\n",
        source=job_pages(client, select, limit, unmade),
        unmade=unmade,
        person=user_identity(client.pool),
        everybody=lambda: client.run(lambda pool: pool.totals(Select())).statuses,
    )


def job_pages(
    client: ShortLivedClient, select: Select, limit: int, unmade: list[Unmade] | None = None
) -> Source:
    """
    The jobs, page by page, because there may be very many.

    `unmade` gets the clusters whose jobs come into the queue little by little.
    """

    async def ask(pool: "Client", names: list[str], show: Show) -> None:
        after, left = None, limit
        while True:
            async with aclosing(pool.pages(select, projection=names, limit=left, after=after)) as pages:
                async for page in pages:
                    if unmade is not None and page.unmade:
                        unmade[:] = page.unmade
                    if more := show(_with_time(page.jobs, names)):
                        names = [*names, *more]  # this page is asked for again
                        break
                    after, left = page.more, left - len(page.jobs) if limit else 0
                else:
                    return

    return lambda names, show: client.run(lambda pool: ask(pool, names, show))


def _with_time(ads: list[Ad], names: list[str]) -> list[Ad]:
    """The jobs, with the time of the answer where it is asked for: scripts compute ages from it."""
    if names and "servertime" not in map(str.lower, names):
        return ads
    now = int(time.time())
    return [{**ad, "ServerTime": now} for ad in ads]
