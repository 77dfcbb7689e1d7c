"""
What is asked about the rest of the pool: from the collector, which knows how it is now, and from the tables.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import asyncpg

from kettle.bus.ports import Bus
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.command_lines import COMMAND_ATTRIBUTES, short_command, value_text
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.job_rows import SCHEDD, STATES, Viewer
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, frames_tag
from kettle_services.gateway.rest.page_tokens import AdPlace, RowPlace, ad_place, page_token, row_place
from kettle_wire.ads.types import Ad
from kettle_wire.commands.collector import QUERY_ADS, QueryAds
from kettle_wire.rest.pool import AdOf, Ads, Cluster, Clusters, ListAds, ListClusters


class PoolQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, tables: JobTables, filters: Filters) -> None:
        self._bus: Final = bus
        self._collector = collector
        self._tables = tables
        self._filters = filters

    def ads(self, ad_type: str) -> Callable[[Asked], Awaitable[Answer]]:
        """Answers with the ads of a type."""

        async def answer(asked: Asked) -> Answer:
            parameters: ListAds = asked.parameters
            self._filters.read(parameters.filter)
            after = ad_place(parameters, parameters.page) if parameters.page else None
            request = QueryAds(
                type=ad_type,
                constraint=parameters.filter,
                projection=["Name", *parameters.fields] if parameters.fields else [],
                limit=parameters.limit,
                after=(after.type, after.name) if after else None,
            )
            page = await self._bus.call(QUERY_ADS, self._collector, request)
            viewer = Viewer.of(asked.reader, parameters.fields)
            ads = [AdOf(name=str(ad.get("Name", "")), attributes=viewer.sees(ad, "")) for ad in page.ads]
            following = page_token(parameters, AdPlace(*page.rest)) if page.rest else None
            return Answer(Ads(ads=ads, next=following))

        return answer

    async def clusters(self, asked: Asked) -> Answer:
        """Clusters in the queues."""
        parameters: ListClusters = asked.parameters
        after = row_place(parameters, parameters.page) if parameters.page else None
        async with self._tables.read() as reading:
            frames = await reading.frames()
            asked.require_changed(frames_tag(frames))
            rows = await reading.fetch(
                QUERIES["clusters"],
                parameters.owner,
                [SCHEDD + name for name in parameters.schedd],
                parameters.cluster,
                after.typed("timestamptz") if after else None,
                after.shard if after else None,
                after.cluster if after else None,
                parameters.limit + 1,
            )
            ads = await reading.ads_of_queued(rows[: parameters.limit])
        viewer = Viewer.of(asked.reader, (*COMMAND_ATTRIBUTES, "JobBatchName"))
        shown = [
            _cluster(row, viewer.sees(ad or {}, row["owner"]))
            for row, ad in zip(rows[: parameters.limit], ads, strict=True)
        ]
        following = None
        if len(rows) > parameters.limit:
            last = rows[parameters.limit - 1]
            place = RowPlace(microseconds(last["submitted_at"]), last["shard"], last["cluster"], 0)
            following = page_token(parameters, place)
        return Answer(Clusters(clusters=shown, next=following, frames=frames), frames_tag(frames))


def _cluster(row: asyncpg.Record, ad: Ad) -> Cluster:
    """A cluster with what is to be seen of the ad of one of its jobs."""
    name = ad.get("JobBatchName", "")
    return Cluster(
        id=f"{row['cluster']}@{row['shard'].removeprefix(SCHEDD)}",
        schedd=row["shard"].removeprefix(SCHEDD),
        cluster=row["cluster"],
        owner=row["owner"],
        submitted=row["submitted_at"],
        states={STATES[status]: count for status, count in row["states"]},
        name=value_text(name),
        command=short_command(ad),
    )
