"""Machines that a plan asks for, and the leases that are recorded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kettle_services.scaler.domain.planning.templates import start_of
from kettle_wire.events.lease import Demand, LeaseRequested, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kettle_services.scaler.domain.planning.demand import Group
    from kettle_services.scaler.domain.planning.fitting import Fit
    from kettle_services.scaler.domain.planning.inputs import Inputs

_ASKED_WITHIN_S: Final = 300.0
"""What could not be asked for by then is planned again, perhaps elsewhere."""
_GANG_S: Final = 300.0
"""A gang has so long at least to be complete."""
_BOOTS: Final = 3
PATIENCE: Final = "KettlePatience"
"""Attribute of a machine: seconds that the jobs that it is made for wait for it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """So many machines of an offer that are alike."""

    offer: int
    machines: int
    shape: Shape = Shape.SHARED
    jobs: tuple[tuple[int, int], ...] = ()
    """Groups by their number, and how many jobs of each are for one machine."""


def gang_of(group: Group) -> str:
    """The name of the machines of a group whose jobs need several; empty: each needs one."""
    return f"{group.submitter}@{group.schedd}#{group.autocluster}" if group.nodes > 1 else ""


def requested(inputs: Inputs, launches: Sequence[Launch], fits: Sequence[Fit]) -> list[LeaseRequested]:
    """What is recorded of these machines, in their order."""
    numbered = enumerate(_each(launches), 1)
    return [_requested(inputs, launch, fits, ordinal) for ordinal, launch in numbered]


def _each(launches: Iterable[Launch]) -> Iterator[Launch]:
    for launch in launches:
        for _ in range(launch.machines):
            yield launch


def demand_of(launch: Launch, fits: Sequence[Fit]) -> list[Demand]:
    """Because of which jobs a machine is asked for."""
    return [
        Demand(group.submitter, group.schedd, str(group.autocluster), jobs)
        for number, jobs in launch.jobs
        for group in (fits[number].group,)
    ]


def _requested(inputs: Inputs, launch: Launch, fits: Sequence[Fit], ordinal: int) -> LeaseRequested:
    one = inputs.offers[launch.offer]
    pool, offer = one.pool, one.offer
    for_ = [fits[group] for group, _ in launch.jobs]
    alone = for_[0] if launch.shape is Shape.DEDICATED and for_ else None
    gang = gang_of(alone.group) if alone is not None else ""
    waits = [fit.patience for fit in for_ if fit.patience]
    return LeaseRequested(
        lease=f"{pool.name}-{inputs.number}-{ordinal}",
        pool=pool.name,
        offer=offer,
        life=one.life,
        until=inputs.now + _ASKED_WITHIN_S,
        plan=inputs.number,
        ordinal=ordinal,
        shape=launch.shape,
        demand=demand_of(launch, fits),
        owner=pool.owners[0] if len(pool.owners) == 1 else "",
        groups=pool.groups,
        gang=gang,
        gang_size=alone.group.nodes if gang and alone is not None else 0,
        gang_deadline=inputs.now + max(_GANG_S, _BOOTS * one.boot) if gang else 0.0,
        # Machines that go before they can be ready would be bought again and again.
        attributes={PATIENCE: f"{max(min(waits), one.boot):.15g}"} if waits else {},
        start=start_of(pool, offer, None if alone is None else alone.asked),
    )


def patience_of(request: LeaseRequested) -> float:
    """Seconds that the jobs that a machine is made for wait for it; 0: they do not say."""
    return float(request.attributes.get(PATIENCE, "0"))
