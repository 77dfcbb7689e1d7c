"""
Tickets with which machines publish the services of running jobs, asked for in the moment in which a machine wants one: a shadow keeps
none.

The gateway believes the queue, not us, about whose a job is.
"""

from typing import Final

from kettle.bus.ports import Asks, BusError, RefusedError
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.commands.gateway import ADMIT_SERVICES, AdmitServices
from kettle_wire.commands.questions import TicketGiven
from kettle_wire.commands.shadow import Assignment

_GATEWAY: Final = "gateway"
"""All gateways of a pool answer as one."""


class TicketRequests:
    """Asks the gateway for the tickets of all attempts."""

    def __init__(self, bus: Asks, settings: ShadowSettings) -> None:
        self._bus = bus
        self._settings = settings

    async def fetch(self, assignment: Assignment) -> TicketGiven:
        """
        The ticket of an attempt.

        Raises:
            RefusedError: it gets none; `busy`: not now, ask again.
        """
        request = AdmitServices(schedd=self._settings.schedd, job=assignment.job, attempt=assignment.attempt)
        try:
            made = await self._bus.call(
                ADMIT_SERVICES, _GATEWAY, request, deadline=self._settings.call_deadline
            )
        except BusError as error:
            if isinstance(error, RefusedError) and error.code not in NOT_NOW:
                raise RefusedError(RefusalCode.DENIED, str(error)) from error
            raise RefusedError(
                RefusalCode.BUSY,
                f"the services of job {assignment.job} are not published yet: the pool's gateway does not answer ({error})",
            ) from error
        return TicketGiven(url=made.url, ca=made.ca, ticket=made.ticket, left=made.left)
