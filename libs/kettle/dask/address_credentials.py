"""
What a client shows that was given nothing but the address of a scheduler, as by the panel of dask-labextension: what the pool gives this
person for the cluster that has it.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
from typing import Any, Final

from distributed.comm.core import CommClosedError, FatalCommClosedError

from kettle.client.errors import ClientError, CommandRefusedError
from kettle.dask.addresses import JobAddress
from kettle.dask.connection import Connect
from kettle.dask.security import security_of


class AddressCredentials:
    """Asks the pool once for each address."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._known: Final[dict[str, dict[str, Any]]] = {}

    async def of(self, wanted: JobAddress) -> dict[str, Any]:
        """
        What a connection to this scheduler is told.

        Raises:
            CommClosedError: the pool does not answer; Dask tries again.
            FatalCommClosedError: no cluster that this person may use has such a scheduler.
        """
        if (known := self._known.get(wanted.location)) is None:
            known = self._known[wanted.location] = await self._asked(wanted)
        return known

    async def _asked(self, wanted: JobAddress) -> dict[str, Any]:
        try:
            async with self._connect() as service:
                session = await service.scheduled_at(wanted)
                if session is None:
                    raise FatalCommClosedError(
                        f"no cluster that is yours, or shared with you, has its scheduler at {wanted}"
                    )
                credentials = await service.credentials(session.id)
        except CommandRefusedError as error:
            raise FatalCommClosedError(str(error)) from error
        except ClientError as error:
            raise CommClosedError(str(error)) from error
        said: dict[str, Any] = security_of(credentials, self._open_stream).get_connection_args("client")
        return said

    async def _open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Over a connection to the pool that is let go: a client of Dask has few streams, and they last."""
        try:
            async with self._connect() as sessions:
                return await sessions.open_stream(job, service)
        except ClientError as error:
            raise ConnectionError(str(error)) from error
