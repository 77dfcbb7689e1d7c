"""The parts of an agent, put together: its connection to the pool, and what is announced to it."""

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from typing import Final

from kettle.bus.nats import NatsBus
from kettle.pool import Home
from kettle.pool.joined_files import Record
from kettle.pool.joining import WORKER
from kettle.runtime import Settings
from kettle_services.worker.agent import Agent
from kettle_services.worker.domain.course import Course
from kettle_services.worker.guard import Line
from kettle_services.worker.services import Services
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.commands.scaler import Notice
from kettle_wire.identity import worker
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)


async def serve(told: Bootstrap, home: Home, record: Record, course: Course, line: Line) -> int:
    """Be the machine of a lease until it is over; the exit status.  Raises BusError."""
    settings = Settings.load("cli", environ={"KETTLE_HOME": str(home.path)})
    async with AsyncExitStack() as stack:
        services = Services(home.path)
        stack.callback(services.close)
        bus = await stack.enter_async_context(
            NatsBus.connect(
                settings.nats_url,
                subjects=Subjects(settings.pool),
                identity=worker(record.worker),
                credentials=str(home.credential(WORKER)),
                ca=settings.nats_ca,
                patience=told.join_within,
            )
        )
        agent = Agent(told, course, bus, line, home, services)
        loop = asyncio.get_running_loop()
        by_signal = Notice(kind="signal", words="a signal asked it to end", within=told.notices.warning)
        loop.add_signal_handler(signal.SIGTERM, agent.notice, by_signal)
        loop.add_reader(line.end, _guard_died, agent, line)
        stack.callback(loop.remove_reader, line.end)
        if told.notices.file or told.notices.url:
            looking = asyncio.create_task(_look(told, agent), name="notices")
            stack.callback(looking.cancel)
        return await agent.run()


def _guard_died(agent: Agent, line: Line) -> None:
    """Nobody would end us if we hung, so the machine ends now."""
    asyncio.get_running_loop().remove_reader(line.end)
    _log.error("the guard was killed")
    agent.notice(Notice(kind="signal", words="its guard was killed"))


async def _look(told: Bootstrap, agent: Agent) -> None:
    from kettle_services.worker.notices import awaited  # the web client takes long to load, and few want it

    agent.notice(await awaited(told.notices))
