"""
What each accounting group may have of the pool: quotas from above, surplus from below. Pure; all in slot weights.

Amounts are not rounded: what is a part of a core to one group is another part to the next.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.matchmaking.groups import Group, Tree

LITTLE: Final = 1e-9
"""Sums of parts: what is less than this, in proportion to the pool, is nothing."""


class Quotas(msgspec.Struct, frozen=True):
    """By the number of the group: what is for its own submitters, and for these and all groups below."""

    own: list[float]
    subtree: list[float]


def assign(tree: Tree, pool: float) -> Quotas:
    """
    Quotas from the top down.

    At a group with quota Q, with sqs the sum of its children's static quotas and dqs that of their dynamic ones:

        sqa = sqs if oversubscription is allowed, else min(sqs, Q);  dqa = max(0, Q - sqa)
        static child:  quota*sqa/sqs;  dynamic child:  quota*dqa/max(dqs, 1)
        its own:       Q - what its children have, or Q with oversubscription, but for the root

    Static quotas are served before dynamic ones, which are parts of what is left.

    A pool of 100 cores with a = 40, a.x = 0.25, a.y = 0.5, b = 0.5 and c nothing: a has 40 and b 0.5*60 = 30, so the
    root keeps 30; a.x has 0.25*40 = 10 and a.y 20, so a keeps 10 for its own submitters.
    """
    subtree = [0.0] * len(tree)
    own = [0.0] * len(tree)
    subtree[0] = pool
    for number, group in enumerate(tree.groups):
        quota = subtree[number]
        children = [tree.groups[child] for child in group.children]
        static = sum(child.quota or 0.0 for child in children)
        dynamic = sum(child.quota_dynamic or 0.0 for child in children)
        served = static if tree.oversubscription else min(static, quota)
        left = max(0.0, quota - served)
        for place, child in zip(group.children, children, strict=True):
            subtree[place] = _quota(child, served / static if static else 0.0, left / max(dynamic, 1.0))
        given = sum(subtree[child] for child in group.children)
        own[number] = quota if tree.oversubscription and number else max(0.0, quota - given)
    return Quotas(own, subtree)


def _quota(group: Group, static: float, dynamic: float) -> float:
    if group.quota is not None:
        return group.quota * static
    return (group.quota_dynamic or 0.0) * dynamic


def fair_share(tree: Tree, quotas: Quotas, requested: Sequence[float]) -> list[float]:
    """
    What each group is allotted for its own submitters, of what these use and want (`requested`).

    From below: a group gets what it requests, up to its quota, and leaves the rest. Its parent collects what it and its
    children leave, and gives it to itself and to those children that accept surplus: to each what it requests, if that is
    enough; else in proportion to the quotas of their subtrees, as long as they request it; then to those without a quota
    in equal parts. What is left goes up.

    A pool of 100 with a = 60 and b = 30, both accept surplus, nobody without a group: if a requests 20 and b 200, a has 20,
    b 30, and the surplus of 40 + 10 goes to b, which has 80. If a requests 20, b 60 and <none> 60, <none> has 10 by quota,
    b 30; the surplus is 40, of which b still requests 30 and <none> 50: in proportion 30:10 both would have 30 and 10;
    so b has 60 and <none> 20.
    """
    return _Surplus(tree, quotas, requested).allotted


class _Surplus:
    def __init__(self, tree: Tree, quotas: Quotas, requested: Sequence[float]) -> None:
        self._tree = tree
        self._quotas = quotas
        self.allotted = [min(want, quota) for want, quota in zip(requested, quotas.own, strict=True)]
        self._wants = [want - has for want, has in zip(requested, self.allotted, strict=True)]
        self._below = list(self._wants)
        """What each subtree still requests, as far as surplus reaches it."""
        self._collect(0)

    def _collect(self, number: int) -> float:
        """Share the surplus of a subtree out within it; what is left of it."""
        surplus = self._quotas.own[number] - self.allotted[number]
        children = self._tree.groups[number].children
        for child in children:
            surplus += self._collect(child)
        self._recount(number)
        return surplus - self._give(number, surplus)

    def _recount(self, number: int) -> None:
        groups = self._tree.groups
        taking = [child for child in groups[number].children if groups[child].accept_surplus]
        self._below[number] = self._wants[number] + sum(self._below[child] for child in taking)

    def _give(self, number: int, surplus: float) -> float:
        """Give surplus to a group and to those below; how much they took."""
        if surplus <= 0 or self._below[number] <= 0:
            return 0.0
        groups = self._tree.groups
        taking = [child for child in groups[number].children if groups[child].accept_surplus]
        shares = divided(
            surplus,
            wants=[self._wants[number], *(self._below[child] for child in taking)],
            weights=[self._quotas.own[number], *(self._quotas.subtree[child] for child in taking)],
        )
        self.allotted[number] += shares[0]
        self._wants[number] -= shares[0]
        taken = shares[0] + sum(
            self._give(child, share) for child, share in zip(taking, shares[1:], strict=True)
        )
        self._recount(number)
        return taken


def divided(amount: float, *, wants: Sequence[float], weights: Sequence[float]) -> list[float]:
    """
    Divide an amount in proportion to weights, to nobody more than it wants; those with weight 0 share equally what is left.

    9 among who want 1, 10 and 10 with weights 1, 1 and 2: in proportion 2.25, 2.25 and 4.5, so the first is satisfied with
    1; the other 8 are 8/3 and 16/3.
    """
    given = [0.0] * len(wants)
    for equally in (False, True):
        open_: list[int] = [
            i for i, weight in enumerate(weights) if wants[i] > 0 and (weight <= 0 if equally else weight > 0)
        ]
        part = {i: 1.0 if equally else weights[i] for i in open_}
        while open_ and amount > 0:
            whole = sum(part[i] for i in open_)
            full: list[int] = [i for i in open_ if wants[i] * whole <= amount * part[i]]
            if not full:
                for i in open_:
                    given[i] = amount * part[i] / whole
                return given
            for i in full:
                given[i] = wants[i]
            amount = max(0.0, amount - sum(wants[i] for i in full))
            open_ = [i for i in open_ if given[i] < wants[i]]
    return given
