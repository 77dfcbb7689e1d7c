"""
How machines were used, and by whom, at a moment of the past: by claims, and by counts of jobs, because ads of machines and priorities of
that time are recorded nowhere.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from kettle_services.gateway.pages.page import Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.claims import LIST_CLAIMS, Claims, ListClaims
from kettle_wire.rest.jobs import LIST_JOBS, Jobs, ListJobs, State


class ClaimsThen(msgspec.Struct, frozen=True, kw_only=True):
    """The slots that were claimed."""

    asked: ListClaims
    owner: Sequence[str]
    """By these alone; none: by anybody."""
    found: Claims
    slots: int
    machines: int


class OwnerThen(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs somebody had."""

    name: str
    counts: Mapping[State, int]


class OwnersThen(msgspec.Struct, frozen=True, kw_only=True):
    """Who had jobs in the queues, those with the most that ran first."""

    owners: Sequence[OwnerThen]


async def machines_then(
    questions: Questions, asked: Asked, moment: datetime, owner: list[str], limit: int, page: str
) -> Shown:
    """Claims of a moment, by machine; `owner`: only claims of these submitters."""
    wanted = ListClaims(as_of=moment, submitter=owner, sort="machine", limit=limit, page=page)
    counting = ListClaims(as_of=moment, submitter=owner, group_by=["machine"])
    found = await questions.ask(asked, LIST_CLAIMS, wanted, Claims)
    groups = (await questions.ask(asked, LIST_CLAIMS, counting, Claims)).groups or ()
    view = ClaimsThen(
        asked=wanted,
        owner=owner,
        found=found,
        slots=sum(group.count for group in groups),
        machines=len(groups),
    )
    return Shown(view, template="pool/machines_then.html", frames=found.frames)


async def owners_then(questions: Questions, asked: Asked, moment: datetime, owner: list[str]) -> Shown:
    """Owners of jobs at the end of the last full minute before a moment; `owner`: only these."""
    wanted = ListJobs(as_of=moment, owner=owner, group_by=["owner", "state"])
    found = await questions.ask(asked, LIST_JOBS, wanted, Jobs)
    counts: defaultdict[str, dict[State, int]] = defaultdict(dict)
    for group in found.groups or ():
        counts[group.key["owner"]][msgspec.convert(group.key["state"], State)] = group.count
    owners = [OwnerThen(name=name, counts=each) for name, each in counts.items()]
    owners.sort(key=lambda each: (-each.counts.get("running", 0), -sum(each.counts.values()), each.name))
    return Shown(OwnersThen(owners=owners), template="pool/submitters_then.html", frames=found.frames)
