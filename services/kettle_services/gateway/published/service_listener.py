"""
Where programs come in that speak TLS and no HTTP: the name that they say is that of a service, and the certificate that they show says who
they are.

A name is only read before it is known who comes: whether there is such a job, whose it is and whether it can be reached is said to nobody
else.  TLS has no sentence for what is refused afterwards; it is in the events of the job, for who may use it, and in the log.
"""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Final, cast

import msgspec

from kettle.bus.ports import BusError
from kettle.http.rate_limits import network
from kettle.published.tls_transport import PIECE, TlsTransport
from kettle.runtime import SettingsError
from kettle_services.gateway.domain.published_names import ServiceName
from kettle_services.gateway.published.service_access import Reached, ServiceAccess, Unserved
from kettle_services.gateway.published.service_certificates import ServiceCertificates
from kettle_services.gateway.published.service_tls import NamedEngine, why_not
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.admission import GOOD_NO_MORE
from kettle_services.gateway.rest.application import Admitted, RequestLimits
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused

UNKNOWN_S: Final = 15.0
"""Who comes says within this who that is."""
_MOST_UNKNOWN: Final = 500
"""Connections of whom that is not known yet."""
_MOST_UNKNOWN_OF_ONE: Final = 50
"""Of one address."""

_log: Final = logging.getLogger(__name__)


class Came(msgspec.Struct, frozen=True):
    """Somebody who is known, and what that one's program wants."""

    admitted: Admitted
    wanted: ServiceName


class ServiceListener:
    """Takes them."""

    def __init__(
        self,
        context: ssl.SSLContext,
        certificates: ServiceCertificates,
        access: ServiceAccess,
        persons: Persons,
        passage: Passage,
        uses: Uses,
        limits: RequestLimits,
        *,
        most: int,
        proxies: frozenset[str],
    ) -> None:
        """
        `context`: of `service_tls`; `most`: connections at once; `proxies`: addresses behind which people are not told apart.
        """
        self._context: Final = context
        self._certificates: Final = certificates
        self._access: Final = access
        self._persons: Final = persons
        self._passage: Final = passage
        self._uses: Final = uses
        self._limits: Final = limits
        self._most: Final = most + _MOST_UNKNOWN
        self._proxies: Final = proxies
        self._buffer: Final = bytearray(PIECE)
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._unknown: Final[Counter[str]] = Counter()
        """How many there are of whom it is not known who they are, by their addresses."""

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncGenerator[int]:
        """
        On `port` (0: one that is free) of `host` while the context lasts; yields the port.

        Raises SettingsError: the port is taken.
        """
        try:
            server = await asyncio.get_running_loop().create_server(self._made, host, port)
        except OSError as error:
            raise SettingsError(
                f"services_tls_port: {host}:{port} cannot be had: {error.strerror}"
            ) from error
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _made(self) -> TlsTransport:
        return TlsTransport(self._context, self._buffer, self._come)

    def _come(self, connection: TlsTransport) -> None:
        peer = connection.get_extra_info("peername") or ("",)
        address = str(peer[0])
        if self._is_too_much(address):
            connection.abort()
            return
        task = asyncio.create_task(self._serve(connection, address), name="a connection by TLS")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_too_much(self, address: str) -> bool:
        """Whether a connection is not even looked at."""
        if len(self._tasks) >= self._most or self._unknown.total() >= _MOST_UNKNOWN:
            return True
        if address in self._proxies:
            return False
        of_one = self._unknown[network(address)]
        return of_one >= _MOST_UNKNOWN_OF_ONE or self._limits.has_failed_often(address)

    async def _serve(self, connection: TlsTransport, address: str) -> None:
        try:
            with self._counted(network(address)):
                came = await self._who(connection, address)
            if came is not None:
                await self._connected(connection, came)
            await connection.gone.wait()  # soon: the other side has its last word
        finally:
            connection.abort()

    @contextmanager
    def _counted(self, asker: str) -> Generator[None]:
        self._unknown[asker] += 1
        try:
            yield
        finally:
            self._unknown[asker] -= 1
            if not self._unknown[asker]:
                del self._unknown[asker]

    async def _who(self, connection: TlsTransport, address: str) -> Came | None:
        """Who comes, and for what; None: nobody who is let in."""
        engine = cast("NamedEngine", connection.engine)
        try:
            async with asyncio.timeout(UNKNOWN_S):
                await connection.secured
                assert engine.wanted is not None, "no handshake ends without a name"
                shown = self._certificates.opened(engine.getpeercert(binary_form=True) or b"")
                admitted = await self._access.admitted(partial(self._persons.holding, shown, address))
                return Came(admitted, engine.wanted)
        except TimeoutError:
            connection.abort()
            _log.info("a program at %s has not said within %g s who it is", address, UNKNOWN_S)
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self._failed(address)
            _log.info("a program at %s is not let in: %s", address, why_not(error, engine))
        except RequestRefused as refusal:
            if refusal.status in GOOD_NO_MORE:
                self._failed(address)
            self._refuse(connection, f"a program at {address} is not let in to {engine.wanted}: {refusal}")
        except BusError as error:
            self._refuse(connection, f"nobody says at the moment who comes from {address}: {error}")
        return None

    def _failed(self, address: str) -> None:
        """Count it; from some number on nothing more is looked at that comes from there."""
        if address not in self._proxies:
            with suppress(RequestRefused):
                self._limits.failed(address)

    def _refuse(self, connection: TlsTransport, sentence: str) -> None:
        _log.info("%s", sentence)
        connection.close()

    async def _connected(self, connection: TlsTransport, came: Came) -> None:
        """Connect with the service, until that is over."""
        person, wanted = came.admitted.person.name, came.wanted
        try:
            queued = await self._access.job(wanted.job, "", wanted.may_be_at)
            granted = await self._access.granted_to(came.admitted, queued, wanted.service)
        except (RequestRefused, BusError) as error:
            self._refuse(connection, f"{person} is not connected with {wanted}: {error}")
            return
        try:
            reached = self._access.reached(queued, wanted.service)
            _require_bytes(reached, wanted)
            with self._uses.begun(granted.use(reached, "tls")) as use:
                stream = await reached.stream()
                try:
                    await self._passage.joined(connection, use, stream)
                finally:
                    stream.abort()
        except RequestRefused as refusal:
            self._access.refused(
                Unserved(
                    job=queued,
                    person=person,
                    service=wanted.service,
                    because=granted.because,
                    why=str(refusal),
                )
            )
            self._refuse(connection, f"{person} is not connected with {wanted}: {refusal}")


def _require_bytes(reached: Reached, wanted: ServiceName) -> None:
    """Raises RequestRefused: it speaks HTTP, of which nothing is passed on as it was sent."""
    if reached.service.kind != "tcp":
        raise RequestRefused(
            400,
            "service.is_http",
            f"the service {wanted} is a server of HTTP, which is reached by its address: kettle services {wanted.job}",
        )
