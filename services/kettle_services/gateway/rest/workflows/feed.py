"""The events of one workflow as a stream."""

from collections.abc import AsyncGenerator

import msgspec
from aiohttp import web

from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.event_sender import EventSender, StreamCut, place_of_reader
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.happenings import happening
from kettle_services.gateway.rest.workflows.views import Watched, event_of
from kettle_wire.commands.dagman import LONGEST_WAIT_S
from kettle_wire.rest.workflow_views import FollowWorkflowEvents


class WorkflowFeed:
    """Sends them."""

    def __init__(self, access: WorkflowAccess, streams: Streams) -> None:
        """`streams`: how many there may be."""
        self._access = access
        self._views = access.views
        self._streams = streams

    async def follow(self, asked: Asked) -> web.StreamResponse:
        """Send what happens to a workflow, until that is over."""
        parameters: FollowWorkflowEvents = asked.parameters
        after = place_of_reader(asked, parameters.after)
        watched = await self._access.watched(asked, parameters.id)
        with self._streams.one_more(asked.person.name):
            sender = await EventSender.begun(asked)
            begins = watched.view.events if after is None else after
            return await sender.send_all(self._events(watched, begins))

    async def _events(self, watched: Watched, after: int) -> AsyncGenerator[bytes]:
        """Everything behind so many; raises StreamCut."""
        view = watched.view
        number = view.started.workflow
        while True:
            if view.ended is not None and after >= view.events:
                raise StreamCut("the workflow is over, and that was its last event")
            news = await self._views.news(watched.schedd, number, after, wait=LONGEST_WAIT_S)
            for recorded in news.events:
                after += 1
                told = happening(after, recorded.at / 1e6, event_of(recorded), view.plan.names)
                yield b"id: %d\ndata: %b\n\n" % (after, msgspec.json.encode(told))
            if view.events < after:
                await self._views.of(watched.schedd, number)
