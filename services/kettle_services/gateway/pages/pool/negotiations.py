"""The pages of negotiation cycles: what each gave and refused, and why."""

from typing import Final

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.negotiations import (
    GET_NEGOTIATION,
    LIST_NEGOTIATIONS,
    GetNegotiation,
    ListNegotiations,
    NegotiationDetail,
    Negotiations,
)
from kettle_wire.rest.route import Moment


class AskedNegotiations(ListNegotiations, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which cycles."""


class NegotiationsView(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles, the newest first."""

    asked: AskedNegotiations
    found: Negotiations
    longest: float
    """Seconds, of those on the page."""


class AskedNegotiation(GetNegotiation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which cycle."""

    as_of: Moment | None = None
    """A cycle is over when it is recorded: it is the same at any later moment."""


class NegotiationView(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle."""

    asked: AskedNegotiation
    found: NegotiationDetail


NEGOTIATIONS: Final = Page(
    "/negotiations",
    "Negotiation cycles",
    template="pool/negotiations.html",
    parameters=AskedNegotiations,
    link=Link("Pool", 40),
)
NEGOTIATION: Final = Page(
    "/negotiations/{cycle}",
    "Negotiation cycle",
    template="pool/negotiation.html",
    parameters=AskedNegotiation,
)


class NegotiationPages:
    """Shows them."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def negotiations(self, asked: Asked) -> Shown:
        """A page of cycles."""
        parameters: AskedNegotiations = asked.parameters
        found = await self._questions.ask(
            asked, LIST_NEGOTIATIONS, narrowed(parameters, ListNegotiations), Negotiations
        )
        longest = max((each.duration for each in found.negotiations), default=0.0)
        return Shown(NegotiationsView(asked=parameters, found=found, longest=longest), frames=found.frames)

    async def negotiation(self, asked: Asked) -> Shown:
        """One cycle."""
        parameters: AskedNegotiation = asked.parameters
        found = await self._questions.ask(
            asked, GET_NEGOTIATION, narrowed(parameters, GetNegotiation), NegotiationDetail
        )
        return Shown(
            NegotiationView(asked=parameters, found=found), title=f"Negotiation cycle {parameters.cycle}"
        )
