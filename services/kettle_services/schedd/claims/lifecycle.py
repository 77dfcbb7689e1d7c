"""
What looks after the claims of a schedd: asked of startds, renewed, reused job after job, given back.

*Slow path: negotiation. Fast path: claim reuse.*
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kettle.bus.ports import Asks
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.assignment import AssignmentEvents
from kettle_services.schedd.claims.ends import ClaimEnds
from kettle_services.schedd.claims.idle import IdleClaims
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.claims.renewer import ClaimRenewer
from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.claims.requests import ClaimRequests
from kettle_services.schedd.claims.reuser import ClaimReuser
from kettle_services.schedd.claims.stimulus_log import claim_witness
from kettle_services.schedd.domain.claims.claim import ClaimLeases, LeaseTerms
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.reuse import ClaimReuse
from kettle_services.schedd.domain.negotiation.flocking import may_flock
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.events import ClaimGranted
from kettle_wire.flocking import pool_of


class ClaimLifecycle:
    """The parts, wired to each other: each of them feeds `states`, and carries out what that says."""

    def __init__(
        self,
        bus: Asks,
        recorder: QueueRecorder,
        shadows: ShadowDispatch,
        secrets: ClaimSecrets,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
        named: Callable[[str], str] = lambda _pool: "",
    ) -> None:
        """`named`: with what the ids of claims in a pool begin, beside what those of our own pool have."""
        self.terms: Final = LeaseTerms(
            settings.lease, settings.shortest_job_lease, settings.longest_job_lease
        )
        self._flocks = settings.flock_by_default
        queue = recorder.queue
        self.states: Final = ClaimStates(queue, claim_witness(queue.schedd))
        leases = ClaimLeases(margin=settings.lease_margin)
        now = time.monotonic()
        for claim in queue.claims.values():
            leases.trust(claim.granted.startd, now)
        succession = ClaimReuse(queue, suits=self._suits, clock=time.time)
        self.idle: Final = IdleClaims()
        recorder.on_change(self.idle.on_event)
        self.assigning: Final = AssignmentEvents(queue, settings, self.idle)
        self.releases: Final = ClaimReleases(bus, secrets, self.states, tasks, lease=settings.lease)
        self.ends: Final = ClaimEnds(
            recorder, self.states, succession, self.idle, self.releases, shadows, tasks, settings
        )
        self.renewer: Final = ClaimRenewer(
            bus, recorder, self.states, leases, self.ends, self.releases, secrets, tasks, settings
        )
        self.requests: Final = ClaimRequests(
            bus, recorder, secrets, self.states, self.releases, leases, settings, named
        )
        self.requester: Final = ClaimRequester(
            recorder,
            self.states,
            self.requests,
            self.releases,
            self.assigning,
            shadows,
            tasks,
            settings,
            self.terms,
            renew_soon=self.renewer.renew_soon,
            may_go=self._may_go,
        )
        self.reuser: Final = ClaimReuser(
            recorder,
            self.states,
            succession,
            self.idle,
            self.assigning,
            self.ends,
            shadows,
            tasks,
            worklife=settings.claim_worklife,
        )

    def _suits(self, ad: Ad, granted: ClaimGranted) -> bool:
        """Whether a job would ask for a claim that there is already."""
        return self.terms.suits(ad, granted.lease) and self._may_go(ad, granted.startd)

    def _may_go(self, ad: Ad, startd: str) -> bool:
        pool = pool_of(startd)
        return not pool or may_flock(ad, pool, by_default=self._flocks)
