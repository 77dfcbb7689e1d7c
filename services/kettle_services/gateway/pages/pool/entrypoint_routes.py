"""The page of routes: where the jobs of a compute entrypoint go, and how full each way is."""

from typing import Final

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.jobs import Name
from kettle_wire.rest.entrypoint import GET_ROUTES, GetRoutes, Routes
from kettle_wire.rest.route import Moment


class AskedRoutes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which entrypoint."""

    schedd: Name = ""
    """Its access point; empty: the pool's own."""
    as_of: Moment | None = None


class RoutesView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: AskedRoutes
    found: Routes | None
    trouble: str
    """Why nothing is known; empty: it is known."""


ROUTES_PAGE: Final = Page(
    "/routes",
    "Routes",
    template="pool/routes.html",
    parameters=AskedRoutes,
    link=Link("Pool", 17),
    only_now=True,
)


class RoutePages:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def routes(self, asked: Asked) -> Shown:
        """The routes in force; without an entrypoint, how there is one."""
        parameters: AskedRoutes = asked.parameters
        found, trouble = await self._questions.ask_or_say(
            asked, GET_ROUTES, GetRoutes(schedd=parameters.schedd), Routes
        )
        return Shown(RoutesView(asked=parameters, found=found, trouble=trouble))
