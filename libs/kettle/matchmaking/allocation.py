"""
Sharing the free slots out among submitters.

Each submitter may have a share of the pool, or of what its accounting group may have (`hierarchy`), in inverse proportion
to its effective priority (`shares`); spin by spin, the shares of those who do not need them flow to the others.  Each of
its autoclusters is served in its own order of priority, each on the slots that its jobs rank highest.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kettle.classad import NOTHING, Context
from kettle.classad.columnar import Spending
from kettle.matchmaking.candidates import NO_RANKS, Candidates, Ranking, Ranks, candidates
from kettle.matchmaking.concurrency_limits import Concurrency, LimitRules, Uses, WantedLimits
from kettle.matchmaking.demands import Allocation, Demand, Grant, Limit, Unmet
from kettle.matchmaking.gangs import Place, Places
from kettle.matchmaking.hierarchy import GroupShare, Hierarchy, Policy, Spent
from kettle.matchmaking.request import Request, quantized
from kettle.matchmaking.shares import Claimant, Purse, limits, ordered
from kettle.matchmaking.slots import Offer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]


class _Open:
    """A demand that is being served."""

    def __init__(self, demand: Demand, concurrency: Concurrency, context: Context) -> None:
        self.demand = demand
        self.request = Request(demand.job, context)
        self.uses = WantedLimits(demand.job)
        self.left = demand.count
        self.stuck = (self.request.fault or self.uses.fault) is not None
        self.limited = False
        """There are slots for it that its submitter may not have in this spin."""
        self.capped = False
        """More than its share keeps it from them."""
        self.limit: Limit = ""
        """What it is, if it is capped."""
        self.keeps = False
        """What there is for it is kept while others are served."""
        self._there = 0
        self._reached: tuple[str, ...] = ()
        self._granted: dict[tuple[object, ...], Grant] = {}
        self._concurrency = concurrency
        self._context = context
        self._spending = Spending()

    def serve(self, offer: Offer, ranking: Ranking, purse: Purse) -> None:
        """Take what the purse allows; `stuck` if nothing more is available, no matter what is allowed."""
        self.limited = purse.capped = False
        self._reached = ()
        if self.demand.is_whole:
            self._serve_whole_jobs(offer, ranking, purse)
            return
        for found in self._candidates(offer, ranking):
            self._serve(found, offer, purse)
            if not self.left:
                return
            if self.uses.fault:
                self.stuck = True
                return
            if self._reached and not self.uses.varies:
                break
            if self.limited and not self._affords(offer, purse):
                break
        self.stuck = not self.limited
        self.capped = self.limited and purse.capped
        if self._reached and not self.limited:
            self.stop("concurrency")

    def _candidates(self, offer: Offer, ranking: Ranking) -> Iterator[Candidates]:
        return candidates(
            self.demand.job,
            self.request,
            offer,
            ranking,
            self._context,
            self._spending,
            submitter=self.demand.submitter,
        )

    def _serve_whole_jobs(self, offer: Offer, ranking: Ranking, purse: Purse) -> None:
        """Take all slots of a job that needs several, or none; then those of the next one."""
        if self.keeps:
            offer.let_go()
        while self.left and (places := self._places_of_one(offer, ranking, purse)) is not None:
            nodes = sum(int(counts.sum()) for _, _, counts in places)
            for found, uses, counts in places:
                self._grant(found, uses, offer, counts, nodes)
                self._concurrency.take(uses, int(counts.sum()))
            self.left += nodes - self.demand.nodes  # what it takes besides was not counted
        self.stuck = bool(self.left) and not self.limited
        self.capped = self.limited and purse.capped
        if self.keeps and self.stuck:
            self.keep(offer, ranking)

    def _places_of_one(self, offer: Offer, ranking: Ranking, purse: Purse) -> list[Place] | None:
        """
        The slots of the next job, paid for: as many as it takes, or else as it needs; None: it gets none.
        """
        needed, most = self.demand.nodes, self.demand.nodes + self.demand.more
        places = self._places(offer, ranking, most)
        if needed < places.there and not self._can_pay(places, offer, purse):
            places = self._places(offer, ranking, needed)
        if places.there < needed:
            return None
        cost = self._cost_of_all(places, offer)
        if not self._can_pay(places, offer, purse):
            self.limited = True
            purse.refuse(np.array([cost]))
            return None
        purse.pay(cost)
        return places.most

    def _can_pay(self, places: Places, offer: Offer, purse: Purse) -> bool:
        return bool(purse.affords(np.array([self._cost_of_all(places, offer)]))[0])

    def _cost_of_all(self, places: Places, offer: Offer) -> float:
        return sum(map(partial(self._cost_of, offer), places.most))

    def keep(self, offer: Offer, ranking: Ranking) -> None:
        """Have the slots of one more job kept, as far as there are any."""
        self.keeps = True
        for found, _, counts in self._places(offer, ranking, self.demand.nodes).most:
            for position, (row, count) in enumerate(zip(found.rows.tolist(), counts.tolist(), strict=True)):
                if count:
                    offer.keep(row, self.request.amounts(found.asked, position), count)

    def _places(self, offer: Offer, ranking: Ranking, nodes: int) -> Places:
        """The slots of one more job of so many nodes, as far as there are any."""
        places = Places(nodes, near=self.demand.near)
        for found in self._candidates(offer, ranking):
            parts = self.uses.divided(
                found, self.demand.job, offer, self._context, self._spending, self._concurrency.room
            )
            for part, uses in parts:
                room = min(self._concurrency.room(uses), nodes)
                if places.add(part, uses, int(room), offer):
                    break
            if places.are_whole:
                break
        self._there = places.there
        return places

    def _cost_of(self, offer: Offer, place: Place) -> float:
        cores = quantized("Cpus", place.found.asked["Cpus"])
        each = offer.costs(place.found.rows, np.broadcast_to(cores, place.counts.shape))
        return float((each * place.counts).sum())

    def _serve(self, found: Candidates, offer: Offer, purse: Purse) -> None:
        """Take of these slots, until there is no job or nothing to pay with left."""
        parts = self.uses.divided(
            found, self.demand.job, offer, self._context, self._spending, self._concurrency.room
        )
        for part, uses in parts:
            self._take(part, uses, offer, purse)
            if not self.left or (self.limited and not self._affords(offer, purse)):
                return

    def stop(self, limit: Limit) -> None:
        """There is nothing for it, because of a limit."""
        self.capped, self.limit = True, limit

    def wanted(self, offer: Offer) -> float:
        """
        What all of its jobs count for at most, in any of the slots: of less than one counts for it would have nothing.
        """
        if self.stuck:
            return 0.0
        cores = self.request.fixed.get("Cpus")  # else it depends on the slot
        each = offer.most(None if cores is None else float(quantized("Cpus", cores)))
        return each * self.left * (self.demand.nodes + self.demand.more) / self.demand.nodes

    def _affords(self, offer: Offer, purse: Purse) -> bool:
        """Whether the purse could pay for a job on the cheapest slot."""
        cores = self.request.fixed.get("Cpus")  # else it depends on the slot, and may be none
        least = offer.least(0.0 if cores is None else float(quantized("Cpus", cores)))
        return bool(purse.affords(np.array([least]))[0])

    def _take(self, found: Candidates, uses: Uses, offer: Offer, purse: Purse) -> None:
        """Fill slots one after the other."""
        most = int(min(self.left, self._concurrency.room(uses)))
        if not most:
            self._reached = tuple(self._concurrency.reached(uses)) or self._reached
            return
        cores = quantized("Cpus", found.asked["Cpus"])
        cost = None if isinstance(cores, np.ndarray) else offer.cost(cores)
        if cost is None:
            costs = offer.costs(found.rows, np.broadcast_to(cores, found.room.shape))
            counts = self._picked(found.room, costs, most, purse)
        else:
            counts = self._filled(found.room, cost, most, purse)
        if counts.any():
            self._grant(found, uses, offer, counts)
            self._concurrency.take(uses, int(counts.sum()))
        if self.left and not self._concurrency.room(uses):
            self._reached = tuple(self._concurrency.reached(uses))

    def _filled(self, room: Integers, cost: float, most: int, purse: Purse) -> Integers:
        """How many jobs go to each slot if a job costs the same everywhere."""
        jobs = np.cumsum(room)
        wanted = min(most, int(jobs[-1]))
        allowed = purse.jobs(cost, wanted)
        self.limited |= allowed < wanted
        purse.pay(cost * allowed)
        last = int(np.searchsorted(jobs, allowed))
        counts = room[: last + 1].copy()
        counts[last] -= int(jobs[last]) - allowed
        return counts

    def _picked(self, room: Integers, costs: Reals, most: int, purse: Purse) -> Integers:
        """
        The slots if they cost different amounts: a slot that costs too much is skipped.

        All slots up to the one that cannot be filled are filled at once; what the purse has left after that one is less
        than half of what it had, so this soon ends for any number of slots.
        """
        counts, left = np.zeros_like(room), most
        rows = np.flatnonzero(purse.affords(costs))
        while left and len(rows):
            jobs = np.cumsum(room[rows])
            filled = int(np.searchsorted(jobs, left, side="right"))
            filled = min(filled, purse.fits(np.cumsum(room[rows] * costs[rows])))
            if filled:
                whole = rows[:filled]
                counts[whole] = room[whole]
                left -= int(jobs[filled - 1])
                purse.pay(float((room[whole] * costs[whole]).sum()))
            if filled < len(rows) and left:
                row = rows[filled]
                counts[row] = taken = purse.jobs(float(costs[row]), min(left, int(room[row])))
                left -= taken
                purse.pay(float(costs[row]) * taken)
            rows = rows[filled + 1 :]
            rows = rows[purse.affords(costs[rows])]
        if left:
            refused = costs[counts < room]
            self.limited |= bool(len(refused))
            purse.refuse(refused)
        return counts

    def _grant(self, found: Candidates, uses: Uses, offer: Offer, counts: Integers, nodes: int = 1) -> None:
        """`nodes`: slots that a job gets together."""
        rows = found.rows[: len(counts)]
        if not self.request.varying:
            given = counts > 0
            offer.take_each(rows[given], self.request.amounts(found.asked, 0), counts[given])
        for position, (row, count) in enumerate(zip(rows.tolist(), counts.tolist(), strict=True)):
            if not count:
                continue
            amounts = self.request.amounts(found.asked, position)
            if self.request.varying:
                offer.take(row, amounts, count)
            key = row, nodes, *amounts.asked.values(), *uses.items()
            before = self._granted.get(key)
            total = count if before is None else before.count + count
            self._granted[key] = Grant(
                demand=self.demand, row=row, count=total, amounts=amounts, uses=uses, nodes=nodes
            )
        self.left -= int(counts.sum())

    @property
    def grants(self) -> Iterable[Grant]:
        """What it was given, one of each slot and amounts: another spin may find less there to ask for."""
        return self._granted.values()

    def unmet(self) -> Unmet:
        """What is left."""
        return Unmet(
            demand=self.demand,
            count=self.left // self.demand.nodes,
            fault=self.uses.fault or self.request.failure(),
            limit=self.limit if self.capped else "",
            reached=self._reached,
            there=self._there,
            kept=self.keeps,
        )


def allocate(
    offer: Offer,
    demands: Iterable[Demand],
    context: Context = NOTHING,
    *,
    claimants: Iterable[Claimant] = (),
    pie: float | None = None,
    groups: Policy | None = None,
    used: Mapping[str, float] | None = None,
    concurrency: Concurrency | None = None,
    ranks: Ranks = NO_RANKS,
    keeps: tuple[str, str, int] | None = None,
) -> Allocation:
    """
    Share an offer (which is changed by it) among `demands`, given in each submitter's order of priority.

    `claimants` are all submitters, also those who want nothing; a submitter that is not among them is new. `pie` is the
    weight of the whole pool; None: what is offered, and what the claimants use. With `groups` it is divided among these
    first; `used` is then what each submitter has, also of those who are not claimants. `concurrency` is the current use
    of concurrency limits; what is given here is added to it. `ranks` are the pool's, before and after those of the
    jobs. `keeps` is the submitter, schedd and autocluster of jobs that need several slots each: what there is for one of them
    nobody else gets. No content of an ad makes it fail: what cannot be evaluated does not match.
    """
    concurrency = concurrency or Concurrency(LimitRules(), {})
    queues: dict[str, list[_Open]] = {}
    for demand in demands:
        queues.setdefault(demand.submitter, []).append(_Open(demand, concurrency, context))
    known = {one.name: one for one in claimants}
    known |= {name: Claimant(name=name) for name in queues if name not in known}
    if pie is None:
        pie = offer.weight + sum(one.used for one in known.values())
    ranking = Ranking(offer, context, ranks)
    for one in (one for queue in queues.values() for one in queue if keeps is not None):
        if (one.demand.submitter, one.demand.schedd, one.demand.autocluster) == keeps and not one.stuck:
            one.keep(offer, ranking)
    sharing = _Sharing(offer, ranking, queues, known)
    shares: list[GroupShare] = []
    if groups is None or len(groups.tree) == 1:
        sharing.run(list(known), pie, math.inf)
    else:
        uses = {name: one.used for name, one in known.items()}
        wanted = {name: sharing.wanted(name) for name in known}
        hierarchy = Hierarchy(groups, pie=pie, used={**uses, **(used or {})}, wanted=wanted, context=context)
        sharing.refuse()
        # Nobody has to make room for what is only left over.
        shares = hierarchy.share(sharing.run, rest=offer.tenants is None)
    everything = [one for queue in queues.values() for one in queue]
    return Allocation(
        grants=[grant for one in everything for grant in one.grants],
        unmet=[one.unmet() for one in everything if one.left],
        taken=sharing.taken(),
        groups=shares,
    )


class _Sharing:
    """Spins, until nobody gets anything more."""

    def __init__(
        self,
        offer: Offer,
        ranking: Ranking,
        queues: dict[str, list[_Open]],
        claimants: dict[str, Claimant],
    ) -> None:
        self._offer = offer
        self._ranking = ranking
        self._queues = queues
        self._claimants = claimants
        self._used = {name: one.used for name, one in claimants.items()}
        self._pie = 0.0
        self._room = math.inf

    def refuse(self) -> None:
        """Until a group is served its submitters may have nothing."""
        for queue in self._queues.values():
            for one in queue:
                one.stop("quota")

    def taken(self) -> dict[str, float]:
        """What each was given."""
        given = {name: self._used[name] - one.used for name, one in self._claimants.items()}
        return {name: weight for name, weight in given.items() if weight}

    def wanted(self, name: str) -> float:
        """What a submitter wants besides what it has, as far as its ceiling lets it have it."""
        wants = sum(one.wanted(self._offer) for one in self._queues.get(name, ()))
        return min(wants, max(0.0, self._claimants[name].ceiling - self._used[name]))

    def run(self, members: Sequence[str], pie: float, room: float) -> Spent:
        """
        The round of the floors, then rounds as long as they give something, until all together have taken the `room`.

        `pie` is what their shares are parts of.

        HTCondor begins a round in each cycle; here the next one follows at once, so no slot waits for it.
        """
        names = list(members)
        self._pie, self._room = pie, room
        before = sum(self._used[name] for name in names)
        below = [name for name in names if self._used[name] < self._claimants[name].floor]
        if below:
            below.sort(key=lambda name: (self._used[name] - self._claimants[name].floor, name))
            self._spin(names, below, first=True, floors=True)
        if self._offer.tenants is not None:
            # What some do not want is not a reason to preempt others: only submitters with less than their own share
            # preempt.
            present = self._present(names)
            self._spin(
                names, ordered(present, self._used, limits(present, self._used, self._pie)), first=True
            )
        else:
            while names and self._round(names):
                pass
        if self._offer.any_left and self._room < self._offer.smallest:
            for one in (one for name in members for one in self._queues.get(name, ())):
                if not one.stuck:
                    one.stop("quota")
        # Who preempts is served once, up to its share: it may have nothing that it did not take.
        wanted = 0.0 if self._offer.tenants is not None else sum(map(self.wanted, members))
        return Spent(sum(self._used[name] for name in members) - before, wanted)

    def _round(self, names: list[str]) -> bool:
        """
        Spins until one gives nothing and leaves all in the list; whether there is more to give in another round.
        """
        given, first = False, True
        present = self._present(names)
        order = ordered(present, self._used, limits(present, self._used, self._pie))
        while names and self._offer.any_left:
            before = len(names)
            still = set(names)
            spent = self._spin(names, [name for name in order if name in still], first=first)
            given |= spent
            if not spent and len(names) == before:
                break
            first = False
        return given and self._offer.any_left

    def _present(self, names: Iterable[str]) -> list[Claimant]:
        return [self._claimants[name] for name in names]

    def _spin(self, names: list[str], order: Iterable[str], *, first: bool, floors: bool = False) -> bool:
        """One spin; who can get no more leaves `names`. Whether anything was given."""
        limit = limits(self._present(names), self._used, self._pie)
        if floors:
            limit = {name: min(self._claimants[name].floor, most) for name, most in limit.items()}
        left, smallest, given = sum(limit.values()), self._offer.smallest, False
        for name in order:
            ceiling = self._claimants[name].ceiling - self._used[name]
            headroom = min(ceiling, self._room)
            bound: Limit = "ceiling" if ceiling <= self._room else "quota"
            queue = [one for one in self._queues.get(name, ()) if one.left and not one.stuck]
            if not queue or headroom <= 0 or headroom < smallest:
                for one in queue:
                    one.stop(bound)
                names.remove(name)
                continue
            if not first and min(limit[name], left) < smallest:
                continue
            most = min(limit[name], left)
            if self._offer.tenants is not None and most < headroom:
                # Who makes room for another must not have to for a part of a share.
                headroom, bound = most, "share"
            purse = Purse(most, headroom)
            before = sum(one.left for one in queue)
            for one in queue:
                one.limit = bound
                one.serve(self._offer, self._ranking, purse)
            self._used[name] += purse.spent
            self._room -= purse.spent
            left -= purse.spent
            given |= sum(one.left for one in queue) < before
            if all(one.stuck or not one.left or (one.capped and not purse.spent) for one in queue):
                names.remove(name)  # what its ceiling does not let it have is for the others
        return given
