"""What a scaler measures of its pools of workers."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from kettle.runtime import Telemetry
from kettle_services.scaler.domain import figures
from kettle_services.scaler.domain.leases.lease import KIND, ORPHAN
from kettle_services.scaler.domain.pools import PoolState
from kettle_services.scaler.planner import Planner
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.record import Record
from kettle_services.scaler.rooster import Rooster
from kettle_wire.events.lease import LeaseBusy, LeaseReady, OrphanFound
from kettle_wire.frames import Frame
from kettle_wire.telemetry import worker_pool_metrics as metrics
from kettle_wire.worker_pools import HostState

_READY: Final = frozenset({LeaseReady.__struct_config__.tag, LeaseBusy.__struct_config__.tag})
_FOUND: Final = OrphanFound.__struct_config__.tag


def measure_pools(
    telemetry: Telemetry, record: Record, provisioning: Provisioning, planner: Planner, rooster: Rooster
) -> None:
    """Measure from now on what pools of workers have, want and cost, and what becomes of orders."""
    if telemetry.measurements is None:
        return
    measured = _Pools(record, provisioning, planner)
    telemetry.observe(metrics.LEASES, measured.leases)
    telemetry.observe(metrics.POOL_MACHINES, measured.machines)
    telemetry.observe(metrics.HOSTS, lambda: _hosts(rooster))
    telemetry.observe(metrics.OPEN_OFFERS, measured.offers)
    telemetry.observe(metrics.PROVIDER_BREAKERS, measured.providers)
    telemetry.observe(
        metrics.OLDEST_INTENT,
        lambda: figures.oldest_intent(provisioning.book.leases.values(), time.time()),
    )
    telemetry.observe(
        metrics.DEMAND,
        lambda: {(fate,): count for fate, count in figures.demand(planner.latest).items()},
    )
    telemetry.observe(metrics.SPENT, measured.spent)
    telemetry.observe(metrics.BUDGET, measured.budgets)
    record.on_commit(_Outcomes(telemetry, provisioning).note)


def _hosts(rooster: Rooster) -> Mapping[tuple[str, ...], float]:
    """How many machines of each static pool are how."""
    there = rooster.members()
    found: dict[tuple[str, ...], float] = {
        (each.pool.name, state.value): 0.0 for each in there for state in HostState
    }
    for each in there:
        found[each.pool.name, each.host.state.value] += 1
    return found


class _Pools:
    """Reads gauges, one value for each series."""

    def __init__(self, record: Record, provisioning: Provisioning, planner: Planner) -> None:
        self._record = record
        self._book = provisioning.book
        self._planner = planner

    def _kept(self) -> list[PoolState]:
        return [state for state in self._record.state.pools.states.values() if not state.retired]

    def leases(self) -> Counter[tuple[str, ...]]:
        return Counter(
            (lease.requested.pool, lease.offer.name, lease.state.value)
            for lease in self._book.leases.values()
        )

    def machines(self) -> dict[tuple[str, ...], float]:
        pools = {state.pool.name for state in self._kept()}
        pools |= {lease.requested.pool for lease in self._book.leases.values()}
        return {
            (pool, phase): count
            for pool in pools
            for phase, count in figures.machines(
                pool, self._book.leases.values(), self._planner.latest
            ).items()
        }

    def offers(self) -> dict[tuple[str, ...], float]:
        now = time.time()
        return {
            (state.pool.name, each): count
            for state in self._kept()
            for each, count in figures.offers(state, self._book, now).items()
        }

    def providers(self) -> dict[tuple[str, ...], float]:
        now = time.time()
        known = {offer.provider for state in self._kept() for offer in state.pool.offers}
        found: dict[tuple[str, ...], float] = {}
        for provider in known:
            its_own = figures.breaker(self._book.providers.get(provider), now)
            for state in metrics.PROVIDER_BREAKERS.attributes[1].values:
                found[provider, state] = float(state == its_own)
        return found

    def spent(self) -> dict[tuple[str, ...], float]:
        return {
            (state.pool.name, currency): self._planner.spent(state.pool.name)
            for state in self._kept()
            if (currency := figures.currency_of(state.pool))
        }

    def budgets(self) -> dict[tuple[str, ...], float]:
        return {
            (state.pool.name, figures.currency_of(state.pool)): state.pool.budget
            for state in self._kept()
            if state.pool.budget
        }


class _Outcomes:
    """Counts what is recorded."""

    def __init__(self, telemetry: Telemetry, provisioning: Provisioning) -> None:
        self._book = provisioning.book
        self._starts = telemetry.histogram(metrics.MACHINE_START)
        self._orphans = telemetry.counter(metrics.ORPHANS)

    def note(self, frame: Frame) -> None:
        """A frame is committed."""
        for entry in frame.entries:
            if entry.type in _READY:
                self._ready(entry.stream.removeprefix(f"{KIND}/"), frame.at / 1e6)
            elif entry.type == _FOUND:
                self._orphans.add(1, entry.stream.removeprefix(f"{ORPHAN}/").partition(".")[0])

    def _ready(self, name: str, at: float) -> None:
        """A machine takes jobs; for the first time, if that is when it is recorded to have become ready."""
        lease = self._book.leases.get(name)
        if lease is not None and lease.ready == at:
            self._starts.record(lease.ready - lease.made, lease.requested.pool, lease.offer.name)
