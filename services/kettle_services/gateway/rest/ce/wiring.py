"""What answers each route of `/ce/v1`."""

from kettle.bus.ports import Bus
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Handler
from kettle_services.gateway.rest.ce import counting
from kettle_services.gateway.rest.ce.following import ChainList
from kettle_services.gateway.rest.ce.payloads import PilotReports
from kettle_services.gateway.rest.ce.questions import EntrypointQuestions
from kettle_services.gateway.rest.ce.sandboxes import SandboxCommands
from kettle_services.gateway.rest.ce.standing import StandingOfEntrypoints
from kettle_services.gateway.rest.ce.submissions import EntrypointCommands
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_wire.rest import entrypoint, entrypoint_jobs, entrypoint_payloads, entrypoint_status
from kettle_wire.rest.route import Route


def entrypoint_handlers(
    bus: Bus,
    collector: str,
    people: PersonConnections,
    access_points: AccessPoints,
    hub: EventHub,
) -> dict[Route, Handler]:
    """All of them; `collector`: its name."""
    asked = EntrypointQuestions(people, access_points)
    done = EntrypointCommands(people, access_points)
    files = SandboxCommands(people, access_points)
    pilots = PilotReports(people, access_points)
    standing = StandingOfEntrypoints(bus, collector, people, access_points)
    return {
        entrypoint.GET_CHAIN: asked.job,
        entrypoint.GET_ROUTES: asked.routes,
        entrypoint.TRY_ROUTE: asked.try_route,
        entrypoint_jobs.GET_OUTPUT: files.output,
        entrypoint_jobs.LIST_CHAINS: ChainList(people, access_points, hub).list,
        entrypoint_jobs.PUT_SANDBOX: files.put,
        entrypoint_jobs.REMOVE_ROUTED: done.remove,
        entrypoint_jobs.SUBMIT_TO_ENTRYPOINT: done.submit,
        entrypoint_payloads.LIST_PILOT: pilots.of_pilot,
        entrypoint_payloads.LIST_RUNNING: pilots.running,
        entrypoint_payloads.REPORT_PILOT: pilots.report,
        entrypoint_status.GET_STANDING: standing.standing,
        entrypoint_status.VIEW_JOBS: standing.jobs,
        entrypoint_status.VIEW_PILOTS: standing.counted(counting.view_pilots),
        entrypoint_status.VIEW_SCHEDD: standing.schedd,
        entrypoint_status.VIEW_SCHEDDS: standing.schedds,
        entrypoint_status.VIEW_STATUS: standing.status,
        entrypoint_status.VIEW_STATUSES: standing.statuses,
        entrypoint_status.VIEW_TABLE: standing.table,
        entrypoint_status.VIEW_TOTALS: standing.counted(counting.view_totals),
        entrypoint_status.VIEW_VOS: standing.counted(counting.view_vos),
    }
