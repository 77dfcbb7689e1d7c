"""Tells when something has happened to a workflow that somebody watches."""

import asyncio
from collections.abc import Mapping
from typing import Final

from kettle.bus.ports import BusError
from kettle_services.gateway.pages.live import Watch
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.workflows.access import WorkflowAccess

_EVENTS: Final = "events"


class WorkflowWatch:
    """Of one workflow; before it has begun the tables of jobs tell."""

    def __init__(self, access: WorkflowAccess, asked: Asked, workflow: str, tables: Watch) -> None:
        self._access = access
        self._asked = asked
        self._workflow = workflow
        self._tables = tables
        self._place: tuple[str, int] | None = None

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """
        Wait until more has happened; how many events there are. Raises RequestRefused: there is no such workflow, or
        it is somebody else's.
        """
        if self._place is None:
            self._place = await self._access.own_place(self._asked, self._workflow)
        seen = frames.get(_EVENTS, 0)
        try:
            while (events := await self._access.views.after(*self._place, seen)) <= seen:
                if self._access.views.is_over(*self._place):
                    await asyncio.Event().wait()  # nothing happens any more
        except BusError:  # it has not begun, or nobody tells at the moment
            return await self._tables.behind(
                {shard: frame for shard, frame in frames.items() if shard != _EVENTS}
            )
        return {_EVENTS: events}
