"""The scaler's loop: wake when something changes, plan, record, and have it carried out."""

import asyncio
import logging
import random
import time
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle.classad import FOREIGN_STEPS, Context
from kettle.eventsourcing.log import Log
from kettle.runtime import Telemetry
from kettle_services.scaler.domain import plans
from kettle_services.scaler.domain.leases.breakers import template_of
from kettle_services.scaler.domain.leases.lease import SERVING
from kettle_services.scaler.domain.leases.wishes import drain, release
from kettle_services.scaler.domain.planning.bounds import DAY_S, day_of, running_costs
from kettle_services.scaler.domain.planning.demand import Patience
from kettle_services.scaler.domain.planning.inputs import Inputs, Room, gathered
from kettle_services.scaler.domain.planning.planning import Plan
from kettle_services.scaler.domain.planning.shrinking import next_idle
from kettle_services.scaler.domain.planning.snapshot import Snapshot
from kettle_services.scaler.domain.planning.spending import Spending
from kettle_services.scaler.domain.planning.templates import learned_from
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.record import Record
from kettle_services.scaler.rights import AskedRights
from kettle_services.scaler.rooster import Rooster
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.watching import Watching, machine_of
from kettle_wire.ads.types import Scalar
from kettle_wire.commands.provisioner import ASK_ROOM, AskProviderRoom
from kettle_wire.events import decode
from kettle_wire.events.lease import LeaseGone
from kettle_wire.events.plan import PlanMade, RemovalCause
from kettle_wire.frames import Frame
from kettle_wire.telemetry.worker_pool_metrics import PLAN_DURATION

_TABLE_STEPS: Final = 2_000_000
"""What one group's expressions may take for all slots together, as with a negotiator."""
_GATHERED_S: Final = 0.1
"""A change is waited for so long together with those that come with it."""
_ROOM_S: Final = 60.0
_SETTLES_S: Final = 1.5
"""A schedd shows less work half a second late; what nothing that is there could ever run is asked for at once all the same."""
_DEADLINE_S: Final = 10.0
_PAGE: Final = 500
"""So many frames are read at once, the newest first."""
_IDLE_PART: Final = 9
"""Plans leave so much more time to everything else than they take."""
_FINAL: Final = frozenset({RemovalCause.POOL, RemovalCause.BUDGET, RemovalCause.SPARSE})
"""What is removed because of these takes no more jobs at once, also if some run."""
_GONE: Final = LeaseGone.__struct_config__.tag
_log: Final = logging.getLogger(__name__)


class Planner:
    """Makes plans, one after the other."""

    def __init__(
        self,
        bus: Bus,
        record: Record,
        provisioning: Provisioning,
        watching: Watching,
        rooster: Rooster,
        settings: ScalerSettings,
        telemetry: Telemetry,
    ) -> None:
        self._bus = bus
        self._record = record
        self._provisioning = provisioning
        self._watching = watching
        self._rooster = rooster
        self._settings = settings
        self._rights = AskedRights(bus, settings.negotiator)
        self._patience = Patience()
        self._idle: dict[str, float] = {}
        """Machines of static pools without a job, and since when."""
        self._sparse: dict[str, float] = {}
        """Machines with few jobs, for which others have room, and since when."""
        self._rooms: dict[str, Room] = {}
        self._spending = Spending()
        self._learned: dict[str, dict[str, Scalar]] = {}
        self._latest: PlanMade | None = None
        self._durations = telemetry.histogram(PLAN_DURATION)
        self._wake = asyncio.Event()
        record.on_commit(self._committed)
        watching.on_change(self.wake)

    def wake(self) -> None:
        """Something has changed."""
        self._wake.set()

    @property
    def latest(self) -> PlanMade | None:
        """The plan that was made last, also if it said nothing new and was not recorded."""
        if self._latest is not None:
            return self._latest
        last = self._record.state.plans.states.get(plans.NAME)
        return last.plan if last is not None else None

    def spent(self, pool: str) -> float:
        """What a pool has cost on this day (UTC)."""
        now = time.time()
        there = [each for each in self._provisioning.book.leases.values() if each.requested.pool == pool]
        return self._spending.on(now).get(pool, 0.0) + running_costs(there, now)

    async def recall(self, log: Log) -> None:
        """Read what was spent on this day."""
        since, until = day_of(time.time()), self._record.shard.frame
        pages: list[list[Frame]] = []
        oldest = since + DAY_S
        while until and oldest >= since:
            after = max(0, until - _PAGE)
            page = [frame async for frame in log.read(self._record.shard.name, after=after, until=until)]
            pages.append(page)
            oldest, until = min((frame.at / 1e6 for frame in page), default=0.0), after
        for frame in (frame for page in reversed(pages) for frame in page if frame.at / 1e6 >= since):
            self._spend(frame)

    def _committed(self, frame: Frame) -> None:
        self._spend(frame)
        if any(entry.stream != plans.STREAM for entry in frame.entries):
            self._wake.set()

    def _spend(self, frame: Frame) -> None:
        for entry in frame.entries:
            if entry.type == _GONE:
                event = decode(entry.data)
                assert isinstance(event, LeaseGone), f"{entry.stream} has a {entry.type}"
                self._spending.add(entry.stream.partition("/")[2], event, frame.at / 1e6)

    async def run(self) -> None:
        """
        Plan whenever something has changed, a machine has been idle for long enough, or the interval has passed; never returns. The
        first plan waits for all ads.
        """
        await self._watching.listed.wait()
        while True:
            began = time.monotonic()
            took = await self._cycle() if self._record.state.pools.states else 0.0
            since = time.monotonic() - began
            await asyncio.sleep(max(self._settings.min_interval - since, _IDLE_PART * took, 0.0))
            try:
                async with asyncio.timeout(min(self._settings.interval, self._until_idle())):
                    await self._wake.wait()
            except TimeoutError:
                pass  # nothing came: what has waited for its time is looked at all the same
            await asyncio.sleep(_GATHERED_S)

    def _until_idle(self) -> float:
        pools, now = self._record.state.pools.states, time.time()
        ends = [
            self._idle[each.name] + each.pool.idle - now
            for each in self._rooster.members()
            if each.name in self._idle
        ]
        leases = next_idle(self._provisioning.book.leases.values(), pools, now)
        return min([leases, *(seconds for seconds in ends if seconds > 0)])

    async def watch_rooms(self) -> None:
        """Ask the providers of all pools how much more we may have, again and again; never returns."""
        while True:
            pools = [state.pool for state in self._record.state.pools.states.values() if not state.retired]
            for provider in sorted({offer.provider for pool in pools for offer in pool.offers}):
                await self._ask_room(provider)
            await asyncio.sleep(_ROOM_S if pools else self._settings.interval)

    async def _ask_room(self, provider: str) -> None:
        at = time.time()
        try:
            left = await self._bus.call(
                ASK_ROOM, self._settings.provisioner, AskProviderRoom(provider=provider), deadline=_DEADLINE_S
            )
        except BusError as error:
            _log.info("no room is told", extra={"provider": provider, "cause": str(error)})
            return
        if left.trouble is None:
            self._rooms[provider] = Room(machines=left.machines, cpus=left.cpus, memory=left.memory, at=at)

    async def _cycle(self) -> float:
        """One plan; the processor seconds that it took, in which nothing else was done here."""
        self._wake.clear()
        await self._rights.ask(self._watching.submitters.values())
        began, used = time.monotonic(), time.thread_time()
        plan = self._plan(self._patience)
        used = time.thread_time() - used
        self._idle = {machine: self._idle.get(machine, time.time()) for machine in plan.idle}
        self._sparse = {lease: self._sparse.get(lease, time.time()) for lease in plan.sparse}
        made = msgspec.structs.replace(plan.made, took=time.monotonic() - began)
        self._latest = made
        self._durations.record(made.took)
        decision = self._provisioning.decision()
        for removal in made.removals:
            lease = self._provisioning.book.leases[removal.lease]
            why = f"plan {made.number}: {removal.cause}"
            if removal.cause in _FINAL and not removal.force:
                drain(decision, lease, why, lease.ends)
            else:
                release(decision, lease, why, force=removal.force)
        last = self._record.state.plans.states.get(plans.NAME)
        changes, acts = self._rooster.planned(made)
        if plan.leases or decision.changes or changes or plans.is_news(made, last, now=time.time()):
            more = [
                (plans.STREAM, made),
                *((f"lease/{lease.lease}", lease) for lease in plan.leases),
                *changes,
            ]
            await self._provisioning.carry_out(decision, more=more)
        else:
            self._provisioning.act(decision.acts)
        self._rooster.act(acts)
        return used

    def plan_now(self) -> PlanMade:
        """What would be planned at this moment; nothing is done about it."""
        began = time.monotonic()
        made = self._plan(self._patience.copy()).made
        return msgspec.structs.replace(made, took=time.monotonic() - began)

    def _plan(self, patience: Patience) -> Plan:
        now = time.time()
        self._learn()
        submitters = sorted(self._watching.submitters.items())
        snapshot = Snapshot(
            self._watching.slots,
            submitters,
            self._rights.of(ad for _, ad in submitters),
            self._learned,
        )
        context = Context(
            now=lambda: int(now),
            random=random.Random(0).random,  # noqa: S311 - the same inputs give the same plan
            max_steps=FOREIGN_STEPS,
            max_table_steps=_TABLE_STEPS,
        )
        return snapshot.plan(self._inputs(now), patience, context)

    def _inputs(self, now: float) -> Inputs:
        last = self._record.state.plans.states.get(plans.NAME)
        return gathered(
            self._provisioning.book,
            self._record.state.pools.states,
            now=now,
            number=1 if last is None else last.plan.number + 1,
            rooms=self._rooms,
            spent=self._spending.on(now),
            max_actions=self._settings.max_actions,
            settles=_SETTLES_S,
            sparse=self._sparse,
            hosts=self._record.state.hosts.states,
            idle=self._idle,
            sound=self._provisioning.seen.sound is not None,
        )

    def _learn(self) -> None:
        """What machines of each template say; it is believed of those that come as well."""
        slots, leases = self._watching.slots, self._provisioning.book.leases
        for row, key in enumerate(slots.keys):
            lease = leases.get(machine_of(key))
            if lease is None or lease.state not in SERVING:
                continue
            template = template_of(lease.requested.pool, lease.offer)
            if template not in self._learned and (said := learned_from(slots.wire(row))) is not None:
                self._learned[template] = said
