"""What a gateway reports of published services, and looks at: nobody's silence keeps others waiting."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kettle.bus.ports import Bus
from kettle.published.frames import Announcement
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.published import uses as using
from kettle_services.gateway.published.service_access import ServiceAccess, Unserved
from kettle_services.gateway.published.service_reporter import ServiceReporter
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Use, Uses
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.commands.service_reports import ReportServices
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

JOB = JobId(12, 0)


class Queues:
    """Access points: `silent` ones never answer, others keep what is reported."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.reports: list[tuple[str, ReportServices]] = []
        self.told = asyncio.Event()

    async def call(self, _endpoint: object, name: str, report: ReportServices) -> None:
        if name in self.silent:
            await asyncio.Event().wait()
        self.reports.append((name, report))
        self.told.set()


class Parts:
    """A reporter, and what it listens to."""

    def __init__(self, queues: Queues) -> None:
        self.tunnels = SimpleNamespace()
        self.access = SimpleNamespace()
        self.uses = Uses(1000, 1000)
        self.reporter = ServiceReporter(cast("Bus", queues))
        self.reporter.listen(cast("Tunnels", self.tunnels), self.uses, cast("ServiceAccess", self.access))

    def opened(self, schedd: str) -> None:
        tunnel = SimpleNamespace(announcement=Announcement())
        self.tunnels.opened(
            SimpleNamespace(key=(schedd, JOB), ticket=SimpleNamespace(attempt=1), tunnel=tunnel)
        )


async def nothing() -> None:
    """They may go on."""


async def test_an_access_point_that_does_not_answer_delays_no_report_of_others() -> None:
    queues = Queues("silent")
    parts = Parts(queues)
    running = asyncio.create_task(parts.reporter.run())
    parts.opened("silent")
    parts.opened("near")
    async with asyncio.timeout(PATIENCE_S):
        await queues.told.wait()
    assert ["near"] == [name for name, _ in queues.reports]
    running.cancel()


async def test_refusals_by_many_names_leave_no_use_out() -> None:
    """Who is not let in asks for as many services as he likes: what others did is in the report."""
    queues = Queues()
    parts = Parts(queues)
    queued = SimpleNamespace(schedd="near", job=JOB)
    for number in range(1000):
        parts.access.refused(Unserved(job=cast("Any", queued), person="mallory", service=f"s{number}"))
    with parts.uses.begun(Use("ann", ("near", JOB), "web", "http", nothing, attempt=1)) as use:
        use.count_sent(7)
    await parts.reporter.finish()
    [(_, report)] = queues.reports
    assert ("ann", 7) in {(each.person, each.sent) for each in report.uses}
    assert 50 == sum(each.person == "mallory" for each in report.uses)


async def test_who_may_use_a_job_no_more_is_cut_off_although_another_queue_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(using, "LOOK_AGAIN_S", 0.0)
    uses, ended = Uses(10, 10), asyncio.Event()

    async def silent() -> None:
        await asyncio.Event().wait()

    async def refused() -> None:
        raise RequestRefused(403, ProblemCode.NOT_PERMITTED, "not any more")

    with (
        uses.begun(Use("ann", ("silent", JOB), "web", "stream", silent)),
        uses.begun(Use("bob", ("silent", JOB), "web", "stream", silent)),
        uses.begun(Use("eve", ("near", JOB), "web", "stream", refused)) as use,
    ):
        use.end = ended.set
        watching = asyncio.create_task(uses.watch())
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        watching.cancel()
