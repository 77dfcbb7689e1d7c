"""
Sharing the pool out among accounting groups: who comes when, and how much its submitters may take.

What a submitter of the group gets then is a matter of shares; here it is one call, `spend`. Pure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kettle.classad import UNDEFINED, ClassAd, Context, EvaluationFailed, Node, evaluate, parse
from kettle.matchmaking.groups import Tree
from kettle.matchmaking.quotas import LITTLE, assign, fair_share

SORT: Final = (
    'ifThenElse(AccountingGroup =?= "<none>", 3.4e+38, '
    "ifThenElse(GroupQuota > 0, GroupResourcesInUse / GroupQuota, 3.3e+38))"
)
"""GROUP_SORT_EXPR: the starving first, those without a quota late, those without a group last."""


class Spent(NamedTuple):
    """What some submitters took together, in slot weights."""

    taken: float
    wanted: float
    """No less than what they would take besides if they might."""


Spend: TypeAlias = Callable[[Sequence[str], float, float], Spent]
"""
(submitters, pie, room): serve these in proportion to their shares of the pie, up to the room.
"""


class Policy(msgspec.Struct, frozen=True):
    """How groups are served."""

    tree: Tree
    sort: Node = parse(SORT)
    """GROUP_SORT_EXPR, a number for each group; the smallest comes first."""
    rounds: int = 3
    """GROUP_QUOTA_MAX_ALLOCATION_ROUNDS."""


class GroupShare(msgspec.Struct, frozen=True, kw_only=True):
    """What a group has and may have, in slot weights."""

    name: str
    config_quota: float
    """As it was configured: an amount, or a part of the parent's."""
    dynamic: bool
    quota: float
    """For its own submitters (EffectiveQuota)."""
    subtree_quota: float
    accept_surplus: bool
    autoregroup: bool
    requested: float
    """What its submitters used when the cycle began, and what the jobs that waited then might count for at most."""
    allotted: float
    """What they may have, with surplus."""
    used: float
    """What they have now, with what the cycle gave."""
    subtree_used: float
    sort_key: float


class Hierarchy:
    """One cycle's view of the groups: what is used, by group, while submitters are served."""

    def __init__(
        self,
        policy: Policy,
        *,
        pie: float,
        used: Mapping[str, float],
        wanted: Mapping[str, float],
        context: Context,
    ) -> None:
        """
        `used` and `wanted` are by submitter: the use of each, including those who want nothing, and the demand.
        """
        self.policy = policy
        tree = self._tree = policy.tree
        self._pie = pie
        self._context = context
        self._quotas = assign(tree, pie)
        self._used = [0.0] * len(tree)
        self._subtree_used = [0.0] * len(tree)
        for name, weight in used.items():
            self._use(tree.number_of(name), weight)
        self._members: list[list[str]] = [[] for _ in tree.groups]
        self._open = [0.0] * len(tree)
        """What its submitters want besides what they have."""
        self._refused = [0.0] * len(tree)
        """What a group was offered and did not take."""
        for name, weight in wanted.items():
            number = tree.number_of(name)
            self._open[number] += weight
            self._members[number].append(name)
        self._requested = [used + more for used, more in zip(self._used, self._open, strict=True)]
        self._allotted = fair_share(tree, self._quotas, self._requested)

    def share(self, spend: Spend, *, rest: bool = True) -> list[GroupShare]:
        """
        Serve the groups, those that need it most first, until nobody can use what others leave; how they stand then.

        What a group could not use goes back, and is shared out among the others. With `rest`, what is too little for a job of
        any of them as it is divided is for one after the other.
        """
        wanted = list(self._requested)
        for turn in range(max(1, self.policy.rounds)):
            if turn:
                self._allotted = fair_share(self._tree, self._quotas, wanted)
            for number in self._ordered():
                self._serve(number, spend)
            if not self._hand_back(wanted):
                break
        if rest:
            self._serve_rest(spend)
        self._regroup(spend)
        return self._shares()

    def _serve(self, number: int, spend: Spend) -> None:
        room = min(self._allotted[number] - self._used[number], self._room_in(number))
        if self._members[number] and room > self._nothing:
            self._spend(number, spend, self._allotted[number], room)

    def _spend(self, number: int, spend: Spend, pie: float, room: float) -> None:
        taken, self._open[number] = spend(self._members[number], min(self._pie, pie), room)
        self._refused[number] = room - taken
        self._use(number, taken)

    def _use(self, number: int, weight: float) -> None:
        self._used[number] += weight
        for above in self._tree.upward(number):
            self._subtree_used[above] += weight

    def _room_in(self, number: int) -> float:
        """
        What the strictest of a group and those above it leaves: a subtree has its quota, unless its group accepts surplus.

        The group itself is one of them: those below it may have taken what it did not use before.
        """
        left = math.inf
        for above in self._tree.upward(number):
            if not self._tree.groups[above].accept_surplus:
                left = min(left, self._quotas.subtree[above] - self._subtree_used[above])
        return left

    @property
    def _nothing(self) -> float:
        return LITTLE * max(1.0, self._pie)

    def _hand_back(self, wanted: list[float]) -> bool:
        """
        Have groups that could not use what they had want no more than they use; whether there are any.

        First those that have too few jobs for it: only if there are none, those that have too little for their next job,
        which may be less than that because it was allotted to others.
        """
        unused = [has - used for has, used in zip(self._allotted, self._used, strict=True)]
        left = [
            number
            for number, used in enumerate(self._used)
            if unused[number] > self._nothing and wanted[number] > used
        ]
        done = [number for number in left if unused[number] - self._open[number] > self._nothing]
        for number in done or left:
            wanted[number] = self._used[number]
        return bool(left)

    def _serve_rest(self, spend: Spend) -> None:
        """
        Serve groups once more with all that is left.

        Of a surplus each is allotted a part, and if none of these parts is enough for a job, their sum may be.
        """
        self._allotted = [min(both) for both in zip(self._allotted, self._used, strict=True)]
        for number in self._ordered():
            room = min(self._room_in(number), self._pie - self._subtree_used[0])
            if self._open[number] > self._nothing and room - self._refused[number] > self._nothing:
                before = self._used[number]
                self._spend(number, spend, before + room, room)
                self._allotted[number] += self._used[number] - before

    def _regroup(self, spend: Spend) -> None:
        """
        Serve those submitters once more who may have what others do not want, together with those who have no group.
        """
        groups = [number for number, group in enumerate(self._tree.groups) if group.autoregroup]
        members = [name for number in groups for name in self._members[number]]
        room = self._pie - self._subtree_used[0]
        if members and room > self._nothing:
            self._use(0, spend([*self._members[0], *members], self._pie, room).taken)

    def _ordered(self) -> list[int]:
        return sorted(range(len(self._tree)), key=lambda number: (self._key(number), number))

    def _key(self, number: int) -> float:
        ad = ClassAd.from_wire(
            {
                "AccountingGroup": self._tree.groups[number].name,
                "GroupQuota": self._quotas.own[number],
                "GroupResourcesInUse": self._used[number],
                "GroupResourcesAllocated": self._allotted[number],
            }
        )
        try:
            value = evaluate(self.policy.sort, ad, None, self._context)
        except EvaluationFailed:
            value = UNDEFINED
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            return math.inf
        return float(value)

    def _shares(self) -> list[GroupShare]:
        return [
            GroupShare(
                name=group.name,
                config_quota=group.quota if group.quota is not None else group.quota_dynamic or 0.0,
                dynamic=group.quota_dynamic is not None,
                quota=self._quotas.own[number],
                subtree_quota=self._quotas.subtree[number],
                accept_surplus=group.accept_surplus,
                autoregroup=group.autoregroup,
                requested=self._requested[number],
                allotted=self._allotted[number],
                used=self._used[number],
                subtree_used=self._subtree_used[number],
                sort_key=self._key(number),
            )
            for number, group in enumerate(self._tree.groups)
        ]
