"""
The machine of a lease between joining and its end: it examines itself, takes jobs, and does what the scaler, a notice, its jobs or
the time says.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, Final

from kettle.bus.ports import Bus, BusError
from kettle.client.connections.transport import new_id
from kettle.execution.system.linux import boottime
from kettle.pool import Home, PoolError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits, slept
from kettle.runtime.machine_condition import MachineCondition, read_condition
from kettle_services.worker.domain import course as courses
from kettle_services.worker.domain.course import Course
from kettle_services.worker.examination import checks
from kettle_services.worker.guard import Line
from kettle_services.worker.services import Services
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.commands.iam import LEAVE, Leave
from kettle_wire.commands.scaler import RENEW, Notice, Phase, Renew, Renewed

_log: Final = logging.getLogger(__name__)
EXIT_FAILED: Final = 1
EXIT_UNFIT: Final = 3
"""It failed its examination."""
_ANSWER_S: Final = 10.0
"""For the scaler to answer; the next renewal does not wait for longer."""
_STARTS: Final = 5
"""So often its services are started again, one time soon after the other."""
_RECOVERED_S: Final = 60.0
"""Of running, after which earlier failures are forgotten."""


class Agent:
    """Keeps the machine to its course."""

    def __init__(
        self, told: Bootstrap, course: Course, bus: Bus, line: Line, home: Home, services: Services
    ) -> None:
        self.course = course
        self._told: Final = told
        self._bus = bus
        self._line = line
        self._home = home
        self._services = services
        self._began = course.renewed
        self._again = told.renewal
        self._changed = asyncio.Event()
        """The course is another; who waits for its next moment looks again."""
        self._report = asyncio.Event()
        """The scaler has to hear of it now."""
        self._progress, self._step, self._steps = "", 0, 0
        self._notices: list[Notice] = []
        self._skew: float | None = None

    # -- the course ---------------------------------------------------------------------------------------------------

    def turn(self, course: Course) -> None:
        """Keep to this course from now on."""
        before, self.course = self.course, course
        if before == course:
            return
        if before.phase != course.phase:
            if course.draining:
                self._progress = course.why
            _log.info("%s%s", course.phase, f": {self._progress}" if self._progress else "")
            self._report.set()
        self._line.tell(course.dead)
        self._changed.set()

    def enter(self, phase: Phase, progress: str = "", *, step: int = 0, steps: int = 0) -> None:
        """Say how far it is."""
        self._progress, self._step, self._steps = progress, step, steps
        self._report.set()
        self.turn(courses.entered(self.course, phase))

    def notice(self, notice: Notice) -> None:
        """The machine will be taken away."""
        self._notices = [*self._notices, notice][-16:]
        self.turn(courses.noticed(self.course, notice, boottime()))

    async def _until_drained(self) -> None:
        """Wait until it is to take no more jobs."""
        while not self.course.draining:
            await self._pass_time()

    async def _until_last_call(self) -> None:
        """Wait until jobs that still run are asked to end."""
        while boottime() < self.course.last_call:
            await self._pass_time()

    async def _pass_time(self) -> None:
        self._changed.clear()
        now = boottime()
        await slept(max(0.0, self.course.due(now) - now), self._changed)
        self.turn(courses.at_moment(self.course, boottime()))

    # -- the lease ----------------------------------------------------------------------------------------------------

    async def renew_forever(self) -> None:
        """Renew it, at once when there is something to say; never returns."""
        while True:
            self._report.clear()
            await self.renew()
            await slept(self._again, self._report)

    async def renew(self) -> None:
        """Say how the machine is, and hear what it is to do; without an answer its course goes on."""
        said, asked, at = self._said(), boottime(), time.time()
        try:
            answer = await self._bus.call(RENEW, "scaler", said, deadline=_ANSWER_S)
        except BusError as error:
            _log.warning("the lease is not renewed: %s", error)
            return
        self._skew = (at + time.time()) / 2 - answer.now
        self._heard(answer, asked)

    def _said(self) -> Renew:
        found = read_condition(self._home.path / "startd") or MachineCondition()
        if found.condemned:
            self.turn(courses.quarantined(self.course, found.condemned, boottime()))
        return Renew(
            phase=self.course.phase,
            progress=self._progress,
            step=self._step,
            steps=self._steps,
            age=boottime() - self._began,
            claims=found.claims,
            running=found.running,
            ended=found.ended,
            failing=found.failing,
            notices=self._notices,
            skew=self._skew,
        )

    def _heard(self, answer: Renewed, asked: float) -> None:
        self._again = answer.again
        self.turn(courses.renewed(self.course, answer, asked))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """From its examination to its end; the exit status."""
        renewals = asyncio.create_task(self.renew_forever(), name="renewals")
        try:
            status = await self._live()
        finally:
            renewals.cancel()
            await asyncio.wait([renewals])
        self.enter(Phase.ENDED, self.course.why)
        await self.renew()
        await self._leave()
        return status

    async def _live(self) -> int:
        if why := await self._examined():
            return await self._failed(why, EXIT_UNFIT)
        if self.course.draining:
            return 0
        self.enter(Phase.STARTING)
        try:
            await self._work()
        except PoolError as error:
            return await self._failed(str(error), EXIT_FAILED)
        return 0

    async def _examined(self) -> str:
        """Why the machine is not fit; empty: it is, or nobody wants to know any more."""
        todo = checks(self._told.examination, self._home, lambda: self._skew)
        for number, check in enumerate(todo, start=1):
            if self.course.draining:
                return ""
            self.enter(Phase.VALIDATING, check.name, step=number, steps=len(todo))
            if why := await asyncio.to_thread(check.work):
                return why
        return ""

    async def _failed(self, why: str, status: int) -> int:
        """
        Say so, and stay a while: else a machine that is broken would be replaced at once, again and again, by others that are.
        """
        _log.error("the machine cannot be used: %s", why)
        self.enter(Phase.FAILED, why)
        await first(asyncio.sleep(self._told.back_off), self._until_drained())
        return status

    async def _work(self) -> None:
        """Take jobs, and end; raises PoolError."""
        waits = Waits(Backoff(first=0.5, longest=10.0))
        while not self.course.draining and waits.failures < _STARTS:
            await self._services.start()
            began = boottime()
            self.enter(Phase.READY)
            await first(self._services.ended(), self._until_drained())
            if self.course.draining:
                break
            _log.error("the master has ended, and is started again: its jobs go on")
            if boottime() - began > _RECOVERED_S:
                waits.reset()
            await first(asyncio.sleep(waits.delay()), self._until_drained())
        self._services.finish()
        await first(self._services.ended(), self._until_last_call())
        await self._services.end(max(1.0, self.course.dead - boottime()))

    async def _leave(self) -> None:
        """Its credential is not valid any more; the connection may end before the answer comes."""
        try:
            await self._bus.call(LEAVE, "iam", Leave(id=new_id()), deadline=_ANSWER_S)
        except BusError as error:
            _log.info("left without a word of farewell: %s", error)


async def first(*works: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done; the others are given up."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
