"""What pilots run for others: taken from who has submitted them, and shown, as the entrypoint decides."""

from datetime import UTC, datetime
from typing import Final

from kettle.client.entrypoint import Entrypoint
from kettle.routes.chain import chain_of
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.ce.questions import PATIENCE_S, found_job
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.commands.payloads import PayloadsListed
from kettle_wire.jobs import JobId
from kettle_wire.rest import entrypoint_payloads as rest

_SCHEDD: Final = "/query/schedd"


class PilotReports:
    """Answers in the name of the person."""

    def __init__(self, people: PersonConnections, access_points: AccessPoints) -> None:
        self._people: Final = people
        self._access_points: Final = access_points

    async def report(self, asked: Asked) -> Answer:
        """Have recorded what a pilot says."""
        parameters: rest.ReportPilot = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            job = JobId.parse(chain_of(await found_job(there, parameters.job)).id)
            done = await Entrypoint(there.requests, PATIENCE_S).report_payloads(job, asked.body)
        return Answer(rest.PilotReported(id=str(job), running=done.running))

    async def of_pilot(self, asked: Asked) -> Answer:
        """All that one has run."""
        parameters: rest.ListPilot = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            job = JobId.parse(chain_of(await found_job(there, parameters.job)).id)
            return Answer(_shown(await Entrypoint(there.requests, PATIENCE_S).payloads(job)))

    async def running(self, asked: Asked) -> Answer:
        """What runs now."""
        parameters: rest.ListRunning = asked.parameters
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, parameters.schedd, _SCHEDD)
            found = await Entrypoint(there.requests, PATIENCE_S).payloads(owner=parameters.owner)
        return Answer(_shown(found))


def _shown(listed: PayloadsListed) -> rest.PilotPayloads:
    return rest.PilotPayloads(
        payloads=[
            rest.PayloadOf(
                job=str(each.job),
                by=each.by,
                payload=each.payload,
                began=datetime.fromtimestamp(each.began, UTC),
                ended=datetime.fromtimestamp(each.ended, UTC) if each.ended is not None else None,
                exit_code=each.exit_code,
                with_pilot=each.with_pilot,
            )
            for each in listed.payloads
        ],
        left_out=listed.left_out,
    )
