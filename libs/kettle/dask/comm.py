"""
How Dask connects with addresses `kettle://JOB/SERVICE`: directly within a network, through the gateway from everywhere else.

On either way the connection is TLS from end to end, with the certificates of the session: the gateway carries what it cannot
read.  `distributed` finds this module by the entry point `distributed.comm.backends`; a program that listens says first
what it is (`listen_as`).
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportIncompatibleMethodOverride=false

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from distributed.comm.core import CommClosedError, Connector, FatalCommClosedError
from distributed.comm.registry import Backend, backends
from distributed.comm.tcp import MAX_BUFFER_SIZE, TLS, TLSConnector, TLSListener, get_stream_address
from tornado.iostream import SSLIOStream, StreamClosedError

from kettle.dask.addresses import SCHEME, JobAddress, read_address
from kettle.dask.credentials import OPENER, OpenStream
from kettle.dask.placement import Placement, placement_of_person
from kettle.dask.stream_socket import StreamSocket

if TYPE_CHECKING:
    from kettle.dask.address_credentials import AddressCredentials
    from kettle.dask.connection import Connect

DIRECT_WITHIN_S: Final = 2.0
"""A direct connection that takes longer is given up for the one through the gateway."""
_AVOIDED_S: Final = 60.0
"""For so long the gateway is asked first for a place that was not reached."""


class UnknownPlaceError(OSError):
    """A program wants to listen that has not said which job it is."""


class KettleBackend(Backend):
    """One in each process."""

    def __init__(
        self, placement: Placement | None = None, service: str = "", *, connect: "Connect | None" = None
    ) -> None:
        """
        `connect`: the way to the pool for who connects without credentials; None: the one that `kettle` takes.
        """
        self._connect: Final = connect
        self._of_addresses: AddressCredentials | None = None
        self.placement: Final = placement or placement_of_person()
        self.service: Final = service
        """The name of the service that this process is; empty for one that only connects."""
        self.avoided: Final[dict[tuple[str, int], float]] = {}
        """Places that were not reached directly, and until when they are not tried again, by the monotonic clock."""
        self.carried: Final[set[asyncio.Task[None]]] = set()
        """Of connections through the gateway that are open."""

    def credentials(self) -> "AddressCredentials":
        """Of who connects without any, see `kettle.dask.address_credentials`."""
        if self._of_addresses is None:
            # What members of a session have no use for.
            from kettle.dask.address_credentials import AddressCredentials
            from kettle.dask.connection import connected_to_pool

            self._of_addresses = AddressCredentials(self._connect or connected_to_pool)
        return self._of_addresses

    def get_connector(self) -> Connector:
        """One for each connection."""
        return KettleConnector(self)

    def get_listener(
        self, loc: str, handle_comm: Callable[..., Any], deserialize: bool, **connection_args: Any
    ) -> TLSListener:
        """`loc`: the address and port to bind, as for TCP."""
        if not self.service:
            raise UnknownPlaceError("only a scheduler or worker that is a job listens at kettle://")
        return KettleListener(self, loc, handle_comm, deserialize, **connection_args)

    def get_address_host(self, loc: str) -> str:
        """What tells Dask which workers share a machine."""
        return read_address(loc).machine

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        """Its machine, and the port of the direct way; 0 if there is none."""
        address = read_address(loc)
        return address.machine, address.port

    def resolve_address(self, loc: str) -> str:
        """It is canonical as it is."""
        return read_address(loc).location

    def get_local_address_for(self, loc: str) -> str:
        """The address to bind."""
        return f"{self.placement.host}:0"


def listen_as(placement: Placement, service: str) -> KettleBackend:
    """Say what this process is, before its scheduler or worker is made."""
    backend = KettleBackend(placement, service)
    backends[SCHEME] = backend
    return backend


class KettleListener(TLSListener):
    """Listens for its own network; those of others come by the gateway's tunnel, which ends here as well."""

    def __init__(
        self, backend: KettleBackend, loc: str, handler: Callable[..., Any], deserialize: bool, **args: Any
    ) -> None:
        super().__init__(loc, handler, deserialize, **args)
        self._backend = backend

    async def _handle_stream(self, stream: Any, address: tuple[Any, ...]) -> None:
        # A handshake through the gateway may end while it goes on; that is the other side's matter.
        with contextlib.suppress(StreamClosedError):
            await super()._handle_stream(stream, address)

    @property
    def listen_address(self) -> str:
        """What others call it: Dask carries one name for each server."""
        return self.contact_address

    @property
    def contact_address(self) -> str:
        """Where others come to it."""
        place = self._backend.placement
        _, port = self.get_host_port()
        return str(JobAddress(place.job, self._backend.service, place.host, port, place.network))


class KettleConnector(Connector):
    """Takes the shorter way that there is."""

    def __init__(self, backend: KettleBackend) -> None:
        self._backend = backend

    async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> TLS:
        """
        A connection to a scheduler or worker.

        Raises:
            CommClosedError: it was not reached; Dask tries again.
            FatalCommClosedError: it is of another session, or of none that this person may use.
        """
        wanted = read_address(address)
        if connection_args.get("ssl_context") is not None or self._backend.service:
            return await self._connected(wanted, deserialize, connection_args)
        given = self._backend.credentials()
        shown = await given.of(wanted)
        try:
            return await self._connected(wanted, deserialize, connection_args | shown)
        except FatalCommClosedError:
            given.forget(wanted)  # it was of another time, perhaps
        return await self._connected(wanted, deserialize, connection_args | await given.of(wanted))

    async def _connected(self, wanted: JobAddress, deserialize: bool, connection_args: dict[str, Any]) -> TLS:
        if self._is_near(wanted):
            try:
                async with asyncio.timeout(DIRECT_WITHIN_S):
                    return await self._direct(wanted, deserialize, connection_args)
            except FatalCommClosedError:
                raise
            except (TimeoutError, OSError):
                if _opener(connection_args) is None:
                    raise
                self._backend.avoided[wanted.host, wanted.port] = time.monotonic() + _AVOIDED_S
        return await self._through_gateway(wanted, deserialize, connection_args)

    def _is_near(self, wanted: JobAddress) -> bool:
        if not wanted.host or wanted.network not in self._backend.placement.networks:
            return False
        until = self._backend.avoided.get((wanted.host, wanted.port), 0.0)
        return time.monotonic() >= until

    async def _direct(self, wanted: JobAddress, deserialize: bool, args: dict[str, Any]) -> TLS:
        host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
        comm: TLS = await _NamedConnector(wanted).connect(f"{host}:{wanted.port}", deserialize, **args)
        return comm

    async def _through_gateway(self, wanted: JobAddress, deserialize: bool, args: dict[str, Any]) -> TLS:
        opener = _opener(args)
        if opener is None:
            raise CommClosedError(
                f"{wanted} is in another network, and this program knows no way through a gateway"
            )
        carried = await StreamSocket.around(*await opener(wanted.job, wanted.service))
        self._backend.carried.add(carried.copying)
        carried.copying.add_done_callback(self._backend.carried.discard)
        try:
            stream = await _encrypted(carried.socket, args["ssl_context"])
        except StreamClosedError as error:
            if isinstance(cause := error.real_error, ssl.SSLCertVerificationError):
                raise FatalCommClosedError(
                    f"{wanted} is not of this session: {cause.verify_message}"
                ) from error
            why = carried.failure or cause or error
            raise CommClosedError(f"{wanted} was not reached through the gateway: {why}") from error
        # A job behind the gateway is on another machine, whatever its own address means there.
        peer = JobAddress(wanted.job, wanted.service)
        return TLS(stream, f"tls://{get_stream_address(stream)}", str(peer), deserialize)


class _NamedConnector(TLSConnector):
    """Dask's own, whose connections are called as they were asked for."""

    def __init__(self, wanted: JobAddress) -> None:
        self._wanted = wanted

    def comm_class(self, stream: Any, local: str, _peer: str, deserialize: bool) -> TLS:  # type: ignore[override]
        return TLS(stream, local, str(self._wanted), deserialize)


backends.setdefault(SCHEME, KettleBackend())


def _opener(args: dict[str, Any]) -> OpenStream | None:
    found: OpenStream | None = args.get("extra_conn_args", {}).get(OPENER)
    return found


async def _encrypted(carrier: socket.socket, context: ssl.SSLContext) -> SSLIOStream:
    wrapped = context.wrap_socket(carrier, server_side=False, do_handshake_on_connect=False)
    stream = SSLIOStream(wrapped, ssl_options=context, max_buffer_size=MAX_BUFFER_SIZE)
    return await stream.wait_for_handshake()
