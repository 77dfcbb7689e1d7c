"""What is asked about the use of machines: from the collector, of the whole pool at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import Bus
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.page_tokens import page_token, place_of
from kettle_services.gateway.rest.use_of_slots import ATTRIBUTES, chosen, machine_map, machine_uses
from kettle_wire.jobs import Name
from kettle_wire.rest.machine_use import AboutMachines, ListMachineUse, MachinesInUse, MachineUse

FRESH_S: Final = 2.0
"""
So old the answer about all machines may be: of ten thousand it takes the collector a part of a second, and many may look.
"""


class MachinePlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of a machine in a list: the value that is sorted by, and its name."""

    value: float | str
    name: Name


class _Seen(msgspec.Struct, frozen=True):
    uses: list[MachineUse]
    at: datetime
    until: float
    """On the monotonic clock."""


class MachineUseQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, filters: Filters) -> None:
        self._bus: Final = bus
        self._collector = collector
        self._filters = filters
        self._seen = _Seen([], datetime.fromtimestamp(0, UTC), 0.0)
        self._asking = asyncio.Lock()

    async def list(self, asked: Asked) -> Answer:
        """Machines, a page of them, and what all of them have together."""
        parameters: ListMachineUse = asked.parameters
        after = place_of(parameters, parameters.page, MachinePlace) if parameters.page else None
        seen = await self._found(parameters)
        key, backwards = _order(parameters.sort)
        ordered = sorted(seen.uses, key=lambda use: (key(use), use.name), reverse=backwards)
        if after is not None:
            place = (after.value, after.name)
            ordered = [
                use
                for use in ordered
                if ((key(use), use.name) < place if backwards else (key(use), use.name) > place)
            ]
        shown = ordered[: parameters.limit]
        following = None
        if len(ordered) > len(shown):
            following = page_token(parameters, MachinePlace(key(shown[-1]), shown[-1].name))
        return Answer(
            MachinesInUse(
                machines=shown,
                at=seen.at,
                states=dict(Counter(use.state for use in seen.uses)),
                cores=sum(use.cores for use in seen.uses),
                used=sum(use.used for use in seen.uses),
                next=following,
            )
        )

    async def map(self, asked: Asked) -> web.Response:
        """All machines as columns: half a megabyte for ten thousand, and packed a twentieth of that."""
        seen = await self._found(asked.parameters)
        body = msgspec.json.encode(machine_map(seen.uses, seen.at))
        response = web.Response(body=body, content_type="application/json")
        response.enable_compression()
        return response

    async def _found(self, parameters: AboutMachines) -> _Seen:
        self._filters.read(parameters.filter)
        if parameters.filter:
            seen = await self._ask(parameters.filter)
        else:
            async with self._asking:
                if time.monotonic() >= self._seen.until:
                    self._seen = await self._ask("")
                seen = self._seen
        return msgspec.structs.replace(seen, uses=chosen(seen.uses, parameters))

    async def _ask(self, constraint: str) -> _Seen:
        at = datetime.now(UTC)
        slots = await all_ads(self._bus, self._collector, "Machine", constraint, ATTRIBUTES)
        uses = await asyncio.to_thread(machine_uses, slots)
        return _Seen(uses, at, time.monotonic() + FRESH_S)


def _order(sort: str) -> tuple[Callable[[MachineUse], float | str], bool]:
    name = sort.removeprefix("-")
    keys: dict[str, Callable[[MachineUse], float | str]] = {
        "name": lambda use: use.name,
        "used": lambda use: use.used,
        "cores": lambda use: use.cores,
        "since": lambda use: use.since.timestamp(),
    }
    return keys[name], sort.startswith("-")
