"""
The machine between joining and its end: it renews its lease, and does what the scaler, a notice or the time says.
"""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, BusError
from kettle.execution.system.linux import boottime
from kettle.pool.joined_files import Record
from kettle.pool.joining import WORKER
from kettle.retry.loop import slept
from kettle.runtime import Settings
from kettle_services.worker.domain import course as courses
from kettle_services.worker.domain.course import Course
from kettle_services.worker.guard import Line
from kettle_services.worker.services import Services
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.commands.scaler import RENEW, Notice, Phase, Renew, Renewed
from kettle_wire.identity import worker
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)
_ANSWER_S: Final = 10.0
"""For the scaler to answer; the next renewal does not wait for longer."""


class Agent:
    """Keeps the machine to its course."""

    def __init__(self, told: Bootstrap, course: Course, bus: Bus, line: Line, services: Services) -> None:
        self.course = course
        self._told = told
        self._bus = bus
        self._line = line
        self._services = services
        self._began = boottime()
        self._again = told.renewal
        self._changed = asyncio.Event()
        """The course is another; who waits for its next moment looks again."""
        self._report = asyncio.Event()
        """The scaler has to hear of it now."""
        self._progress = ""
        self._notices: list[Notice] = []
        self._skew: float | None = None

    # -- the course ---------------------------------------------------------------------------------------------------

    def turn(self, course: Course) -> None:
        """Keep to this course from now on."""
        before, self.course = self.course, course
        if before.phase != course.phase:
            _log.info("%s: %s", course.phase, course.why or "in order")
            self._progress = course.why
            self._report.set()
        if before != course:
            self._line.tell(course.dead)
            self._changed.set()

    def enter(self, phase: Phase, progress: str = "") -> None:
        """Say how far it is."""
        self._progress = progress
        self.turn(courses.entered(self.course, phase))

    def notice(self, notice: Notice) -> None:
        """The machine will be taken away."""
        self._notices.append(notice)
        self.turn(courses.noticed(self.course, notice, boottime()))

    def guard_is_dead(self) -> None:
        """Nobody would end us if we hung: jobs have a moment to end, and that is all."""
        asyncio.get_running_loop().remove_reader(self._line.end)
        _log.error("the guard was killed: the machine ends")
        self.notice(Notice(kind="signal", words="its guard was killed"))

    async def _until_drained(self) -> None:
        """Wait until it is to take no more jobs."""
        while not self.course.draining:
            self._changed.clear()
            await slept(max(0.0, self.course.due() - boottime()), self._changed)
            self.turn(courses.at_moment(self.course, boottime()))

    async def _until_last_call(self) -> None:
        while (left := self.course.last_call - boottime()) > 0:
            self._changed.clear()
            await slept(left, self._changed)

    # -- the lease ----------------------------------------------------------------------------------------------------

    async def renew_forever(self) -> None:
        """Renew it, at once when there is something to say; never returns."""
        while True:
            self._report.clear()
            await self.renew()
            await slept(self._again, self._report)

    async def renew(self) -> None:
        """Say how the machine is, and hear what it is to do; without an answer its course goes on."""
        asked = boottime()
        try:
            answer = await self._bus.call(RENEW, "scaler", self._said(), deadline=_ANSWER_S)
        except BusError as error:
            _log.warning("the lease is not renewed", extra={"cause": str(error)})
        else:
            self._heard(answer, asked)

    def _said(self) -> Renew:
        return Renew(
            phase=self.course.phase,
            progress=self._progress,
            age=boottime() - self._began,
            notices=self._notices,
            skew=self._skew,
        )

    def _heard(self, answer: Renewed, asked: float) -> None:
        self._again = answer.again
        self.turn(courses.renewed(self.course, answer, asked))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """From its examination to its end; the exit status.  Raises PoolError."""
        async with asyncio.TaskGroup() as tasks:
            renewals = tasks.create_task(self.renew_forever())
            try:
                await self._live()
            finally:
                renewals.cancel()
        self.enter(Phase.ENDED)
        await self.renew()
        return 0

    async def _live(self) -> None:
        self.enter(Phase.STARTING)
        await self._services.start()
        self.enter(Phase.READY)
        await self._until_drained()
        self._services.finish()
        await first(self._services.ended(), self._until_last_call())
        await self._services.end(max(1.0, self.course.ends - boottime()))


async def first(*works: Coroutine[None, None, None]) -> None:
    """Wait until one of them is done; the others are given up."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def serve(told: Bootstrap, home: Path, record: Record, course: Course, line: Line) -> int:
    """Be the machine of a lease until it is over; the exit status."""
    settings = Settings.load("cli", environ={"KETTLE_HOME": str(home)})
    services = Services(home)
    try:
        async with NatsBus.connect(
            settings.nats_url,
            subjects=Subjects(settings.pool),
            identity=worker(record.worker),
            credentials=str(home / "credentials" / f"{WORKER}.creds"),
            ca=settings.nats_ca,
            patience=told.join_within,
        ) as bus:
            agent = Agent(told, course, bus, line, services)
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(
                signal.SIGTERM, agent.notice, Notice(kind="signal", within=told.notices.warning)
            )
            loop.add_reader(line.end, agent.guard_is_dead)
            return await agent.run()
    finally:
        services.close()
