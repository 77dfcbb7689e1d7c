"""Asks the negotiator how those stand who want machines, and what they may have."""

import logging
import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle.matchmaking import ROOT, Claimant, GroupError, GroupRule, LimitRules, Policy, Tree
from kettle_services.scaler.domain.planning.matching import Rights
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.commands.negotiator import QUERY_PRIORITIES, GroupStanding, Priorities, QueryPriorities

_DEADLINE_S: Final = 2.0
_log: Final = logging.getLogger(__name__)


class AskedRights:
    """What was answered last holds until there is another answer."""

    def __init__(self, bus: Bus, negotiator: str) -> None:
        self._bus = bus
        self._negotiator = negotiator
        self._known: Priorities | None = None
        self._silent = False

    async def ask(self, submitters: Iterable[SubmitterAd]) -> Rights:
        """How everybody stands now."""
        try:
            self._known = await self._bus.call(
                QUERY_PRIORITIES, self._negotiator, QueryPriorities(), deadline=_DEADLINE_S
            )
            self._silent = False
        except BusError as error:
            if not self._silent:
                _log.warning("the negotiator does not say who may have what", extra={"cause": str(error)})
                self._silent = True
        return self.of(submitters)

    def of(self, submitters: Iterable[SubmitterAd]) -> Rights:
        """How everybody stood when that was asked last; before the first answer everybody is new."""
        in_use = Counter[str]()
        for ad in submitters:
            in_use.update(ad.limits)
        known = self._known
        if known is None:
            return Rights(in_use=dict(in_use))
        limits = LimitRules(
            known.concurrency_limits, known.concurrency_limit_defaults, known.concurrency_limit_default
        )
        return Rights(
            claimants=[
                Claimant(
                    name=one.name,
                    priority=one.effective,
                    used=one.weight,
                    last=one.last,
                    floor=one.floor,
                    ceiling=one.ceiling if one.ceiling >= 0 else math.inf,
                )
                for one in known.submitters
            ],
            groups=_policy(known.groups),
            used={one.name: one.weight for one in known.submitters},
            limits=limits,
            in_use=dict(in_use),
        )


def _policy(groups: Iterable[GroupStanding]) -> Policy | None:
    rules = {
        group.name: GroupRule(
            quota=None if group.dynamic else group.config_quota,
            quota_dynamic=group.config_quota if group.dynamic else None,
            accept_surplus=group.accept_surplus,
            autoregroup=group.autoregroup,
        )
        for group in groups
        if group.name != ROOT
    }
    try:
        return Policy(Tree(rules, oversubscription=True)) if rules else None
    except GroupError as error:
        _log.warning("the negotiator's groups are no tree", extra={"cause": str(error)})
        return None
