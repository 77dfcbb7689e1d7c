"""How submitters and accounting groups stand, as those see it who ask the accountant."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from kettle.matchmaking import ROOT, GroupShare, LimitRules
from kettle_services.negotiator.domain.accountant import Accountant, Standing
from kettle_services.negotiator.domain.principals import GROUP, group_principal
from kettle_wire.commands.negotiator import GroupStanding, Priorities, Priority


def priorities(
    accountant: Accountant,
    standings: Mapping[str, Standing],
    *,
    now: float,
    names: Collection[str],
    shares: Sequence[GroupShare],
    limits: LimitRules,
) -> Priorities:
    """
    The best first; `names` are those who were asked about alone, of nobody: all, with the groups' `shares` and the pool's `limits`.
    """
    shown = {name: _shown(accountant, name, standing) for name, standing in standings.items()}
    found = [one for name, one in shown.items() if names or not name.startswith(GROUP)]
    return Priorities(
        at=now,
        half_life=accountant.half_life,
        submitters=sorted(found, key=lambda each: (each.effective, each.name)),
        groups=[] if names else [_group(share, shown) for share in shares],
        concurrency_limits={} if names else limits.limits,
        concurrency_limit_defaults={} if names else limits.prefixes,
        concurrency_limit_default=0.0 if names else limits.default,
    )


def _group(share: GroupShare, standings: Mapping[str, Priority]) -> GroupStanding:
    return GroupStanding(**msgspec.structs.asdict(share), standing=standings.get(group_principal(share.name)))


def _shown(accountant: Accountant, name: str, standing: Standing) -> Priority:
    principal = standing.principal
    group = accountant.group_of(name).name
    return Priority(
        name=name,
        effective=standing.effective,
        priority=principal.priority,
        factor=standing.factor,
        factor_set=principal.factor is not None,
        slots=principal.slots,
        weight=principal.weight,
        accumulated=principal.accumulated,
        weighted_accumulated=principal.weighted_accumulated,
        begun=principal.begun,
        last=principal.last,
        floor=principal.floor,
        ceiling=principal.ceiling,
        group="" if group == ROOT or name.startswith(GROUP) else group,
    )
