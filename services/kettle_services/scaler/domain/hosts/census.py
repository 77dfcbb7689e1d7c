"""Which machines static pools have, each with its offer and how it is."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.pools import PoolState
from kettle_wire.subjects import token
from kettle_wire.worker_pools import HostState, Offer, StaticMachine, WorkerPool


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of a static pool that hibernates."""

    pool: WorkerPool
    offer: Offer
    machine: StaticMachine
    host: Host

    @property
    def name(self) -> str:
        """What its startd is called."""
        return self.machine.name

    @property
    def token(self) -> str:
        """How the keys of its slots begin."""
        return token(self.machine.name)

    def may_be_woken(self, now: float) -> bool:
        """Whether a job that waits would wake it."""
        return self.host.state is HostState.ASLEEP and now >= self.host.again


def members(pools: Iterable[PoolState], hosts: Mapping[str, Host]) -> Iterator[Member]:
    """All machines, in the order of the pool files; one that several pools have is of the first."""
    seen: set[str] = set()
    for state in pools:
        if state.retired or not state.pool.hibernates:
            continue
        for offer in state.pool.offers:
            for machine in offer.machines:
                if machine.name not in seen:
                    seen.add(machine.name)
                    yield Member(
                        pool=state.pool,
                        offer=offer,
                        machine=machine,
                        host=hosts.get(machine.name)
                        or Host(machine=machine.name, pool=state.pool.name, offer=offer.name),
                    )


def pool_with(pools: Iterable[PoolState], machine: str, *, besides: str) -> str:
    """Which other pool has a machine; empty: none."""
    return next(
        (
            state.pool.name
            for state in pools
            if not state.retired
            and state.pool.name != besides
            and any(machine == each.name for offer in state.pool.offers for each in offer.machines)
        ),
        "",
    )
