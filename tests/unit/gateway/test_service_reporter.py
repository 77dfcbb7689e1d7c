"""What a gateway has recorded of services of jobs, whatever strangers do meanwhile."""

from typing import Any, cast

import msgspec

from kettle.published.sharing import Sharing
from kettle_services.gateway.published.job_lookup import QueuedJob
from kettle_services.gateway.published.service_access import ServiceAccess, Unserved
from kettle_services.gateway.published.service_reporter import ServiceReporter
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Use, Uses
from kettle_wire.codes import JobStatus
from kettle_wire.commands.service_reports import ReportServices, ServicesReported
from kettle_wire.jobs import JobId

JOB = JobId(12, 0)


class Queue:
    """Takes reports."""

    def __init__(self) -> None:
        self.reports: list[ReportServices] = []

    async def call(self, _endpoint: object, _name: str, report: ReportServices, **_: Any) -> ServicesReported:
        self.reports.append(msgspec.convert(msgspec.to_builtins(report), ReportServices))
        return ServicesReported(position=cast("Any", None))


async def test_nobody_keeps_the_uses_of_others_out_of_the_record() -> None:
    """Whatever somebody who is not let in asks for, and however many use it."""
    queue, uses, tunnels = Queue(), Uses(1000, 1000), Tunnels(10)
    reporter = ServiceReporter(cast("Any", queue))
    access = cast("ServiceAccess", type("Access", (), {})())
    reporter.listen(tunnels, uses, access)
    job = QueuedJob(JOB, "s", "alice", JobStatus.RUNNING, Sharing(), ())
    for number in range(500):
        access.refused(Unserved(job=job, person="mallory", service=f"invented{number}"))

    async def look() -> None:
        """Everybody may."""

    for number in range(300):
        with uses.begun(Use(f"person{number}", ("s", JOB), "web", "http", look, attempt=1)) as use:
            use.count_sent(1)
    await reporter.finish()
    said = [use for report in queue.reports for use in report.uses]
    assert {f"person{number}" for number in range(300)} == {each.person for each in said if not each.refused}
    assert 500 == sum(each.refused for each in said)
    assert all(sum(each.refused > 0 for each in report.uses) <= 50 for report in queue.reports)
