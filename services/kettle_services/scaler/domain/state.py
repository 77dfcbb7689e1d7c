"""What the events of a scaler's shard come to: a state for each stream."""

from typing import Final

from kettle.eventsourcing.stream_states import Streams, StreamStates
from kettle_services.scaler.domain import plans, pools
from kettle_services.scaler.domain.hosts import host
from kettle_services.scaler.domain.leases import breakers, lease
from kettle_services.scaler.domain.leases.book import Book
from kettle_services.scaler.domain.leases.timers import Timers


class ScalerState(StreamStates):
    """Everything that a scaler has recorded and needs for its next decision."""

    def __init__(self) -> None:
        self.plans: Final = Streams(plans.LastPlan, plans.fold)
        self.pools: Final = Streams(pools.PoolState, pools.fold_pool)
        self.leases: Final = Streams(lease.Lease, lease.fold)
        self.orphans: Final = Streams(lease.Orphan, lease.fold_orphan)
        self.offers: Final = Streams(breakers.OfferRecord, breakers.fold_offer)
        self.templates: Final = Streams(breakers.TemplateRecord, breakers.fold_template)
        self.hosts: Final = Streams(host.Host, host.fold)
        self.providers: Final = Streams(breakers.ProviderRecord, breakers.fold_provider)
        super().__init__(
            {
                plans.KIND: self.plans,
                pools.KIND: self.pools,
                lease.KIND: self.leases,
                lease.ORPHAN: self.orphans,
                host.KIND: self.hosts,
                breakers.OFFER: self.offers,
                breakers.TEMPLATE: self.templates,
                breakers.PROVIDER: self.providers,
            }
        )

    def book(self, timers: Timers) -> Book:
        """All that is decided about leases on; it changes with the state."""
        return Book(
            self.leases.states,
            self.orphans.states,
            self.offers.states,
            self.templates.states,
            self.providers.states,
            timers,
        )
