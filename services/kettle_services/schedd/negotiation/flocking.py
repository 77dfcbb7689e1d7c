"""
Jobs that go to other pools: the requests there, the choice of the pool, and the results.

Each pool has a visit of its own (`kettle.flocking`), which may fail or hang alone: nothing here waits for it, and the
home pool is asked as if there was no other. What a pool gives is a claim like all others, on a startd with the pool's
name before its own.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kettle import VERSION
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, BusError, RefusedError, Served
from kettle.flocking.passes import Passes
from kettle.flocking.pool_connections import PoolConnection, PoolConnections, StartdRouter
from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.jobs.universes import unmatched
from kettle_services.schedd.domain.negotiation.flocking import Level, flocked, may_flock
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.nodes import is_parallel
from kettle_services.schedd.negotiation.resource_requests import ResourceRequests
from kettle_services.schedd.negotiation.significance import learn_significant
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import MATCHED, Matched, MatchedSlot
from kettle_wire.commands.startd import Done
from kettle_wire.events import Event
from kettle_wire.flocking import abroad, guest
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import submitters_key

_FLOOR_S: Final = 0.1
"""Between two looks at the queue, however much happens to it."""
_GOING: Final = 10_000
"""Autoclusters of which it is remembered where their jobs may go."""
_LOOK_S: Final = 2.0
"""The longest between two looks: jobs may have waited long enough meanwhile."""

_log: Final = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class Flock:
    """
    The other pools of one schedd. Made before the claims, which speak with startds by its `ways`; then `use` what asks for them.
    """

    def __init__(self, bus: Bus, queue: Queue, tasks: asyncio.TaskGroup, settings: ScheddSettings) -> None:
        self._queue = queue
        self._settings = settings
        self._visits = PoolConnections(Passes(settings.home_path), tasks, self._visit_pool)
        self.ways: Final = StartdRouter(bus, self._visits)
        self._order = {pool: place for place, pool in enumerate(settings.flock_to, start=1)}
        self._levels: dict[str, Level] = {}
        self._said: Ad = {}
        self._wakers: list[Callable[[], None]] = []
        self._going: dict[tuple[int, str], bool] = {}
        self._requester: ClaimRequester
        self._stir = asyncio.Event()
        self._pools: dict[str, asyncio.Event] = {}
        """Set for those that are reached and are to look at what there is to say."""

    def use(self, requester: ClaimRequester) -> None:
        """What is matched there is asked of these; pools are visited from now on."""
        self._requester = requester
        for pool in (*self._settings.flock_to, *self._queue.claim_use.abroad.values()):
            self._visits[pool]

    def named(self, pool: str) -> str:
        """With what the ids of claims in a pool begin."""
        return f"{self._visits[pool].visitor}#" if pool else ""

    def on_change(self, waker: Callable[[], None]) -> None:
        """Call `waker` when `ad` says something else."""
        self._wakers.append(waker)

    def on_event(self, event: Event) -> None:
        """Something was recorded."""
        del event
        self._stir.set()

    # -- how far -----------------------------------------------------------------------------------------------------

    async def watch_demand(self) -> None:
        """Check which jobs wait, and notify the pools; never returns."""
        while self._settings.flock_to or self._queue.claim_use.abroad:
            self._stir.clear()
            self._look(time.monotonic())
            if (said := self.ad()) != self._said:
                self._said = said
                for waker in self._wakers:
                    waker()
            for pool in self._pools.values():
                pool.set()
            await asyncio.sleep(_FLOOR_S)
            try:
                async with asyncio.timeout(min(_LOOK_S, max(_FLOOR_S, self._settings.flock_patience / 4))):
                    await self._stir.wait()
            except TimeoutError:
                pass  # some may have waited long enough
        await asyncio.Event().wait()

    def _look(self, now: float) -> None:
        for gone in self._levels.keys() - self._queue.tally.by_submitter.keys():
            del self._levels[gone]
        for submitter in self._queue.tally.by_submitter:
            waiting = any(
                count > self._requester.asked.jobs[submitter, autocluster] and self._goes_anywhere(job)
                for _, job, autocluster, count in self._queue.demand.requests(submitter)
            )
            level = self._levels.setdefault(submitter, Level())
            before = level.pools
            level.look(
                now,
                waiting=waiting,
                patience=self._settings.flock_patience,
                most=len(self._settings.flock_to),
            )
            if level.pools != before:
                extra = {"submitter": submitter, "pools": level.pools, "before": before}
                _log.info("flock level", extra=extra)

    def _goes_anywhere(self, job: JobId) -> bool:
        return any(self._goes(job, pool) for pool in self._settings.flock_to)

    def _goes(self, job: JobId, pool: str) -> bool:
        """
        Whether a job may run in a pool: asked once of the jobs of an autocluster, which say the same of it.
        """
        key = self._queue.autocluster(job), pool
        known = self._going.get(key)
        if known is None:
            if len(self._going) >= _GOING:
                self._going.clear()
            known = self._going[key] = self._may_go(job, pool)
        return known

    def _may_go(self, job: JobId, pool: str) -> bool:
        """
        Concurrency limits are counted where they are: jobs that use some stay. So do those of several nodes, which need
        all of them in one pool.
        """
        if (
            is_parallel(self._queue, job)
            or unmatched(self._queue.universe(job))
            or self._queue.clusters[job.cluster].limited
        ):
            return False
        return may_flock(self._queue.ad(job), pool, by_default=self._settings.flock_by_default)

    # -- updates ------------------------------------------------------------------------------------------------

    def ad(self) -> Ad:
        """What the schedd's ad says of other pools."""
        if not self._settings.flock_to:
            return {}
        states = (f"{pool}: {self._visits[pool].trouble or 'reached'}" for pool in self._settings.flock_to)
        return {
            "FlockTo": ", ".join(self._settings.flock_to),
            "FlockLevel": max((level.pools for level in self._levels.values()), default=0),
            "FlockStates": "; ".join(states),
        }

    def explain(self, job: JobId) -> str:
        """The state of other pools for an idle job, as a sentence; empty if there are none."""
        pools = self._settings.flock_to
        if not pools:
            return ""
        suitable = [pool for pool in pools if self._goes(job, pool)]
        if not suitable:
            return "it is not to run in other pools (WantFlocking, FlockTo, its limits)"
        level = self._levels.get(self._queue.submitter(job), Level())
        said: list[str] = []
        for pool in suitable:
            if trouble := self._visits[pool].trouble:
                said.append(f"the pool {pool} is not reached: {trouble}")
            elif self._order[pool] <= level.pools:
                said.append(f"it is offered to the pool {pool} too, as {self._visits[pool].visitor}")
            else:
                said.append(f"it may go to the pool {pool} when it has waited longer")
        return "; ".join(said)

    # -- one pool ----------------------------------------------------------------------------------------------------

    async def _visit_pool(self, visit: PoolConnection, bus: NatsBus) -> None:
        """Be a visitor of one pool until the connection is over."""
        there = _VisitedPool(self, visit, bus)
        self._pools[visit.name] = there.stir
        try:
            await bus.serve("schedd", visit.visitor, [Served(MATCHED, there.matched)], version=VERSION)
            bus.on_return(there.repeat)
            await there.advertise()
        finally:
            if self._pools.get(visit.name) is there.stir:
                del self._pools[visit.name]

    def is_asked(self, submitter: str, pool: str) -> bool:
        """Whether a submitter's jobs are offered to a pool now."""
        level = self._levels.get(submitter)
        return level is not None and 0 < self._order.get(pool, 0) <= level.pools

    def demand(self, pool: str) -> ResourceRequests:
        """What is asked of a pool."""
        return ResourceRequests(self._queue, self._requester, lambda job: self._goes(job, pool))

    @property
    def queue(self) -> Queue:
        """The queue of this schedd."""
        return self._queue

    @property
    def ad_interval(self) -> float:
        """Seconds between repeats of an ad that has not changed."""
        return self._settings.ad_interval

    def asked(self, submitter: str) -> int:
        """How many claims are being asked for, anywhere, for jobs of a submitter."""
        return self._requester.asked.limits.claims(submitter)

    def learn_significant(self, names: Sequence[str]) -> None:
        """Machines of a pool look at these attributes of jobs."""
        if learn_significant(self._queue, names):
            self._requester.wake()
            for stir in self._pools.values():
                stir.set()

    def matched(self, pool: str, submitter: str, match: MatchedSlot) -> None:
        """A pool offers a slot to a submitter."""
        job = self._queue.demand.next_job(submitter, match.autocluster)
        if job is None or not self._goes(job, pool):
            return
        self._levels.setdefault(submitter, Level()).offered(self._order.get(pool, 0))
        startd = abroad(pool, match.startd)
        self._requester.request_matched(
            msgspec.structs.replace(match, submitter=submitter, startd=startd, limits={})
        )

    def close(self) -> None:
        """Visit no pool any more."""
        self._visits.close()


class _VisitedPool:
    """Our messages in one pool, in both directions."""

    def __init__(self, flock: Flock, visit: PoolConnection, bus: NatsBus) -> None:
        self._flock = flock
        self._visit = visit
        self._bus = bus
        self._demand = flock.demand(visit.name)
        self._guests: dict[str, str] = {
            guest(name, visit.visitor): name for name in flock.queue.tally.by_submitter
        }
        """How submitters are called there -> how at home."""
        # An ad of an earlier visit that is not repeated would be believed for its whole lifetime.
        self._published: dict[str, bytes] = {
            submitters_key(visit.visitor, name): b"" for name in self._guests
        }
        self._cycles: dict[str, int] = {}
        self._refreshed = float("-inf")
        self.stir = asyncio.Event()

    def repeat(self) -> None:
        """The bus came back, perhaps without our ads."""
        self._refreshed = float("-inf")
        self.stir.set()

    async def advertise(self) -> None:
        """Publish the demand there, when it changes and periodically; never returns."""
        bucket = self._bus.subjects.ads
        try:
            while True:
                self.stir.clear()
                try:
                    await self._publish(bucket)
                except BusError as error:  # ads are repeated anyway
                    _log.warning("ads not published", extra={"pool": self._visit.name, "cause": str(error)})
                await self.stir.wait()
        finally:
            async with asyncio.timeout(1.0):
                for key in self._published:
                    await self._bus.delete(bucket, key)

    async def _publish(self, bucket: str) -> None:
        now, running = time.monotonic(), flocked(self._flock.queue, self._visit.name)
        everything = now - self._refreshed >= self._flock.ad_interval
        if everything:
            self._refreshed = now
        ads: dict[str, bytes] = {}
        for submitter in list(self._flock.queue.tally.by_submitter):
            asks = self._flock.is_asked(submitter, self._visit.name)
            if asks or running[submitter]:
                ad = self._ad(submitter, running[submitter], asks=asks)
                ads[submitters_key(self._visit.visitor, ad.name)] = _encode(ad)
        for key in self._published.keys() - ads.keys():
            await self._bus.delete(bucket, key)
        for key, value in ads.items():
            if everything or self._published.get(key) != value:
                await self._bus.put(bucket, key, value)
        self._published = ads

    def _ad(self, submitter: str, running: int, *, asks: bool) -> SubmitterAd:
        name = guest(submitter, self._visit.visitor)
        self._guests[name] = submitter
        requests = self._demand.requests(submitter) if asks else []
        return SubmitterAd(
            name=name,
            schedd=self._visit.visitor,
            idle=sum(request.count for request in requests),
            running=running,
            held=0,
            requests=requests,
            cycle=self._cycles.get(submitter, 0),
            claims=running + self._flock.asked(submitter),
            tag=self._visit.name,
            flocks=True,
        )

    async def matched(self, request: Matched, caller: Identity) -> Done:
        """That pool's negotiator offers slots: this is advice, as from our own."""
        if caller != daemon("negotiator"):
            raise RefusedError(RefusalCode.DENIED, f"only a negotiator may say this, not {caller.name}")
        self._flock.learn_significant(request.significant)
        for match in request.matches:
            submitter = self._guests.get(match.submitter)
            if submitter is not None:
                self._cycles[submitter] = request.cycle
                self._flock.matched(self._visit.name, submitter, match)
        self.stir.set()
        return Done()
