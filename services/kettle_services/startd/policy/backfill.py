"""Runs what a machine's owner has run on slots that do nothing for the pool: by starters, like jobs."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from kettle.execution.attempts import stored_reports
from kettle.execution.attempts.job_spec import AttemptId, Isolation, JobSpec, StoredReport
from kettle.execution.attempts.messages import Question
from kettle.execution.job_environment.job_ad import long_form
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.execution.system.linux import boottime
from kettle.jobs.quoting import join_v2
from kettle_services.startd.domain.ads import slot_ad
from kettle_services.startd.domain.policy import backfill
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.claim import Now, StopOrder
from kettle_services.startd.domain.state.machine import Backfill, Machine
from kettle_services.startd.machine import host
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters.cleanup_tasks import CleanupTasks
from kettle_services.startd.starters.pool import StarterPool
from kettle_services.startd.starters.supervisor import StarterSupervisor
from kettle_wire.attempts import Ending
from kettle_wire.codes import Universe, VacateCode
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import Report

_log: Final = logging.getLogger(__name__)
_LEASE_S: Final = 300.0
"""How long it outlives a startd that does not come back."""
_ACCOUNTS: Final = 90_000
"""Above the numbers of claims: it shares no account with a job."""
_EVICTED: Final = StopOrder(
    Ending(code=VacateCode.StartdPreemptExpression, reason="the slot is wanted"), hard=True
)


class Backfilling:
    """
    Call `look` after each change of the machine, and periodically; `told` is called when a slot's state has changed.
    """

    def __init__(
        self,
        machine: Machine,
        settings: StartdSettings,
        *,
        execute: Path,
        cgroups: CgroupLayout | None,
        containers: ContainerOffer,
        isolation: Isolation,
        starter_pool: StarterPool,
        evictions: CleanupTasks,
        moment: Callable[[], Now],
        told: Callable[[], None],
    ) -> None:
        self._machine = machine
        self._settings = settings
        self._execute = execute
        self._cgroups = cgroups
        self._containers = containers
        self._isolation = isolation
        self._evictions = evictions
        self._moment = moment
        self._told = told
        self._starters = StarterSupervisor(starter_pool, self)
        self._state = settings.state_path / "backfill"
        """Its starters find no startd there: to a successor of ours they mean nothing."""
        for directory in (stored_reports.REPORTS, stored_reports.DRAFTS):
            for left in (self._state / directory).glob("*"):
                left.unlink(missing_ok=True)
        self._running: dict[int, AttemptId] = {}
        self._gone: dict[int, asyncio.Event] = {}
        self.pids: dict[AttemptId, int] = {}

    def evaluate(self) -> None:
        """Start and end what is to be started and ended now."""
        if not self._settings.backfill_command:
            return
        before = dict(self._machine.backfill)
        for slot in self._machine.facts.slots:
            self._look(slot)
        for attempt in self._running.values():
            self._starters.renew_lease(attempt, boottime() + _LEASE_S)
        if before != self._machine.backfill:
            self._told()

    def _look(self, slot: Slot) -> None:
        known, now = self._machine.backfill.get(slot.number), self._moment()
        after, order = backfill.evaluate(known, backfill.asked(self._machine, slot, now), now)
        if after == known:
            return
        self._put(slot.number, after)
        if order == "start":
            self._start(slot)
        elif order == "kill":
            self._starters.stop_attempt(self._running[slot.number], _EVICTED, limit=0.0)
        else:
            self._look(slot)  # what may begin begins at once

    def is_leaving(self, slot: int) -> bool:
        """Whether the program in a slot has been told to end, and still runs."""
        known = self._machine.backfill.get(slot)
        return known is not None and known.activity == "Killing"

    async def left(self, slot: int) -> None:
        """Wait until it has ended."""
        while self.is_leaving(slot):
            await self._gone[slot].wait()

    async def emptied(self) -> None:
        """Wait until nothing of it runs."""
        await self._starters.emptied()

    def close(self) -> None:
        """Stop following it: the program is ended by the next startd, or ends with its lease."""
        self._starters.close()

    # -- one slot ----------------------------------------------------------------------------------------------------

    def _put(self, slot: int, known: Backfill | None) -> None:
        if known is None:
            self._machine.backfill.pop(slot, None)
        else:
            self._machine.backfill[slot] = known

    def _start(self, slot: Slot) -> None:
        spec = self._spec(slot)
        self._running[slot.number] = spec.id
        self._gone[slot.number] = asyncio.Event()
        self._starters.expect(spec.id)
        self._starters.start(spec)

    def _spec(self, slot: Slot) -> JobSpec:
        settings, machine = self._settings, self._machine
        path, *arguments = settings.backfill_command
        size, account = machine.offered(slot), host.account(settings, _ACCOUNTS + slot.number)
        stored_reports.make_places(self._state)
        return JobSpec(
            key=ClaimKey(f"backfill#{slot.number}#{time.time_ns()}", ""),
            job=JobId(0, slot.number),
            attempt=1,
            schedd="",
            execute=str(self._execute),
            state=str(self._state),
            slot=machine.facts.slot_name(slot.number),
            cpus=size.cpus,
            memory=size.memory,
            disk=size.disk,
            devices={tag: [] for tag in machine.facts.devices},
            ad={
                "JobUniverse": int(Universe.VANILLA),
                "ClusterId": 0,
                "ProcId": slot.number,
                "Cmd": path,
                "Arguments": join_v2(arguments),
                "TransferExecutable": False,
                "TransferOutput": "",
            },
            machine_ad=long_form(slot_ad(machine, slot, now=time.time())),
            inputs=[],
            received=0,
            began=boottime(),
            deadline=boottime() + _LEASE_S,
            sequence=0,
            account=account,
            cgroups=self._cgroups,
            home=host.home() if account is None else "",
            kill_timeout=0.0,
            monitor_interval=settings.monitor_interval,
            measure_interval=settings.measure_interval,
            enforce_disk=settings.enforce_disk,
            containers=self._containers.policy,
            isolation=self._isolation,
        )

    def _end(self, attempt: AttemptId) -> None:
        """Nothing of it is left."""
        slot = attempt.job.proc
        self._starters.forget(attempt)
        self.pids.pop(attempt, None)
        if self._running.get(slot) != attempt:
            return
        del self._running[slot]
        known = self._machine.backfill.get(slot)
        if known is not None:
            self._put(slot, backfill.ended(known, self._moment()))
        self._gone.pop(slot).set()
        self._told()

    # -- messages of the starters
    # ---------------------------------------------------------------------------------------

    def starter_connected(self, attempt: AttemptId, pid: int, started: int) -> None:
        """A starter has registered."""
        del started
        self.pids[attempt] = pid

    def record_report(self, report: Report) -> None:
        """It runs, or reports its usage, which is ignored."""

    def forward_question(self, attempt: AttemptId, question: Question) -> None:
        """It has no submit side that could answer."""

    def record_exit(self, stored: StoredReport) -> None:
        """It has ended."""
        _log.info("backfill ended", extra={"attempt": stored.id.name, "how": str(stored.report.body)[:300]})
        stored_reports.forget(str(self._state / "reports"), stored.id)
        if stored.id not in self._evictions:
            self._end(stored.id)

    def starter_lost(self, attempt: AttemptId, *, ran: bool) -> None:
        """Its starter has ended: either it was done, or we clean up after it."""
        stored_reports.forget(str(self._state / "reports"), attempt)
        if ran:
            account = host.account(self._settings, _ACCOUNTS + attempt.job.proc)
            self._evictions.begin(attempt, account, partial(self._end, attempt))
        else:
            _log.warning("backfill could not be started", extra={"attempt": attempt.name})
            self._end(attempt)
