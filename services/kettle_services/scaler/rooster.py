"""
Puts machines of static pools to sleep and wakes them, as was decided and recorded (HTCondor's rooster, and what startds do there).

Whether a machine is there is asked of its startd: while it takes no more jobs because of us, that is asked of it again; else it is
told to take jobs.  Both may be said as often as one likes.  Its provider is asked once for each attempt.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Final

from kettle.bus.ports import Bus, BusError, NoResponderError, RefusedError, ReplyTimeoutError
from kettle.faults import fault_point
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits
from kettle_services.scaler.domain.hosts.census import Member, members
from kettle_services.scaler.domain.hosts.host import KIND, Host
from kettle_services.scaler.domain.hosts.stepping import (
    Answers,
    Dropped,
    Emptied,
    Fence,
    Heard,
    HostAct,
    HostTimers,
    Idle,
    Mended,
    Needed,
    Occupied,
    Release,
    Silent,
    Stimulus,
    Switch,
    Switched,
    TimePasses,
    step,
)
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers, boot_limit
from kettle_services.scaler.domain.planning.sleepers import shown
from kettle_services.scaler.record import Record
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.watching import Watching
from kettle_wire.commands.provisioner import ANSWER_S, SWITCH_MACHINE, SwitchMachine
from kettle_wire.commands.startd import CANCEL_DRAIN, DRAIN, CancelDrain
from kettle_wire.commands.startd import Drain as DrainMachine
from kettle_wire.events import Event
from kettle_wire.events.plan import PlanMade
from kettle_wire.worker_pools import HostState

REQUEST: Final = "hibernate"
"""How we call our request to drain a machine: what others drain is left alone."""
_TICK_S: Final = 1.0
_ASK_S: Final = 5.0
"""A startd has so long to answer."""
_STARTS_S: Final = 30.0
"""A provisioner that is not there is waited for so long: one that was killed is started again."""
_AT_ONCE: Final = 64
_LOOKED_AT: Final = frozenset({HostState.HIBERNATING, HostState.WAKING})
_AWAITED: Final = frozenset({HostState.ASLEEP, HostState.WAKING, HostState.BROKEN})
_log: Final = logging.getLogger(__name__)

Changes = list[tuple[str, Event]]


class Rooster:
    """The machines of all static pools that hibernate."""

    def __init__(
        self,
        bus: Bus,
        record: Record,
        watching: Watching,
        seen: Seen,
        settings: ScalerSettings,
        timers: Timers,
    ) -> None:
        """`seen` says whether we hear what is said on the bus; `timers`: how long machines may boot."""
        self._bus: Final = bus
        self._record: Final = record
        self._watching: Final = watching
        self._seen: Final = seen
        self._provisioner: Final = settings.provisioner
        self._sleep: Final = settings.sleep_deadline
        self._pause: Final = settings.wake_pause
        self._dead: Final = settings.dead
        self._timers: Final = timers
        self._acts: asyncio.Queue[Sequence[HostAct]] = asyncio.Queue()
        self._asked: set[HostAct] = set()
        self._missing: dict[str, float] = {}
        """Machines that count as awake and show no slot, and since when."""
        self._heard: dict[str, float] = {}
        """When the last ad of a machine came that was taken notice of."""
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def members(self) -> list[Member]:
        """All machines, with how they are."""
        pools = self._record.state.pools.states
        return list(members((pools[name] for name in sorted(pools)), self._record.state.hosts.states))

    def planned(self, made: PlanMade) -> tuple[Changes, list[HostAct]]:
        """What a plan comes to: what is recorded with it, and what is done after that."""
        changes, acts = Changes(), list[HostAct]()
        if not made.wakes and not made.sleeps:
            return changes, acts
        there = {each.name: each for each in self.members()}
        why = f"plan {made.number}"
        steps: list[tuple[str, Stimulus]] = [
            *((each.machine, Needed(each.demand, f"{why}: a job waits for it")) for each in made.wakes),
            *((each.machine, self._idle(there[each.machine], why)) for each in made.sleeps),
        ]
        for machine, stimulus in steps:
            self._step(there[machine], stimulus, changes, acts)
        return changes, acts

    def _idle(self, member: Member, why: str) -> Idle:
        slots = shown(self._watching.slots, member.token)
        return Idle(member.pool.hibernate, f"{why}: it was idle for as long as its pool lets it", slots)

    def mended(self, pool: str, by: str) -> Changes:
        """Somebody has looked after the machines of a pool: those that did not wake are tried again."""
        changes = Changes()
        for each in self.members():
            if each.pool.name == pool:
                self._step(each, Mended(by), changes, [])
        return changes

    def act(self, acts: Sequence[HostAct]) -> None:
        """Begin what was decided and is recorded."""
        if acts:
            self._acts.put_nowait(acts)

    async def run(self) -> None:
        """Look after the machines; never returns."""
        await self._watching.listed.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass_time())
            while True:
                for act in await self._acts.get():
                    if act not in self._asked:  # what is being asked is not asked a second time
                        self._asked.add(act)
                        tasks.create_task(self._carry_out(act))

    async def _pass_time(self) -> None:
        while True:
            changes, acts = Changes(), list[HostAct]()
            self._look(time.time(), changes, acts)
            await self._commit(changes, acts)
            await asyncio.sleep(_TICK_S)

    def _look(self, now: float, changes: Changes, acts: list[HostAct]) -> None:
        """What has to be done because time passes, and because of what was heard."""
        there = self.members()
        names = {each.name for each in there}
        for name, host in self._record.state.hosts.states.items():
            if name not in names:
                dropped = Dropped("its pool has it no more, or lets its machines be")
                self._record_step(host, dropped, 0.0, changes, acts)
        if not there:
            return
        present = {key.partition(".")[0] for key in self._watching.slots.keys}
        fenced = self._watching.drained_by(REQUEST)
        for each in there:
            if each.host.state is HostState.AWAKE and each.token in fenced:
                self._step(each, Emptied(), changes, acts)  # it was cancelled, and who was to say so died
            for stimulus in self._noticed(each, present, now):
                self._step(each, stimulus, changes, acts)

    def _noticed(self, member: Member, present: set[str], now: float) -> Iterable[Stimulus]:
        host = member.host
        if host.state in _LOOKED_AT:
            yield TimePasses()
        heard = self._watching.heard.get(member.token, 0.0)
        if host.state in _AWAITED and heard > max(host.since, self._heard.get(member.name, 0.0)):
            self._heard[member.name] = heard
            yield Heard()
        if host.state is HostState.AWAKE and member.token not in present and self._seen.sound is not None:
            since = self._missing.setdefault(member.name, now)
            if now - since > self._dead:
                yield Silent()
        else:
            self._missing.pop(member.name, None)

    def _step(self, member: Member, stimulus: Stimulus, changes: Changes, acts: list[HostAct]) -> None:
        wake = boot_limit((), member.offer.boot, self._timers)
        self._record_step(member.host, stimulus, wake, changes, acts)

    def _record_step(
        self, host: Host, stimulus: Stimulus, wake: float, changes: Changes, acts: list[HostAct]
    ) -> None:
        timers = HostTimers(sleep=self._sleep, wake=wake, pause=self._pause)
        taken = step(host, stimulus, time.time(), timers)
        changes += [(f"{KIND}/{host.machine}", event) for event in taken.events]
        acts += taken.acts

    async def _commit(self, changes: Changes, acts: Sequence[HostAct]) -> None:
        if changes:
            await self._record.record(changes)
        self.act(acts)

    async def _carry_out(self, act: HostAct) -> None:
        try:
            async with self._turns:
                seen = await self._ask(act)
        finally:
            self._asked.discard(act)
        member = self._member(act.machine)
        if member is not None and seen is not None:
            changes, acts = Changes(), list[HostAct]()
            self._step(member, seen, changes, acts)
            await self._commit(changes, acts)

    async def _ask(self, act: HostAct) -> Stimulus | None:
        """What is seen; None: nothing that says anything."""
        match act:
            case Fence(machine):
                return await self._fence(machine)
            case Release(machine):
                return await self._release(machine)
            case Switch():
                return await self._switch(act)

    async def _fence(self, machine: str) -> Stimulus | None:
        fault_point("host.fencing")
        reason = "it is put to sleep until a job waits"
        try:
            await self._bus.call(
                DRAIN, machine, DrainMachine(id=REQUEST, reason=reason, idle=True), deadline=_ASK_S
            )
        except RefusedError as refused:
            return Occupied(str(refused))
        except BusError as error:
            return self._unheard(machine, error)
        return Emptied()

    async def _release(self, machine: str) -> Stimulus | None:
        try:
            await self._bus.call(CANCEL_DRAIN, machine, CancelDrain(request=REQUEST), deadline=_ASK_S)
        except RefusedError:
            return Answers()  # it is there, and we do not keep it from anything
        except BusError as error:
            return self._unheard(machine, error)
        return Answers()

    def _unheard(self, machine: str, error: BusError) -> Silent | None:
        """A machine is silent if nobody is there, or does not answer while we hear ourselves."""
        _log.debug("a machine does not answer", extra={"machine": machine, "cause": str(error)})
        gone = isinstance(error, NoResponderError) or (
            isinstance(error, ReplyTimeoutError) and self._seen.sound is not None
        )
        return Silent() if gone else None

    async def _switch(self, act: Switch) -> Stimulus | None:
        fault_point("host.switching")
        waits, trouble = Waits(steady(_TICK_S)), ""
        while (member := self._member(act.machine)) is not None and member.host.attempt == act.attempt:
            try:
                reply = await self._bus.call(
                    SWITCH_MACHINE, self._provisioner, _order(member, act), deadline=ANSWER_S
                )
            except NoResponderError as error:  # nothing was done, and one that is being started will do it
                trouble = f"no provisioner is there: {error}"
                if time.time() - member.host.since < _STARTS_S:
                    await waits.wait()
                    continue
            except RefusedError as error:
                trouble = str(error)
            except BusError as error:
                _log.info("nobody knows of a machine", extra={"machine": act.machine, "cause": str(error)})
                trouble = ""
            else:
                trouble = reply.trouble.words if reply.trouble is not None else ""
            fault_point("host.switched")
            return Switched(act.to, act.attempt, trouble)
        return None

    def _member(self, machine: str) -> Member | None:
        return next((each for each in self.members() if each.name == machine), None)


def _order(member: Member, act: Switch) -> SwitchMachine:
    """What a provisioner is asked; one attempt has one id, on whichever log it is."""
    attempt = f"{act.machine} {act.to} {act.attempt} {member.host.since}"
    return SwitchMachine(
        id=f"{REQUEST}.{hashlib.sha256(attempt.encode()).hexdigest()[:32]}",
        provider=member.offer.provider,
        machine=member.machine,
        to=act.to,
        level=member.pool.hibernate,
    )
