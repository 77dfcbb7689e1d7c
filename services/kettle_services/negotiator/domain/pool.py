"""The pool as the negotiator sees it: the newest ads, less what it has given away since they were made."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kettle.classad import ClassAd
from kettle.classad.columnar import Table
from kettle.jobs.nodes import SAME_GROUP
from kettle.matchmaking import Amounts, Claimant, Demand, Grant, Offer, cost_of
from kettle_services.negotiator.domain.asked_attributes import AskedAttributes
from kettle_services.negotiator.domain.concurrency_limits import SETTLES, Pendings
from kettle_services.negotiator.domain.slot_states import SlotStates, user_of
from kettle_services.negotiator.domain.unshown_matches import UnshownMatch, UnshownMatches
from kettle_wire import subjects
from kettle_wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd
from kettle_wire.commands.startd import Occupied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    import numpy.typing as npt

    from kettle_services.negotiator.domain.accountant import Standing, Use
    from kettle_wire.ads import Ad

_PULSE: Final = frozenset({"MyCurrentTime", "LastHeardFrom", "UpdateSequenceNumber"})
"""What differs in every ad of a slot in which nothing has changed."""

_CLAIM: Final = "PublicClaimId"


class Given(msgspec.Struct):
    """What of a slot was matched since its last ad; believed until `until` (the caller's clock)."""

    taken: list[tuple[str, Amounts, int]]
    """Submitter, what a job takes, and how many jobs."""
    until: float


class Pool:
    """
    Ads by the key under which they came; an ad that comes replaces what was assumed to be left of its slot.

    `stirred` is whether a match may be possible that was not when somebody last set it to false.
    """

    def __init__(self) -> None:
        self.slots = Table(quiet=_PULSE)
        self.secrets: dict[str, SlotSecret] = {}
        self.states: Final = SlotStates(self.slots, self.secrets)
        """What is free and in use, as the ads say it."""
        self.submitters: dict[str, SubmitterAd] = {}
        self._given: dict[str, Given] = {}
        self._unshown = UnshownMatches()
        self._promised: dict[tuple[str, int], tuple[float, float]] = {}
        self.pendings = Pendings()
        """Matches that use concurrency limits, of which their schedds have not spoken yet."""
        self.asked: Final = AskedAttributes()
        """What the machines ask of jobs: their schedds have to show it."""
        self.stirred = True

    # -- updates ------------------------------------------------------------------------------------------------

    def slot(self, key: str, ad: Ad | None) -> None:
        """A slot's ad came, or went."""
        if ad is not None and self._unshown.awaits(machine := _machine(key)):
            self._show(machine, key, ad)
        self.stirred |= self._given.pop(key, None) is not None
        before = self.slots.news
        if ad is not None:
            self.slots.put(key, ad)
        elif key in self.slots:
            self.slots.remove(key)
        if self.slots.news != before:
            self.stirred = True
            self.states.note(key)
            if ad is not None:
                self.asked.note(ad)

    def _show(self, machine: str, key: str, ad: Ad) -> None:
        """Note a claim that a slot's ad is the first to show."""
        user = user_of(ad.get)
        before: tuple[str, object] = "", None
        if key in self.slots:
            row = self.slots.row(key)
            before = user_of(partial(self.slots.value, row)), self.slots.value(row, _CLAIM)
        if user and (user, ad.get(_CLAIM)) != before:
            self._unshown.shown(machine, user)

    def forget_machine(self, machine: str) -> None:
        """
        Nothing of a machine is matched, by the token of its name, before its slots are advertised again.
        """
        for key in [each for each in self.slots.keys if _machine(each) == machine and each in self.slots]:
            self.slot(key, None)

    def secret(self, key: str, secret: SlotSecret | None) -> None:
        """A slot's private ad came, or went."""
        before = self.secrets.pop(key, None)
        if secret is not None:
            self.secrets[key] = secret
        if secret != before:
            self.stirred = True
            self.states.note(key)

    def secret_of(self, row: int) -> SlotSecret:
        """Which startd a slot belongs to, and what proves to it that it was matched."""
        return self.secrets[self.slots.keys[row]]

    def occupied(self, row: int) -> Occupied:
        """A slot whose claim is to make room together with others."""
        return Occupied(self.name_of(row), self.secret_of(row).capability)

    def parent_of(self, row: int) -> int:
        """
        The row of the partitionable slot that a dynamic one is a part of, if that is of the same startd; else -1.
        """
        part = self.secret_of(row)
        slot = subjects.slot_key(part.startd, f"slot{self.slots.value(row, 'SlotID')}@{part.startd}")
        whole = self.secrets.get(slot)
        return (
            self.slots.row(slot)
            if whole is not None and whole.startd == part.startd and slot in self.slots
            else -1
        )

    def name_of(self, row: int) -> str:
        """What a slot calls itself."""
        name = self.slots.value(row, "Name")
        return name if isinstance(name, str) else self.slots.keys[row]

    def submitter(self, key: str, ad: SubmitterAd | None) -> None:
        """A submitter's ad came, or went: it counts in what its schedd is doing with matches already."""
        unshown = self._unshown_of(ad.name) if ad is not None else 0.0
        before = self.submitters.pop(key, None)
        if ad is not None:
            self.submitters[key] = ad
            self.stirred |= self._unshown_of(ad.name) < unshown  # there is room for somebody
        self.stirred |= self._asks_more(key, before, ad)
        for promised in [p for p in self._promised if p[0] == key]:
            del self._promised[promised]

    def _asks_more(self, key: str, before: SubmitterAd | None, ad: SubmitterAd | None) -> bool:
        """Whether there is demand in an ad that was not there before, or had been promised a match."""
        if ad is None:
            return before is not None and bool(before.limits)
        if self.pendings.freed(before, ad):
            return True  # what one has not any more another may have
        if before is None or (before.name, before.schedd) != (ad.name, ad.schedd):
            return bool(ad.requests)
        known = {request.autocluster: request for request in before.requests}
        for request in ad.requests:
            old = known.get(request.autocluster)
            promised, _ = self._promised.get((key, request.autocluster), (0, 0.0))
            if old is None or old.ad != request.ad or _slots(request) > _slots(old) - promised:
                return True
        return False

    # -- what is offered and asked -----------------------------------------------------------------------------------

    def offer(self) -> Offer:
        """
        Slots that may be matched, without what was given away.

        `State` is the startd's word, so it is taken as it stands: an expression there could make every cycle slow.
        """
        offer = Offer(self.slots, self.free_rows())
        for key, given in self._given.items():
            for _, amounts, count in given.taken:
                offer.take(self.slots.row(key), amounts, count)
        return offer

    def free_rows(self) -> npt.NDArray[np.int64]:
        """
        The rows of slots that can be matched and that nobody has claimed, in the order in which they are filled.
        """
        return self.states.free()

    def preemptible(self) -> npt.NDArray[np.int64]:
        """
        Rows of slots whose job may have to make room for another.

        Their startds say so with a secret for them, which only those have that rank jobs at all or let priorities count.
        """
        return self._not_given(self.states.claimed())

    def in_use_by_jobs(self) -> npt.NDArray[np.int64]:
        """Rows of slots that somebody has claimed, but of those that were given to somebody else by now."""
        return self._not_given(np.flatnonzero(self.slots.says("State", "Claimed")))

    def _not_given(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        given = self.rows_given()
        return rows[~np.isin(rows, given)] if given else rows

    def rows_given(self) -> list[int]:
        """Rows of slots that something was given of since their last ads."""
        return [self.slots.row(key) for key in self._given if key in self.slots]

    def machines(self) -> npt.NDArray[np.int64]:
        """The rows of all slots that are not carved out of others, busy or not: what the pool could do."""
        return np.flatnonzero(~self.slots.truths("DynamicSlot"))

    @property
    def weight(self) -> float:
        """What the whole pool counts for, used or not."""
        return self.states.weight

    def used(self, recorded: AbstractSet[str] = frozenset()) -> dict[str, float]:
        """
        What every submitter has or was given, in slot weights, also those who ask for nothing.

        A startd's word alone makes nobody known, so a made-up name uses up no group's quota: only who is at work counts, and
        who was when that was last `recorded`.
        """
        used = {name: use.weight for name, use in self.in_use_of_known(recorded).items()}
        ads: dict[str, list[SubmitterAd]] = {name: [] for name in self._unshown.names}
        for ad in self.submitters.values() if ads else ():
            if ad.name in ads:
                ads[ad.name].append(ad)
        for name, own in ads.items():
            used[name] = used.get(name, 0.0) + self._unshown.used(name, own, self.states.slots_of(name))
        return used

    def in_use_of_known(self, recorded: AbstractSet[str]) -> dict[str, Use]:
        """
        What the slots say that submitters have.

        A startd's word alone makes nobody known: a schedd has to speak of them, or matches were given to them, or they
        were in use when that was last `recorded` and their schedd is away.
        """
        known = self.submitters_at_work() | recorded
        return {name: use for name, use in self.states.usage().items() if name in known}

    def claimants(self, used: Mapping[str, float], standings: Mapping[str, Standing]) -> list[Claimant]:
        """All submitters with what they have, by name."""
        return [
            _claimant(name, used.get(name, 0.0), standings.get(name))
            for name in sorted({ad.name for ad in self.submitters.values()})
        ]

    def submitters_at_work(self) -> set[str]:
        """
        Submitters that may be using something, as reported by a schedd or by matches of this negotiator.
        """
        advertised = {ad.name for ad in self.submitters.values()}
        matched = {name for given in self._given.values() for name, _, _ in given.taken}
        return {*advertised, *matched, *self._unshown.names}

    def _unshown_of(self, name: str) -> float:
        """What was matched to a submitter and no ad of a slot shows yet."""
        if name not in self._unshown.names:
            return 0.0
        ads = (ad for ad in self.submitters.values() if ad.name == name)
        return self._unshown.used(name, ads, self.states.slots_of(name))

    def demands(self) -> list[Demand]:
        """Open demand by submitter, each one's requests in its own order."""
        demands: list[Demand] = []
        for key in self._by_need():
            ad = self.submitters[key]
            for request in ad.requests:
                promised, _ = self._promised.get((key, request.autocluster), (0, 0.0))
                count = _slots(request) - round(promised)
                if count > 0:
                    demands.append(
                        Demand(
                            submitter=ad.name,
                            schedd=ad.schedd,
                            autocluster=request.autocluster,
                            count=count,
                            job=ClassAd.from_wire(request.ad),
                            nodes=request.nodes,
                            more=request.more,
                            near=request.nodes + request.more > 1 and request.ad.get(SAME_GROUP) is True,
                            key=key,
                        )
                    )
        return demands

    def _by_need(self) -> list[str]:
        """
        Keys of submitters' ads, those of one submitter by how many of its jobs run or are about to run at that schedd.

        Who comes first gets what cannot be divided, so an order that is always the same would let the last starve.
        """
        own: dict[str, float] = {key: ad.running for key, ad in self.submitters.items()}
        for (key, _), (count, _) in self._promised.items():
            own[key] += count
        return sorted(own, key=lambda key: (self.submitters[key].name, own[key], key))

    def give(self, grant: Grant, cycle: int, *, now: float, trust: float) -> None:
        """
        Remember a match until the ads show it, or until it is clear that it had no effect.

        `trust`: for so long ads may be behind, seconds.
        """
        slot, until = self.slots.keys[grant.row], now + trust
        given = self._given.setdefault(slot, Given([], until))
        given.taken.append((grant.demand.submitter, grant.amounts, grant.count))
        match = UnshownMatch(
            submitter=grant.demand.submitter,
            schedd=grant.demand.schedd,
            cycle=cycle,
            weight=self._cost_of(grant),
            count=grant.count,
            until=now + max(SETTLES, trust),
        )
        self._unshown.add(_machine(slot), match)
        given.until = until
        for row in grant.instead:
            self._given.setdefault(self.slots.keys[row], Given([], until))
        key, autocluster = grant.demand.key, grant.demand.autocluster
        before, _ = self._promised.get((key, autocluster), (0, 0.0))
        # What a job takes beyond what it needs is promised to nobody else.
        needed = grant.count * grant.demand.nodes / grant.nodes
        self._promised[key, autocluster] = (before + needed, until)

    def _cost_of(self, grant: Grant) -> float:
        """What one of its claims counts for."""
        value, row = self.slots.value, grant.row
        divided = value(row, "PartitionableSlot") is True
        cores = grant.amounts.quantized("Cpus") if divided else None
        return cost_of(value(row, "SlotWeight"), value(row, "Cpus"), cores)

    def jobs(self) -> dict[tuple[str, str, int], Ad]:
        """(submitter, schedd, autocluster) -> the job that stands for it."""
        return {
            (ad.name, ad.schedd, request.autocluster): request.ad
            for ad in self.submitters.values()
            for request in ad.requests
        }

    def job(self, submitter: str, schedd: str, autocluster: int) -> Ad | None:
        """The job that stands for an autocluster; None if it has none that waits."""
        for ad in self.submitters.values():
            if (ad.name, ad.schedd) == (submitter, schedd):
                for request in ad.requests:
                    if request.autocluster == autocluster:
                        return request.ad
        return None

    def expire(self, now: float) -> None:
        """Forget what was assumed about matches that showed no effect in time."""
        self._given = {key: given for key, given in self._given.items() if given.until > now}
        self.pendings.settle(self.submitters.values(), now)
        self._unshown.expire(now)
        self._promised = {key: promise for key, promise in self._promised.items() if promise[1] > now}

    def expires(self) -> float | None:
        """When the first of the assumptions about matches runs out."""
        return min(self._untils(), default=None)

    def _untils(self) -> Iterator[float]:
        yield from (given.until for given in self._given.values())
        yield from (until for _, until in self._promised.values())
        yield from self.pendings.ends()
        yield from self._unshown.ends()

    def in_use(self) -> dict[str, float]:
        """Concurrency limits, by what schedds and matches use of them."""
        return self.pendings.in_use(self.submitters.values())

    @property
    def idle(self) -> int:
        """Idle jobs in the pool."""
        return sum(ad.idle for ad in self.submitters.values())


def _machine(slot: str) -> str:
    """The token of the machine's name in the key of one of its slots."""
    return slot.partition(".")[0]


def _slots(request: ResourceRequest) -> int:
    return request.count * request.nodes


def _claimant(name: str, used: float, standing: Standing | None) -> Claimant:
    if standing is None:
        return Claimant(name=name, used=used)
    principal = standing.principal
    return Claimant(
        name=name,
        priority=standing.effective,
        used=used,
        last=principal.last,
        floor=principal.floor,
        ceiling=principal.ceiling if principal.ceiling >= 0 else math.inf,
    )
