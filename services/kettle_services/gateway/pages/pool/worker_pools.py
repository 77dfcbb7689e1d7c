"""
The pages of pools of workers: all of them, and each one with its machines, its offers and the reasons of the plan.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final, Literal

import msgspec

from kettle.client.explanations.worker_pools import (
    BOUNDS,
    jobs_sentence,
    machines_sentence,
    obstacle_words,
    removal_sentence,
    sleep_sentence,
    wake_sentence,
)
from kettle.worker_pools.texts import money_text
from kettle_services.gateway.pages.page import FromThePast, Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.events.plan import Bound, WaitingJobs
from kettle_wire.rest.route import Moment
from kettle_wire.rest.worker_pools import (
    GET_MACHINES_OVER_TIME,
    GET_PLAN,
    GET_POOL,
    LIST_LEASES,
    LIST_POOLS,
    GetMachinesOverTime,
    GetPlan,
    GetPool,
    Leases,
    ListLeases,
    ListPools,
    MachinesOverTime,
    OfferStanding,
    Plan,
    Pool,
    PoolAtAGlance,
    Pools,
)
from kettle_wire.worker_pools import Name, Offer, PoolKind

Series = Literal["wanted", "coming", "ready"]

_MOST_LEASES: Final = 500
_MOST_KINDS: Final = 30
"""So many kinds of jobs are shown; the interface has all."""
_WIDE: Final = 1000
_HIGH: Final = 100
_ROWS: Final = 13
"""Moments in the table that says what the picture draws."""


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pool at a glance."""

    pool: PoolAtAGlance
    spent: str
    decision: str
    """What the last plan has decided, and what bound it."""


class PoolsView(msgspec.Struct, frozen=True, kw_only=True):
    """All pools of workers."""

    rows: Sequence[PoolRow]
    trouble: str
    """Why nobody knows; empty: it is known."""


class AskedPool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pool, and which time is drawn."""

    pool: Name
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None


class OfferRow(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, and how it does."""

    offer: Offer
    standing: OfferStanding
    price: str


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one kind, what is done for them, and what is in the way."""

    waiting: WaitingJobs
    done: str
    obstacles: Sequence[tuple[str, datetime | None]]
    """What it is, and when it is tried again."""


class Line(msgspec.Struct, frozen=True):
    """One series of the picture."""

    name: Series
    points: str
    """Of a polyline in a field of 1000 by 100."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """Machines over time."""

    lines: Sequence[Line]
    most: int
    rows: Sequence[tuple[datetime, int, int, int]]
    """A few moments with what was wanted, came and was ready."""
    since: datetime
    until: datetime
    complete_since: datetime | None


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    """One pool of workers."""

    asked: AskedPool
    pool: Pool
    row: PoolRow
    offers: Sequence[OfferRow]
    plan: Plan | None
    """None: none was made yet."""
    kinds: Sequence[Kind]
    more_kinds: int
    machines: Sequence[str]
    removals: Sequence[str]
    powered: Sequence[str]
    """Which sleeping machines are woken, and which idle ones go to sleep."""
    leases: Leases
    picture: Picture | None
    """None: nobody knows."""
    trouble: str
    names: ClassVar[Sequence[Series]] = ("wanted", "coming", "ready")


POOLS: Final = Page(
    "/pools",
    "Pools of workers",
    template="pool/worker_pools.html",
    parameters=FromThePast,
    link=Link("Pool", 15),
    only_now=True,
)
POOL: Final = Page(
    "/pools/{pool}",
    "Pool of workers",
    template="pool/worker_pool.html",
    parameters=AskedPool,
    only_now=True,
)


class WorkerPoolPages:
    """Shows them."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def pools(self, asked: Asked) -> Shown:
        """All of them; without a scaler, why there are none and how to begin."""
        found, trouble = await self._questions.ask_or_say(asked, LIST_POOLS, ListPools(), Pools)
        rows = [row_of(each) for each in found.pools] if found is not None else []
        return Shown(PoolsView(rows=rows, trouble=trouble))

    async def pool(self, asked: Asked) -> Shown:
        """One; raises RequestRefused if there is none of that name."""
        parameters: AskedPool = asked.parameters
        name = parameters.pool
        pool = await self._questions.ask(asked, GET_POOL, GetPool(pool=name), Pool)
        leases = await self._questions.ask(
            asked, LIST_LEASES, ListLeases(pool=name, limit=_MOST_LEASES), Leases
        )
        plan, _ = await self._questions.ask_or_say(asked, GET_PLAN, GetPlan(pool=name), Plan)
        span = GetMachinesOverTime(pool=name, since=parameters.since, until=parameters.until)
        past, trouble = await self._questions.ask_or_say(
            asked, GET_MACHINES_OVER_TIME, span, MachinesOverTime
        )
        kinds = kinds_of(plan.waiting, name) if plan is not None else []
        by_name = {each.offer: each for each in pool.offers}
        view = PoolView(
            asked=parameters,
            pool=pool,
            row=row_of(pool.summary),
            offers=[
                OfferRow(
                    offer=each,
                    standing=by_name[each.name],
                    price=money_text(each.price, each.currency) if each.price else "",
                )
                for each in pool.pool.offers
            ],
            plan=plan,
            kinds=kinds[:_MOST_KINDS],
            more_kinds=max(0, len(kinds) - _MOST_KINDS),
            machines=[machines_sentence(each) for each in pool.summary.planned],
            removals=[
                removal_sentence(each)
                for each in (plan.removals if plan is not None else ())
                if each.pool == name
            ],
            powered=[
                *(wake_sentence(each) for each in (plan.wakes if plan is not None else ())),
                *(sleep_sentence(each) for each in (plan.sleeps if plan is not None else ())),
            ],
            leases=leases,
            picture=drawn(past) if past is not None else None,
            trouble=trouble,
        )
        return Shown(view, title=f"Pool of workers {name}")


def row_of(pool: PoolAtAGlance) -> PoolRow:
    """A pool at a glance, in words."""
    spent = money_text(round(pool.spent, 4), pool.currency) if pool.currency else ""
    if pool.budget:
        spent += f" of {money_text(pool.budget, pool.currency)}"
    return PoolRow(pool=pool, spent=spent, decision=decision(pool))


def decision(pool: PoolAtAGlance) -> str:
    """What the last plan has decided about a pool, and what bound it."""
    if pool.standing != "active":
        return (
            f"{pool.standing}{f' by {pool.by}' if pool.by else ''}{f': {pool.reason}' if pool.reason else ''}"
        )
    ordered = sum(each.machines for each in pool.planned)
    verb = "woken" if pool.kind == PoolKind.STATIC else "ordered"
    kept_back = sum(max(0, each.wanted - each.machines) for each in pool.planned)
    bounds = dict.fromkeys(BOUNDS[each.bound] for each in pool.planned if each.bound is not Bound.NEED)
    if not ordered and not kept_back:
        return "no more machines are needed"
    said = [f"{ordered} {verb}"] if ordered else []
    said += [f"{kept_back} more wanted"] if kept_back else []
    return ", ".join(said) + (f": {'; '.join(bounds)}" if bounds else "")


def kinds_of(waiting: Sequence[WaitingJobs], pool: str) -> list[Kind]:
    """The kinds of jobs of a plan, with what keeps them from the machines of one pool."""
    return [
        Kind(
            waiting=each,
            done=each.fault or jobs_sentence(each),
            obstacles=[
                (
                    f"{one.offer}: {obstacle_words(one)}",
                    datetime.fromtimestamp(one.until, UTC) if one.until else None,
                )
                for one in each.obstacles
                if one.pool == pool
            ],
        )
        for each in waiting
    ]


def drawn(past: MachinesOverTime) -> Picture:
    """Steps of each series, as high as the largest number of all, and a few moments as numbers."""
    series: dict[Series, list[int]] = {"wanted": past.wanted, "coming": past.coming, "ready": past.ready}
    most = max((number for each in series.values() for number in each), default=0)
    last = len(past.times) - 1
    rows = [round(number * last / (_ROWS - 1)) for number in range(_ROWS)] if last else [0]
    return Picture(
        lines=[Line(name, _steps(numbers, max(1, most))) for name, numbers in series.items()],
        most=most,
        rows=[
            (past.times[at], past.wanted[at], past.coming[at], past.ready[at]) for at in dict.fromkeys(rows)
        ],
        since=past.times[0],
        until=past.times[-1],
        complete_since=past.complete_since,
    )


def _steps(numbers: Sequence[int], most: int) -> str:
    """Machines are counted: there is nothing between two numbers."""
    points: list[str] = []
    height: float | None = None
    for at, number in enumerate(numbers):
        x = round(_WIDE * at / max(1, len(numbers) - 1), 1)
        y = round(_HIGH - _HIGH * number / most, 1)
        if height is not None and y != height:
            points.append(f"{x},{height}")
        if height != y or at == len(numbers) - 1:
            points.append(f"{x},{y}")
        height = y
    return " ".join(points)
