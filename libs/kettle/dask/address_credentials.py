"""
What a client shows that was given nothing but the address of a scheduler, as by the panel of dask-labextension: what the pool gives this
person for the cluster that has it.
"""

# distributed has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from distributed.comm.core import CommClosedError, FatalCommClosedError

from kettle.client.errors import ClientError, CommandRefusedError
from kettle.dask.addresses import JobAddress
from kettle.dask.connection import Connect
from kettle.dask.security import security_of
from kettle.pki.certificates import facts, load

KEPT_S: Final = 600.0
"""So long the same is shown again; who connects later, perhaps because of what was renewed meanwhile, asks again."""


class _Given(msgspec.Struct, frozen=True):
    """What the pool has given for an address."""

    said: dict[str, Any]
    good_until: float
    """Seconds since the epoch: from then on it is asked for again."""
    ends: float
    """When nobody takes it any more."""

    def __repr__(self) -> str:
        """Without the key."""
        return f"_Given(until {self.ends})"


class AddressCredentials:
    """
    Asks the pool for each address, and again after a while, near the end of what it has given, and where that is refused.
    """

    def __init__(self, connect: Connect, clock: Callable[[], float] = time.time) -> None:
        """`clock`: seconds since the epoch."""
        self._connect = connect
        self._clock = clock
        self._known: Final[dict[str, _Given]] = {}

    async def of(self, wanted: JobAddress) -> dict[str, Any]:
        """
        What a connection to this scheduler is told.

        Raises:
            CommClosedError: the pool does not answer; Dask tries again.
            FatalCommClosedError: no cluster that this person may use has such a scheduler.
        """
        known, now = self._known.get(wanted.location), self._clock()
        if known is not None and now < known.good_until:
            return known.said
        try:
            known = self._known[wanted.location] = await self._asked(wanted)
        except FatalCommClosedError:
            self.forget(wanted)
            raise
        except CommClosedError:
            if known is None or now >= known.ends:
                raise  # else what it has given is as good as before
        return known.said

    def forget(self, wanted: JobAddress) -> None:
        """What it has given for an address is refused: the next connection asks again."""
        self._known.pop(wanted.location, None)

    async def _asked(self, wanted: JobAddress) -> _Given:
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
        about = facts(load(credentials.certificate.encode()))
        good_until = min(self._clock() + KEPT_S, about.renewal().timestamp())
        return _Given(said, good_until, about.ends.timestamp())

    async def _open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Over a connection to the pool that is let go: a client of Dask has few streams, and they last."""
        try:
            async with self._connect() as sessions:
                return await sessions.open_stream(job, service)
        except ClientError as error:
            raise ConnectionError(str(error)) from error
