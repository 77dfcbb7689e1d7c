"""
The accountant: measures what submitters use, charges them, and knows their priorities at any moment.

It decides and folds; who records is its caller.  Between two charges usage is only in memory: what was matched or
released in between is charged with the seconds that it lasted, as HTCondor's `UnchargedTime`.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kettle.fairshare import effective_priority
from kettle.matchmaking.groups import NO_GROUPS, Group, Tree
from kettle_services.negotiator.domain.principals import (
    GROUP,
    LEAST,
    Factors,
    Principal,
    at_time,
    decayed,
    group_principal,
)
from kettle_wire.events import PrincipalCharged


class Use(msgspec.Struct, frozen=True):
    """Claimed slots, and what they count for."""

    slots: float = 0.0
    weight: float = 0.0

    def __add__(self, other: "Use") -> "Use":
        return Use(self.slots + other.slots, self.weight + other.weight)

    def times(self, seconds: float) -> "Use":
        """For so many seconds."""
        return Use(self.slots * seconds, self.weight * seconds)


NOTHING: Use = Use()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a principal stands at a moment: `priority` times `factor` is what decides who comes first."""

    principal: Principal
    factor: float

    @property
    def effective(self) -> float:
        """The effective priority; smaller is better."""
        return effective_priority(self.principal.priority, self.factor)


class Accountant:
    """Principals as recorded, and what they have used since."""

    def __init__(
        self, *, factors: Factors | None = None, half_life: float = 86_400.0, tree: Tree = NO_GROUPS
    ) -> None:
        self.factors = factors or Factors()
        self.tree = tree
        self.half_life = half_life
        self.principals: dict[str, Principal] = {}
        self._since: float | None = None
        self._sooner: dict[str, float] = {}
        """Who was charged by itself since everybody was, and when."""
        self._seen = 0.0
        self._now: dict[str, Use] = {}
        self._spent: dict[str, Use] = {}

    def restore(self, principals: Mapping[str, Principal]) -> None:
        """Begin with what was recorded."""
        self.principals.update(principals)

    # -- usage -------------------------------------------------------------------------------------------------------

    def observe(self, now: float, used: Mapping[str, Use]) -> None:
        """
        What is in use from now on; what was in use until now is counted for the time since it was seen.

        While nobody looked, for example because this process was not there, what was charged last and is in use now was
        in use all the time.
        """
        if self._since is None:
            self._begin(now, {**used, **self._by_group(used)})
        seconds = max(0.0, now - self._seen)
        for name, use in self._now.items():
            if seconds or name not in self._spent:  # a cycle looks more than once at a moment
                self._spent[name] = self._spent.get(name, NOTHING) + use.times(seconds)
        self._seen = now
        self._now = {**used, **self._by_group(used)}

    def _by_group(self, used: Mapping[str, Use]) -> dict[str, Use]:
        """What each group has, with all groups below it, under the name of its principal."""
        sums: dict[str, Use] = {}
        if len(self.tree) == 1:
            return sums
        for name, use in used.items():
            if name.startswith(GROUP):
                continue  # it is seen again at a charge
            for number in self.tree.upward(self.tree.number_of(name)):
                if number:
                    group = group_principal(self.tree.groups[number].name)
                    sums[group] = sums.get(group, NOTHING) + use
        return sums

    def _begin(self, now: float, used: Mapping[str, Use]) -> None:
        charged = (principal.charged for principal in self.principals.values() if principal.slots)
        self._since = self._seen = min(now, max(charged, default=now))
        self._now = {
            name: Use(min(use.slots, before.slots), min(use.weight, before.weight))
            for name, use in used.items()
            if (before := self.principals.get(name)) is not None and before.slots
        }

    def charge(self, now: float) -> list[PrincipalCharged]:
        """What there is to record of everybody for the time since the last charge; the caller folds it."""
        if self._since is None:
            return []
        self.observe(now, self._now)
        idle = {name for name, principal in self.principals.items() if principal.slots or principal.weight}
        charges = [self._charge(name, now) for name in sorted({*self._now, *self._spent, *idle})]
        self._since, self._sooner, self._spent = now, {}, {}
        return charges

    def charge_one(self, name: str, now: float) -> list[PrincipalCharged]:
        """Charge one principal only."""
        if self._since is None:
            return []
        self.observe(now, self._now)
        principal = self.principals.get(name, Principal())
        if not (name in self._now or name in self._spent or principal.slots or principal.weight):
            return []
        charge = self._charge(name, now)
        self._sooner[name] = now
        self._spent.pop(name, None)
        return [charge]

    def forgettable(self, now: float) -> list[str]:
        """
        Of whom nothing would be lost: they have the best priority, have used nothing, and nothing was set.
        """
        return sorted(
            name
            for name, principal in self.principals.items()
            if name not in self._now
            and name not in self._spent
            and at_time(principal, now, self.half_life).priority <= LEAST
            and msgspec.structs.replace(principal, priority=LEAST, charged=0.0, begun=0.0, last=0.0)
            == Principal()
        )

    def _charged_until(self, name: str) -> float | None:
        return self._sooner.get(name, self._since)

    def _charge(self, name: str, now: float) -> PrincipalCharged:
        since = self._charged_until(name)
        assert since is not None, "usage was observed"
        use, spent, seconds = self._now.get(name, NOTHING), self._spent.get(name, NOTHING), now - since
        return PrincipalCharged(
            principal=name,
            since=since,
            at=now,
            half_life=self.half_life,
            slots=use.slots,
            weight=use.weight,
            uncharged=spent.slots - use.slots * seconds,
            weighted_uncharged=spent.weight - use.weight * seconds,
        )

    # -- priorities --------------------------------------------------------------------------------------------------

    def standing(self, name: str, now: float) -> Standing:
        """The standing of a submitter now, including its use since the last charge."""
        principal = self.principals.get(name, Principal())
        since, spent = self._charged_until(name), self._spent.get(name)
        if since is None or now <= since or (spent is None and name not in self._now):
            principal = at_time(principal, now, self.half_life)
        else:
            used = (spent or NOTHING) + self._now.get(name, NOTHING).times(max(0.0, now - self._seen))
            before = at_time(principal, since, self.half_life)
            recent = used.weight / (now - since)
            use = self._now.get(name, NOTHING)
            principal = msgspec.structs.replace(
                before,
                priority=decayed(before.priority, recent, now - since, self.half_life),
                slots=use.slots,
                weight=use.weight,
                accumulated=before.accumulated + used.slots,
                weighted_accumulated=before.weighted_accumulated + used.weight,
                begun=before.begun or since,
                last=now,
                charged=now,
            )
        factor = self.factors.of(name, principal, group=self._factor_of_group(name))
        return Standing(principal=principal, factor=factor)

    def _factor_of_group(self, name: str) -> float | None:
        """
        The factor that the group of a principal gives it: as an administrator set it, else as it is configured.
        """
        group = self.group_of(name)
        known = self.principals.get(group_principal(group.name))
        return known.factor if known is not None and known.factor is not None else group.prio_factor

    def group_of(self, name: str) -> Group:
        """The group that a principal is, or is in."""
        itself = self.tree.find(name.strip("<>")) if name.startswith(GROUP) else None
        return itself or self.tree.groups[self.tree.number_of(name)]

    def recorded(self) -> set[str]:
        """Submitters that had slots when that was last recorded; the schedds of some may be down since."""
        return {name for name, principal in self.principals.items() if principal.slots}

    def standings(self, now: float, names: Iterable[str] = ()) -> dict[str, Standing]:
        """Of these, or of all who are known, by name."""
        known = sorted(set(names) or {*self.principals, *self._now})
        return {name: self.standing(name, now) for name in known}
