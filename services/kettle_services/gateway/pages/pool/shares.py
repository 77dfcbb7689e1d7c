"""The pages of who may have which part of the pool: fair share, and all submitters."""

from typing import Final

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.pool.past_use import owners_then
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.wording import stamp
from kettle_services.gateway.rest.application import Asked
from kettle_wire.jobs import Name
from kettle_wire.rest.route import Moment
from kettle_wire.rest.standings import (
    GET_FAIRSHARE,
    GET_FAIRSHARE_HISTORY,
    LIST_USERS,
    Fairshare,
    FairshareHistory,
    GetFairshare,
    GetFairshareHistory,
    ListUsers,
    Share,
    ShareGroup,
    Users,
)

_IN_NONE: Final = "<none>"
"""The group of who is in no other."""
_ROWS: Final = 13
"""Moments in the table that says what the chart draws."""


class AskedShares(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of whom, and of which time."""

    owner: list[Name] = []
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    """When the time ends that is drawn, unless something else is said."""


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """A group in the tree, with who is in it."""

    depth: int
    group: ShareGroup | None
    """None: of who is in none of the pool's groups."""
    shares: list[Share]


class SharesView(msgspec.Struct, frozen=True, kw_only=True):
    """How the pool is shared."""

    asked: AskedShares
    found: Fairshare
    rows: list[GroupRow]
    past: FairshareHistory
    """A few moments of what the chart draws."""

    @property
    def first(self) -> int:
        """The first of these moments at which somebody had jobs: before it there may have been no pool."""
        counts = [series for each in self.past.owners for series in (each.running, each.idle, each.held)]
        return next((at for at in range(len(self.past.times)) if any(series[at] for series in counts)), 0)

    @property
    def narrowing(self) -> dict[str, str]:
        """The parameters of the chart's data."""
        asked = self.asked
        until = asked.until or asked.as_of
        said = {
            "owner": ",".join(asked.owner),
            "since": stamp(asked.since) if asked.since else "",
            "until": stamp(until) if until else "",
        }
        return {name: value for name, value in said.items() if value}


FAIRSHARE: Final = Page(
    "/fairshare", "Fair share", template="pool/fairshare.html", parameters=AskedShares, link=Link("Pool", 20)
)


class AskedSubmitters(ListUsers, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which submitters."""

    as_of: Moment | None = None


class SubmittersView(msgspec.Struct, frozen=True, kw_only=True):
    """Submitters."""

    asked: AskedSubmitters
    found: Users


SUBMITTERS: Final = Page(
    "/submitters",
    "Submitters",
    template="pool/submitters.html",
    parameters=AskedSubmitters,
    link=Link("Pool", 30),
)


class SharePages:
    """Shows them."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def fairshare(self, asked: Asked) -> Shown:
        """Shares now, and jobs over time."""
        parameters: AskedShares = asked.parameters
        found = await self._questions.ask(asked, GET_FAIRSHARE, GetFairshare(), Fairshare)
        past = await self._questions.ask(
            asked,
            GET_FAIRSHARE_HISTORY,
            narrowed(
                parameters, GetFairshareHistory, points=_ROWS, until=parameters.until or parameters.as_of
            ),
            FairshareHistory,
        )
        return Shown(SharesView(asked=parameters, found=found, rows=group_rows(found), past=past))

    async def submitters(self, asked: Asked) -> Shown:
        """A page of submitters, or those who had jobs at a moment."""
        parameters: AskedSubmitters = asked.parameters
        if parameters.as_of is not None:
            return await owners_then(self._questions, asked, parameters.as_of, parameters.name)
        found = await self._questions.ask(asked, LIST_USERS, narrowed(parameters, ListUsers), Users)
        return Shown(SubmittersView(asked=parameters, found=found))


def group_rows(found: Fairshare) -> list[GroupRow]:
    """The tree of groups, each with the shares of who is in it; at the end those who are in none of them."""
    depth: dict[str, int] = {}
    rows: list[GroupRow] = []
    left = list(found.shares)
    for group in found.groups:
        name = group.standing.name
        depth[name] = 0 if group.parent is None else depth.get(group.parent, 0) + 1
        mine = [share for share in left if (share.group or _IN_NONE) == name]
        left = [share for share in left if share not in mine]
        rows.append(GroupRow(depth=depth[name], group=group, shares=mine))
    return [*rows, GroupRow(depth=0, group=None, shares=left)] if left else rows
