"""
One's own routed jobs, all of them or those to which something has happened: made of what this process has read of everybody's events,
so that who asks often costs little.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle.client import Client
from kettle.routes.chain import CHAIN, chain_of
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.ce.questions import shown
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_hub import EventHub, Happening
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.codes import Universe
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId
from kettle_wire.rest.entrypoint import Chain
from kettle_wire.rest.entrypoint_jobs import Chains, ListChains
from kettle_wire.rest.problem import ProblemCode

ROUTED: Final = f"AwaitsRoute =?= true || JobUniverse == {Universe.GRID:d}"
"""True of a job that is or was to be routed, or is for a batch system."""
_SCHEDD: Final = "/query/schedd"


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed of one person's jobs behind a place."""

    clusters: frozenset[int]
    """All jobs of these may have."""
    jobs: dict[JobId, int]
    """Each with the place of the first change."""
    next: int
    """Everything up to here is in it."""


class ChainList:
    """Answers with them."""

    def __init__(self, people: PersonConnections, access_points: AccessPoints, hub: EventHub) -> None:
        self._people: Final = people
        self._access_points: Final = access_points
        self._hub: Final = hub

    async def list(self, asked: Asked) -> Answer:
        """All, or those behind a place."""
        parameters: ListChains = asked.parameters
        if not self._hub.began or self._hub.trouble:
            raise RequestRefused(
                503,
                ProblemCode.UNAVAILABLE,
                "the events of the pool are not read at the moment: try again",
                retry_after=1,
            )
        owner, recent = asked.person.name, self._hub.recent
        here = recent.last_of(owner)
        etag = f'"{self._hub.era}-{here}"'
        asked.require_changed(etag)
        since = parameters.since
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            if since is None or parameters.after or not recent.forgotten_of(owner) <= since <= recent.last:
                return Answer(await self._whole(there, owner, parameters, here), etag)
            changed = changed_behind(
                recent.of_owner(owner, since), there.pool.schedd, since, parameters.limit
            )
            reply = await _now(there, changed)
        return Answer(reply, etag if reply.next == here else "")

    async def _whole(self, there: Client, owner: str, asked: ListChains, here: int) -> Chains:
        begun, _, after = asked.after.partition(":")
        place = int(begun) if begun else here
        pages = there.pages(
            Select(owners=[owner], constraint=ROUTED),
            projection=list(CHAIN),
            limit=asked.limit,
            after=JobId.parse(after) if after else None,
        )
        ads = [ad async for page in pages for ad in page.jobs]
        jobs = chains(ads)
        more = f"{place}:{jobs[-1].id}" if len(jobs) == asked.limit else ""
        return Chains(jobs=jobs, next=place, whole=True, more=more)


def changed_behind(happenings: Iterable[Happening], schedd: str, since: int, limit: int) -> Changed:
    """What has changed of the jobs at one access point, not more than so many jobs and clusters."""
    clusters: set[int] = set()
    jobs: dict[JobId, int] = {}
    place = since
    for each in happenings:
        if each.cluster is not None and each.schedd == schedd:
            job = None if each.proc is None else JobId(each.cluster, each.proc)
            is_known = each.cluster in clusters if job is None else job in jobs
            if not is_known and len(clusters) + len(jobs) == limit:
                break
            if job is None:
                clusters.add(each.cluster)
            else:
                jobs.setdefault(job, each.sequence)
        place = each.sequence
    return Changed(clusters=frozenset(clusters), jobs=jobs, next=place)


async def _now(there: Client, changed: Changed) -> Chains:
    """
    The jobs as they are. What has left the queue and is not in the history yet is left for the next question: `next` is before what
    happened to the first of these.
    """
    select = Select(jobs=list(changed.jobs), clusters=list(changed.clusters))
    if not select.jobs and not select.clusters:
        return Chains(jobs=[], next=changed.next)
    found = await there.jobs(select, projection=[*CHAIN, "JobUniverse"])
    gone = changed.jobs.keys() - {_id(ad) for ad in found}
    place, lag = changed.next, 0

    def behind(frames: int) -> None:
        nonlocal lag
        lag = frames

    if gone:
        found += (left := await there.history(Select(jobs=sorted(gone)), limit=0, behind=behind))
        late = gone - {_id(ad) for ad in left}
        if late and lag:
            place = min(changed.jobs[job] for job in late) - 1
    return Chains(jobs=chains([ad for ad in found if is_routed(ad)]), next=place)


def is_routed(ad: Ad) -> bool:
    """What `ROUTED` says, of an ad that is here."""
    return ad.get("AwaitsRoute") is True or ad.get("JobUniverse") == Universe.GRID


def _id(ad: Ad) -> JobId:
    return JobId.parse(chain_of(ad).id)


def chains(ads: Sequence[Ad]) -> list[Chain]:
    """Each job once, in the order of their numbers."""
    by_id = {chain.id: chain for chain in map(chain_of, ads)}
    return [shown(by_id[name]) for name in sorted(by_id, key=JobId.parse)]
