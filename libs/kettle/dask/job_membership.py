"""
What the programs in the jobs of a session are told by it, by way of their starters and shadows: they hold no credential.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from kettle.bus.ports import BusError, RefusedError
from kettle.client.errors import ClientError, PoolUnreachableError
from kettle.client.published import GatewayAccess, open_stream
from kettle.client.sessions import OwnSession
from kettle.dask.credentials import Credentials, CredentialsError, OpenStream
from kettle.dask.reports import Dismissed, Orders, Report, Superior
from kettle.execution.job_environment.condor_chirp import Chirp, ChirpError
from kettle.pki.certificates import make_request
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits, retry

T = TypeVar("T")
_LOOK: Final = Backoff(first=0.2, longest=2.0)
_UNKNOWN: Final = 401
_FIRST_S: Final = 60.0
"""For so long a program that has just begun asks for its certificate."""

log = logging.getLogger("distributed.kettle")


class OwnSuperior:
    """The session of a job, for the agent of its scheduler."""

    def __init__(self, own: OwnSession) -> None:
        self._own = own

    async def report(self, report: Report) -> Orders:
        """See `kettle.dask.reports.Superior`."""
        try:
            return await self._own.agent(report.sent())
        except RefusedError:
            return Dismissed()
        except BusError as error:
            raise PoolUnreachableError(str(error)) from error


class JobMembership:
    """Of a program in a job of a session."""

    def __init__(self, own: OwnSession, credentials: Credentials, open_stream: OpenStream | None) -> None:
        self._own = own
        self.credentials = credentials
        self.open_stream = open_stream
        self.superior: Superior | None = OwnSuperior(own)

    @classmethod
    async def of_job(cls, environ: Mapping[str, str]) -> "JobMembership":
        """
        With a certificate for a key that is made here.

        Raises CredentialsError: this is no job of a session, or the session signs nothing.
        """
        try:
            own = OwnSession.of_job(environ)
        except ClientError as error:
            raise CredentialsError(str(error)) from error
        key, request = make_request(f"job {environ.get('KETTLE_SESSION', '')}"[:64])
        try:
            signed = await retry(
                lambda: own.certificate(request),
                _LOOK,
                retryable=lambda error: isinstance(error, BusError) and not isinstance(error, RefusedError),
                deadline=Deadline(_FIRST_S),
            )
        except BusError as error:
            raise CredentialsError(f"the session signs no certificate: {error}") from error
        made = Credentials(signed.authority.decode(), signed.certificate.decode(), key.decode())
        return cls(own, made, WayOfJob(own).open_stream)

    async def publish(self, service: str, port: int, kind: str) -> None:
        """Where there is no gateway, those of the own network come nevertheless."""
        try:
            where = await asyncio.to_thread(_chirped(f"{service}:{port}/{kind}"))
        except (ChirpError, OSError) as error:
            log.warning("%s is reached in its own network only: %s", service, error)
        else:
            log.info("%s is published at %s", service, where)

    async def scheduler(self, after: str = "") -> tuple[str, Mapping[str, str]]:
        """When it has told the session where it is."""
        waits = Waits(_LOOK)
        while True:
            try:
                session = await self._own.show()
            except BusError as error:
                log.info("the session does not answer, and is asked again: %s", error)
            else:
                if session.scheduler.contact not in {"", after}:
                    return session.scheduler.contact, session.versions
            await waits.wait()

    async def announce(self, contact: str) -> None:
        """The reports of its agent say it."""


def _chirped(service: str) -> Callable[[], str]:
    return lambda: Chirp().data("publish", service).decode()


class WayOfJob:
    """
    The way of a job to the others of its session through the gateway, with what its session gets for it there.
    """

    def __init__(self, own: OwnSession) -> None:
        self._own = own
        self._access: GatewayAccess | None = None
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises ConnectionError, after which Dask tries again for a while."""
        try:
            return await open_stream(job, service, access=await self._shown())
        except (ClientError, BusError) as error:
            # A gateway that is another process now does not know what was shown, and one that is elsewhere does not answer.
            if isinstance(error, PoolUnreachableError) or getattr(error, "status", 0) == _UNKNOWN:
                self._until = 0.0
            raise ConnectionError(str(error)) from error

    async def _shown(self) -> GatewayAccess:
        async with self._asking:
            if self._access is None or time.time() >= self._until:
                made = await self._own.access()
                self._access = GatewayAccess(made.url, made.ca, made.token)
                self._until = time.time() + (made.expires - time.time()) / 2
            return self._access
