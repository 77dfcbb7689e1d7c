"""
Has provisioners do what was decided about leases, when it is recorded, and decides on what they answer.

A request for machines is sent once. Whatever goes wrong with it on the way is an answer, too: nobody got it, so nothing was made;
or nobody knows. All others are sent again when it is time for it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from kettle.bus.ports import Bus, BusError, NoResponderError, RefusedError
from kettle.faults import fault_point
from kettle.runtime import Telemetry
from kettle_services.scaler.console_files import ConsoleFiles
from kettle_services.scaler.domain.leases.answers import answered
from kettle_services.scaler.domain.leases.book import Act, Create, Decision, Dismiss, Drain, Look, Remove
from kettle_services.scaler.domain.leases.passing import due, restarted
from kettle_services.scaler.domain.leases.reconciling import holder, looked
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers
from kettle_services.scaler.domain.leases.wishes import drained
from kettle_services.scaler.record import Record
from kettle_services.scaler.settings import ScalerSettings
from kettle_wire.commands.iam import REMOVE_WORKER, RemoveWorker
from kettle_wire.commands.provisioner import (
    CREATE_MACHINES,
    LOOK_AT_MACHINES,
    REMOVE_MACHINES,
    Created,
    CreateMachines,
    LookAtMachines,
    MachineLooked,
    MachineRemoved,
    RemoveMachines,
    Trouble,
)
from kettle_wire.commands.startd import DRAIN
from kettle_wire.commands.startd import Drain as DrainMachine
from kettle_wire.events import Event
from kettle_wire.frames import Frame
from kettle_wire.leases import ErrorClass, Order
from kettle_wire.telemetry.worker_pool_metrics import CREATES

_CHUNK: Final = 10
"""Orders of one command: one that takes long keeps the answers of the others back."""
_HANDLES: Final = 50
_AT_ONCE: Final = 32
"""Commands to provisioners of one provider at the same time."""
_HEARD: Final = 0.9
"""Part of the time after which an attempt is in doubt, in which its answer is waited for."""
_TICK_S: Final = 1.0
_PAUSE_S: Final = 0.1
"""From one look at what is due to the next, at least."""

_log: Final = logging.getLogger(__name__)


def timers_of(settings: ScalerSettings) -> Timers:
    """How long what may take, as it is set."""
    return Timers(
        answer=settings.answer,
        shortest_boot=settings.shortest_boot,
        longest_boot=settings.longest_boot,
        phase=settings.phase,
        dead=settings.dead,
        orphan_grace=settings.orphan_grace,
        removal=settings.removal_interval,
    )


class Provisioning:
    """The leases of a scaler, and what is done about them."""

    def __init__(self, bus: Bus, record: Record, settings: ScalerSettings, telemetry: Telemetry) -> None:
        self.seen: Final = Seen(time.time())
        self.book: Final = record.state.book(timers_of(settings))
        self.consoles: Final = ConsoleFiles(settings.home_path / "consoles")
        self._bus = bus
        self._record = record
        self._provisioner = settings.provisioner
        self._iam = settings.iam
        self._patience = settings.answer * _HEARD
        self._acts: asyncio.Queue[Sequence[Act]] = asyncio.Queue()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._changed = asyncio.Event()
        self._creates = telemetry.counter(CREATES)
        record.on_commit(self._committed)

    def decision(self) -> Decision:
        """A decision at this moment: fill it, and have it carried out."""
        return Decision(self.book, self.seen, time.time())

    async def carry_out(self, decision: Decision, *, more: Sequence[tuple[str, Event]] = ()) -> None:
        """
        Record what was decided, with what belongs into the same frame, and begin what is to be done because of it.
        """
        changes = [*more, *decision.changes]
        if changes:
            await self._record.record(changes)
        self.act(decision.acts)

    def act(self, acts: Sequence[Act]) -> None:
        """Begin what was decided and is recorded."""
        if acts:
            self._acts.put_nowait(acts)

    async def run(self) -> None:
        """Do what is to be done, without end. What a process before this one was asking for is in doubt."""
        begin = self.decision()
        restarted(begin)
        await self.carry_out(begin)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass_time())
            while True:
                self._dispatch(tasks, await self._acts.get())

    def _committed(self, frame: Frame) -> None:
        del frame
        self._changed.set()

    async def _pass_time(self) -> None:
        while True:
            self._changed.clear()
            decision = self.decision()
            due(decision)
            await self.carry_out(decision)
            await asyncio.sleep(_PAUSE_S)
            try:
                async with asyncio.timeout(_TICK_S):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _dispatch(self, tasks: asyncio.TaskGroup, acts: Sequence[Act]) -> None:
        """Acts of one kind at one provider travel together."""
        together: dict[tuple[str, type[Act], bool], list[Act]] = {}
        for act in acts:
            match act:
                case Drain(lease, why, busy):
                    tasks.create_task(self._empty(lease, why) if busy else self._drain(lease, why))
                case Dismiss(lease):
                    tasks.create_task(self._dismiss(lease))
                case _:
                    console = isinstance(act, Remove) and act.console
                    together.setdefault((act.provider, type(act), console), []).append(act)
        for (provider, _, _), alike in together.items():
            size = _CHUNK if isinstance(alike[0], Create) else _HANDLES
            for start in range(0, len(alike), size):
                tasks.create_task(self._in_turn(provider, alike[start : start + size]))

    async def _in_turn(self, provider: str, alike: Sequence[Act]) -> None:
        async with self._turns.setdefault(provider, asyncio.Semaphore(_AT_ONCE)):
            orders = [act.order for act in alike if isinstance(act, Create)]
            if orders:
                await self._create(provider, orders)
            if looks := [act.handle for act in alike if isinstance(act, Look)]:
                await self._look(provider, looks)
            if removals := [act for act in alike if isinstance(act, Remove)]:
                handles = [act.handle for act in removals]
                await self._remove(provider, handles, console=removals[0].console)

    async def _create(self, provider: str, orders: Sequence[Order]) -> None:
        fault_point("lease.submitting")
        request = CreateMachines(
            id=f"{orders[0].lease}.{orders[0].attempt}", provider=provider, orders=list(orders)
        )
        try:
            reply = await self._bus.call(CREATE_MACHINES, self._provisioner, request, deadline=self._patience)
            created = reply.created
        except (NoResponderError, RefusedError) as error:
            trouble = Trouble(error=_class_of(error), words=str(error))
            created = [Created(lease=each.lease, attempt=each.attempt, trouble=trouble) for each in orders]
        except BusError as error:
            created = [
                Created(
                    lease=each.lease, attempt=each.attempt, words=f"no answer of the provisioner: {error}"
                )
                for each in orders
            ]
        fault_point("lease.answered")
        decision = self.decision()
        for each in created:
            self._creates.add(1, provider, _result(each))
            answered(decision, each)
        await self.carry_out(decision)

    async def _look(self, provider: str, handles: Sequence[str]) -> None:
        request = LookAtMachines(provider=provider, handles=list(handles))
        try:
            reply = await self._bus.call(
                LOOK_AT_MACHINES, self._provisioner, request, deadline=self._patience
            )
        except BusError as error:
            _log.info("machines could not be looked at", extra={"provider": provider, "cause": str(error)})
            return
        await self._looked(provider, reply.machines)

    async def _remove(self, provider: str, handles: Sequence[str], *, console: bool) -> None:
        fault_point("lease.removing")
        request = RemoveMachines(provider=provider, handles=list(handles), console=console)
        try:
            reply = await self._bus.call(REMOVE_MACHINES, self._provisioner, request, deadline=self._patience)
        except BusError as error:
            _log.warning("machines could not be removed", extra={"provider": provider, "cause": str(error)})
            return
        await self._looked(provider, reply.machines)

    async def _looked(self, provider: str, machines: Sequence[MachineLooked | MachineRemoved]) -> None:
        for each in machines:
            if isinstance(each, MachineRemoved) and each.console:
                await self._keep(provider, each.handle, each.console)
        decision = self.decision()
        for each in machines:
            looked(decision, provider, each)
        await self.carry_out(decision)

    async def _keep(self, provider: str, handle: str, text: str) -> None:
        lease = holder(self.book, provider, handle)
        if lease is not None and not lease.console:
            try:
                await asyncio.to_thread(self.consoles.keep, lease.id, text)
            except OSError as error:  # it is for people who look for a cause, and nothing depends on it
                _log.warning(
                    "what a machine wrote is not kept", extra={"lease": lease.id, "cause": str(error)}
                )

    async def _drain(self, lease: str, why: str) -> None:
        """Its startd takes no more jobs if none has anything of it: then it goes, else it stays."""
        try:
            await self._bus.call(DRAIN, lease, DrainMachine(id=f"{lease}.idle", reason=why, idle=True))
        except BusError as error:
            _log.info("a machine is not drained", extra={"lease": lease, "cause": str(error)})
            return
        decision, held = self.decision(), self.book.leases.get(lease)
        if held is not None:
            drained(decision, held, why)
            await self.carry_out(decision)

    async def _empty(self, lease: str, why: str) -> None:
        """
        Its startd takes no more jobs from now on; when it is to end, and by when, the machine hears with its next renewal.
        """
        try:
            await self._bus.call(
                DRAIN, lease, DrainMachine(id=f"{lease}.empty", reason=why, speed="peaceful")
            )
        except BusError as error:
            _log.info(
                "a machine is told later to take no more jobs", extra={"lease": lease, "cause": str(error)}
            )

    async def _dismiss(self, lease: str) -> None:
        """Its credential ends by itself, so that a try is enough."""
        try:
            await self._bus.call(REMOVE_WORKER, self._iam, RemoveWorker(id=f"{lease}.gone", worker=lease))
        except BusError as error:
            _log.info("iam keeps a machine that is gone", extra={"lease": lease, "cause": str(error)})


def _result(created: Created) -> str:
    if created.handle:
        return "made"
    if created.trouble is None:
        return "in-doubt"
    return (created.trouble.error or ErrorClass.TRANSIENT).value


def _class_of(error: NoResponderError | RefusedError) -> ErrorClass:
    """
    What it means that a provisioner refuses as a whole: it has no such provider; or nobody is there, or has time.
    """
    refused = isinstance(error, RefusedError) and error.retry_after_ms == 0
    return ErrorClass.CONFIG if refused else ErrorClass.TRANSIENT
