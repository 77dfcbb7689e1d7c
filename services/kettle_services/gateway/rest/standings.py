"""
What is asked about submitters and their shares: of the accountant, and how many jobs they had from the tables.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from kettle.bus.ports import Bus
from kettle.fairshare import shares_in_groups
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.page_tokens import NamedPlace, page_token, place_of
from kettle_services.gateway.rest.refusals import refused_field
from kettle_wire.commands.negotiator import (
    QUERY_PRIORITIES,
    GroupStanding,
    Priorities,
    Priority,
    QueryPriorities,
)
from kettle_wire.rest.standings import (
    Fairshare,
    FairshareHistory,
    GetFairshareHistory,
    ListUsers,
    OwnerHistory,
    Share,
    ShareGroup,
    User,
    Users,
)

JobCounts: TypeAlias = tuple[int, int, int]
"""Idle, running, held."""

_JOBS: Final = ("IdleJobs", "RunningJobs", "HeldJobs")
_NO_GROUP: Final = "none"
_BUSIEST: Final = 10
_DAY: Final = timedelta(days=1)
_LONGEST: Final = timedelta(days=90)
"""Older numbers are not kept."""


class StandingQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, negotiator: str, collector: str, tables: JobTables) -> None:
        self._bus = bus
        self._negotiator = negotiator
        self._collector = collector
        self._tables = tables

    async def users(self, asked: Asked) -> Answer:
        """Submitters with their priorities."""
        parameters: ListUsers = asked.parameters
        after = place_of(parameters, parameters.page, NamedPlace) if parameters.page else None
        jobs = await self._jobs()
        now = await self._priorities(jobs)
        wanted = [user for user in _users(now, jobs) if _is_wanted(parameters, user)]
        key = parameters.sort.removeprefix("-")
        descending = parameters.sort.startswith("-")
        ordered = sorted(wanted, key=lambda user: (getattr(user, key), user.name), reverse=descending)
        first = _behind(ordered, key, after, descending=descending) if after is not None else 0
        shown = ordered[first : first + parameters.limit]
        following = None
        if first + len(shown) < len(ordered):
            last = shown[-1]
            following = page_token(parameters, NamedPlace(getattr(last, key), "", last.name))
        return Answer(
            Users(
                at=_moment(now.at), half_life=now.half_life, users=shown, count=len(ordered), next=following
            )
        )

    async def fairshare(self, asked: Asked) -> Answer:
        """The tree of groups, and all shares."""
        del asked
        jobs = await self._jobs()
        now = await self._priorities(jobs)
        users = sorted(_users(now, jobs), key=lambda user: (user.group, -user.share, user.name))
        return Answer(
            Fairshare(
                at=_moment(now.at),
                half_life=now.half_life,
                groups=_tree(now.groups),
                shares=[
                    Share(
                        name=user.name,
                        group=user.group,
                        share=user.share,
                        part=user.part,
                        in_use=user.in_use,
                        effective=user.effective,
                    )
                    for user in users
                ],
            )
        )

    async def history(self, asked: Asked) -> Answer:
        """How many jobs owners had over time."""
        parameters: GetFairshareHistory = asked.parameters
        until = parameters.until or datetime.now(UTC)
        since = parameters.since or until - _DAY
        if since >= until:
            raise refused_field("/query/since", "the parameter since has to be before until")
        if until - since > _LONGEST:
            raise refused_field(
                "/query/since", "the numbers of jobs are kept for 90 days: name a shorter time"
            )
        step = (until - since) / (parameters.points - 1)
        times = [since + step * number for number in range(parameters.points)]
        async with self._tables.read() as reading:
            shards = list(await reading.frames())
            owners = list(dict.fromkeys(parameters.owner)) or [
                row["owner"]
                for row in await reading.fetch(QUERIES["busiest"], shards, since, until, _BUSIEST)
            ]
            rows = await reading.fetch(QUERIES["depth_at"], shards, owners, times)
        found = {
            owner: OwnerHistory(
                owner=owner, idle=[0] * len(times), running=[0] * len(times), held=[0] * len(times)
            )
            for owner in owners
        }
        for row in rows:
            for name in ("idle", "running", "held"):
                getattr(found[row["owner"]], name)[row["number"] - 1] = row[name]
        ordered = sorted(found.values(), key=lambda one: -sum(one.running))
        return Answer(FairshareHistory(times=times, owners=ordered))

    async def _jobs(self) -> dict[str, JobCounts]:
        """How many jobs each submitter has idle, running and held in the queues of all access points."""
        found: dict[str, JobCounts] = {}
        for ad in await all_ads(self._bus, self._collector, "Submitter", fields=_JOBS):
            name = str(ad["Name"])
            before = found.get(name, (0, 0, 0))
            idle, running, held = (
                count + int(str(ad.get(attribute, 0))) for count, attribute in zip(before, _JOBS, strict=True)
            )
            found[name] = (idle, running, held)
        return found

    async def _priorities(self, jobs: Mapping[str, JobCounts]) -> Priorities:
        """How all submitters stand, those too who have used nothing yet and have jobs."""
        known = await self._bus.call(QUERY_PRIORITIES, self._negotiator, QueryPriorities())
        new = sorted(jobs.keys() - {one.name for one in known.submitters})
        if not new:
            return known
        others = await self._bus.call(QUERY_PRIORITIES, self._negotiator, QueryPriorities(names=new))
        return msgspec.structs.replace(known, submitters=[*known.submitters, *others.submitters])


def _users(now: Priorities, jobs: Mapping[str, JobCounts]) -> list[User]:
    part = shares_in_groups(
        {one.name: one.effective for one in now.submitters}, {one.name: one.group for one in now.submitters}
    )
    total = math.fsum(one.weight for one in now.submitters) or 1.0
    return [
        _user(one, part[one.name], one.weight / total, jobs.get(one.name, (0, 0, 0)))
        for one in now.submitters
    ]


def _user(one: Priority, share: float, part: float, jobs: JobCounts) -> User:
    idle, running, held = jobs
    return User(
        name=one.name,
        group=one.group,
        effective=one.effective,
        priority=one.priority,
        factor=one.factor,
        factor_set=one.factor_set,
        share=share,
        part=part,
        slots=one.slots,
        in_use=one.weight,
        used=one.weighted_accumulated / 3600,
        begun=_moment(one.begun) if one.begun else None,
        last=_moment(one.last) if one.last else None,
        floor=one.floor or None,
        ceiling=one.ceiling if one.ceiling >= 0 else None,
        idle=idle,
        running=running,
        held=held,
    )


def _is_wanted(asked: ListUsers, user: User) -> bool:
    return (
        (not asked.name or user.name in asked.name)
        and (not asked.group or (user.group or _NO_GROUP) in asked.group)
        and (not asked.busy or bool(user.in_use or user.idle or user.running or user.held))
    )


def _behind(ordered: Sequence[User], key: str, after: NamedPlace, *, descending: bool) -> int:
    """Where the list goes on, also if who was last there is not there any more, or stands elsewhere."""
    value = after.typed("text" if key == "name" else "double precision")
    place = (value, after.name)
    for number, user in enumerate(ordered):
        mine = (getattr(user, key), user.name)
        if (mine < place) if descending else (mine > place):
            return number
    return len(ordered)


def _tree(groups: Sequence[GroupStanding]) -> list[ShareGroup]:
    """
    Groups by their names, whose dots are the branches; HTCondor's root `<none>` is above the first ones.
    """
    names = {group.name for group in groups}
    return [
        ShareGroup(parent=_parent(group.name, names), standing=group)
        for group in sorted(groups, key=lambda group: (group.name != _ROOT, group.name))
    ]


_ROOT: Final = "<none>"


def _parent(name: str, names: set[str]) -> str | None:
    if name == _ROOT:
        return None
    above = name.rpartition(".")[0]
    if above in names:
        return above
    return _ROOT if _ROOT in names else None


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
