"""What is asked about the pool: its machines, what people have used, and machines of one's own."""

from collections.abc import Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import Any, Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import Bus
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.prominence.application import Asked, Route, refused, reply
from kettle_services.gateway.rest.application import Asked as RestAsked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.ads.types import Ad
from kettle_wire.rest.usage import GET_USAGE, GetUsage, UsageAnswer, UsageOf

_SLOTS: Final = "DynamicSlot isnt true"
_FIELDS: Final = ("Cpus", "Memory", "TotalSlotCpus", "TotalSlotMemory", "Site", "Machine")
_DAY: Final = timedelta(days=1)
_FIRST: Final = datetime(MINYEAR + 1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(MAXYEAR - 1, 12, 31, tzinfo=UTC)
"""Around all other days a span of time has dates; to somebody they mean without a beginning, and without an end."""
_MIB_PER_GB: Final = 1000


class PoolQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, questions: Questions, people: PersonConnections) -> None:
        self._bus = bus
        self._collector = collector
        self._questions = questions
        self._people = people

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        return (
            Route("GET", "/resources", Level.READ, self.resources),
            Route("GET", "/accounting", Level.READ, self.accounting),
            Route("POST", "/token", Level.WRITE, self.token),
        )

    async def resources(self, _asked: Asked) -> web.StreamResponse:
        """What each machine has, and has free, the most free CPUs first."""
        ads = await all_ads(self._bus, self._collector, "Machine", _SLOTS, _FIELDS)
        existing = sorted(map(_machine, ads), key=lambda each: -each["free"]["cpus"])
        return reply({"existing": existing})

    async def accounting(self, asked: Asked) -> web.StreamResponse:
        """What was used from one day to another, both among them."""
        by_group = asked.text("by_group") == "true"
        since, last = _day(asked, "start"), _day(asked, "end")
        if last < since:
            raise refused("the parameter end is before start")
        parameters = GetUsage(
            group_by=["group"] if by_group else ["owner"],
            since=since,
            until=last + _DAY,
            owner=[] if asked.text("show_all_users") == "true" else [asked.person.name],
        )
        inside = RestAsked(asked.person, parameters, None, asked.request)
        found = await self._questions.ask(inside, GET_USAGE, parameters, UsageAnswer)
        axis = "group" if by_group else "owner"
        used = {row.key[axis]: _used(row) for row in found.rows}
        return reply({"usage": {"groups" if by_group else "users": used}})

    async def token(self, asked: Asked) -> web.StreamResponse:
        """With what a machine joins that runs the jobs of who asks only; iam says how many he may have."""
        async with self._people.of(asked.person) as client:
            made = await client.iam.own_machines.create_join_token()
        return reply({"token": made.token}, 201)


def _machine(ad: Ad) -> dict[str, Any]:
    def amounts(cpus: str, memory: str) -> dict[str, int]:
        return {"cpus": _amount(ad, cpus), "memory": _amount(ad, memory) // _MIB_PER_GB}

    return {
        "capacity": amounts("TotalSlotCpus", "TotalSlotMemory"),
        "free": amounts("Cpus", "Memory"),
        "site": str(ad.get("Site") or ad.get("Machine") or ""),
    }


def _amount(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _day(asked: Asked, name: str) -> datetime:
    text = asked.text(name)
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return min(max(day, _FIRST), _LAST)
    except ValueError as error:
        raise refused(f"the parameter {name} has to be a day, as in 2026-03-31, and is '{text}'") from error


def _used(row: UsageOf) -> dict[str, float]:
    """Hours of CPUs: those that were used, and those that were provided."""
    return {"cpuTime": row.cpu, "wallTime": row.core, "numberOfJobs": row.jobs}
