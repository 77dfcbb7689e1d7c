"""
One connection to NATS: retried without end, with its own inbox, and requests that tell apart how they failed.

Replies share one subscription. A publication that the server does not permit fails the request at once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from kettle.bus.credentials import Credential
from kettle.bus.encryption import is_wanted
from kettle.bus.large_requests import HEADERS
from kettle.bus.nats_driver import Msg, Server, Subscription, errors
from kettle.bus.nats_transport import NatsClient, TcpTransport
from kettle.bus.ports import (
    BusError,
    BusUnavailableError,
    NoResponderError,
    NotAcceptedError,
    RefusedError,
    ReplyTimeoutError,
)
from kettle.pki.explanations import UntrustedError, failed, wants_certificate
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.codes import RefusalCode
from kettle_wire.identity import Identity
from kettle_wire.subjects import API, GUESTS_API

PENDING_BYTES: Final = 32 * 1024 * 1024
"""What may wait for the connection to come back; beyond it, unconfirmed messages are dropped."""
CONNECT_S: Final = 5
PING_S: Final = 20
ANSWERED_S: Final = 3 * PING_S
"""A ping without an answer for so long belongs to a connection that the client has given up."""
FIRST_RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 2.0
OVERRUN_S: Final = 0.5
"""After messages were dropped, listeners are told once it may be over."""
NO_RESPONDERS: Final = "503"


_log = logging.getLogger(__name__)


def status_of(message: Msg) -> str:
    """The status code that the server itself put into a message, or nothing."""
    headers = message.headers
    return headers.get("Status", "") if headers else ""


class NatsConnection:
    """The client, what it does on loss and return, and the replies that are waited for."""

    def __init__(self, identity: Identity, transport: TcpTransport) -> None:
        self._transport = transport
        self.client = NatsClient(self._transport)
        self._identity = identity
        self._inbox = identity.inbox
        self.api = API
        """How the subjects of JetStream's interface begin for us."""
        self.asks_for_streams = False
        """Whether we have our stream of events made by a collector, as access points do that have joined."""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connected = asyncio.Event()
        self._on_return: list[Callable[[], None]] = []
        self._on_loss: list[Callable[[], None]] = []
        self._replies = ""
        self._sent = 0
        self._waiting: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._waits = Waits(Backoff(first=0.02, longest=LONGEST_RETRY_S))
        self._closing = False
        self._flushes: set[asyncio.Task[None]] = set()
        self._overruns: WeakKeyDictionary[Subscription, Callable[[], None]] = WeakKeyDictionary()
        self._overrun_told: asyncio.TimerHandle | None = None
        self._trouble = ""
        """The last thing that was said to be wrong with the connection."""
        self._untrusted = 0
        """How often a server was not who it is meant to be, before there was a connection."""
        self._servers = 1

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        identity: Identity,
        credentials: str,
        name: str,
        patience: float | None,
        ca: str = "",
        token: Callable[[], str] | None = None,
    ) -> AsyncGenerator["NatsConnection", None]:
        """
        Connect within `patience` seconds (None: whenever the server comes) and stay connected while the context lasts.

        `ca` is the path of the certificate of the authority that the servers' certificates must come from.
        `token` gives what a person shows besides the credential, again for each connection.
        """
        connection = cls(identity, _transport(url, ca))
        try:
            try:
                async with asyncio.timeout(patience):
                    await connection._connect(url, credentials, name, token)
            except TimeoutError as error:
                raise BusUnavailableError(f"{url} did not answer within {patience} seconds") from error
            yield connection
        finally:
            connection._closing = True
            if connection._overrun_told is not None:
                connection._overrun_told.cancel()
            if (
                connection._transport.used
            ):  # else there is nothing to close, as when the credential cannot be read
                # The server went first: there is nothing left to flush, and uvloop says so by a RuntimeError.
                with suppress(ConnectionError, RuntimeError):
                    await connection.client.close()
            for flushes in connection._flushes:
                flushes.cancel()
            connection.failed.cancel()

    @property
    def guest(self) -> bool:
        """Whether the pool's streams are in another account than ours: we use them and make none."""
        return self.api == GUESTS_API

    @property
    def connected(self) -> bool:
        """Whether there is a server at the moment."""
        return self.client.is_connected

    @property
    def limit(self) -> int:
        """
        The most bytes of a message beside its headers, which the server counts too: beyond its limit it cuts us off.
        """
        return max(self.client.max_payload - HEADERS, 1)

    def watch(
        self, *, lost: Callable[[], None] | None = None, back: Callable[[], None] | None = None
    ) -> None:
        """Call `lost` whenever the connection breaks and `back` whenever it is there again."""
        if lost:
            self._on_loss.append(lost)
        if back:
            self._on_return.append(back)

    def unwatch(self, listener: Callable[[], None]) -> None:
        """Undo `watch`."""
        for listeners in (self._on_loss, self._on_return):
            if listener in listeners:
                listeners.remove(listener)

    def fail(self, error: BaseException) -> None:
        """Something broke that no retry mends: the service that awaits `failed` stops its process."""
        if not self.failed.done():
            self.failed.set_exception(error)

    def new_inbox(self) -> str:
        """A subject of our own that nobody used before."""
        return self.client.new_inbox()

    async def subscribe(
        self,
        subject: str,
        listener: Callable[[Msg], None],
        *,
        queue: str = "",
        overrun: Callable[[], None] | None = None,
    ) -> Subscription:
        """
        Call `listener` for each message; it must not block. Its errors are failures.

        `overrun` is called if a message is dropped because more wait than are kept; otherwise that is told as a return.
        """

        async def deliver(message: Msg) -> None:
            listener(message)

        made = await self.client.subscribe(subject, queue=queue, cb=deliver)  # pyright: ignore[reportUnknownMemberType]
        if overrun is not None:
            self._overruns[made] = overrun
        return made

    async def settle(self) -> None:
        """
        Wait until the server knows our subscriptions.

        The flushes go on when their caller gives up: nats-py stops reading when a pong comes for a flush that was cancelled
        or ran out of its time.
        """
        flushes = asyncio.create_task(self._flush(), name="flush")
        self._flushes.add(flushes)
        flushes.add_done_callback(self._flushed)
        try:
            async with asyncio.timeout(2 * CONNECT_S):
                await asyncio.shield(flushes)
        except errors.Error as error:
            raise BusUnavailableError(f"the connection to NATS is lost: {error}") from error
        except TimeoutError as error:
            raise BusUnavailableError(f"NATS did not answer within {2 * CONNECT_S} seconds") from error

    async def _flush(self) -> None:
        """Twice, because the client's flush overtakes what still waits to be written when it is called."""
        await self.client.flush(ANSWERED_S)
        await self.client.flush(ANSWERED_S)

    def _flushed(self, flushes: asyncio.Task[None]) -> None:
        self._flushes.discard(flushes)
        if not flushes.cancelled():
            flushes.exception()  # its caller has it, if it still waits

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """
        Send without confirmation. Waits in memory while the connection is lost; raises BusUnavailableError when full.
        """
        if len(data) > self.limit:
            raise RefusedError(RefusalCode.TOO_LARGE, _too_large(subject, data, self.limit))
        try:
            await self.client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)
        except errors.Error as error:
            raise BusUnavailableError(
                f"the connection to NATS is lost, and too much waits for it: {error}"
            ) from error

    async def request(
        self, subject: str, data: bytes, *, deadline: float, headers: Mapping[str, str] | None = None
    ) -> Msg:
        """Send and wait for the answer, `deadline` seconds in all."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline
        if not self.client.is_connected:
            await self._until_connected(deadline)
        self._sent += 1
        token = f"{self._sent:x}"
        future: asyncio.Future[Msg] = loop.create_future()
        self._waiting[token] = (subject, future)
        try:
            async with asyncio.timeout_at(end):
                await self.publish(subject, data, reply=self._replies + token, headers=headers)
                message = await future
        except TimeoutError as error:
            raise ReplyTimeoutError(f"no answer on {subject} within {deadline} seconds") from error
        finally:
            del self._waiting[token]
        if status_of(message) == NO_RESPONDERS:
            raise NoResponderError(f"nobody answers {subject}")
        return message

    async def _until_connected(self, deadline: float) -> None:
        try:
            async with asyncio.timeout(deadline):
                await self._connected.wait()
        except TimeoutError as error:
            raise BusUnavailableError("the connection to NATS is lost; it is being retried") from error

    async def _connect(self, url: str, credentials: str, name: str, token: Callable[[], str] | None) -> None:
        options: dict[str, Any] = {"reconnect_time_wait": FIRST_RETRY_S}
        if credentials:
            # A statement is shown again at each connection: the file may have a newer one by then.
            shown = Credential.read(credentials)
            options["user_credentials" if shown.jwt else "nkeys_seed"] = credentials
            self._inbox = shown.inbox_of(self._identity)
            self.asks_for_streams = shown.of_access_point
            if shown.guest:
                self.api = GUESTS_API
        if token is not None:  # who that makes us only the server knows; it is a guest in any case
            options["token"] = token
            self.api = GUESTS_API
        servers = [server.strip() for server in url.split(",") if server.strip()]
        self._servers = len(servers)
        await self.client.connect(
            servers,
            name=name,
            inbox_prefix=self._inbox,
            pending_size=PENDING_BYTES,
            max_reconnect_attempts=-1,
            connect_timeout=CONNECT_S,
            ping_interval=PING_S,
            reconnect_to_server_handler=self._choose,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
            **options,
        )
        self._connected.set()
        self._replies = self.new_inbox() + "."
        await self.subscribe(self._replies + "*", self._on_reply)
        await self.settle()

    def _choose(self, servers: list[Server], _info: dict[str, Any]) -> tuple[Server | None, float]:
        return min(servers, key=lambda server: server.reconnects), self._waits.delay()

    def _on_reply(self, message: Msg) -> None:
        _, future = self._waiting.get(message.subject[len(self._replies) :], ("", None))
        if future is not None and not future.done():
            future.set_result(message)

    async def _on_error(self, error: Exception) -> None:
        text = str(error)
        if "permissions violation" in text:
            self._not_permitted(text)
        elif "authorization violation" in text.lower() and not self._connected.is_set():
            refused = NotAcceptedError("NATS does not accept our credentials")
            if not self._replies:
                raise refused from error
            self.fail(refused)  # it had failed before: a caller that continued would wait without end
        elif isinstance(error, UntrustedError) and self._is_refused():
            raise BusUnavailableError(str(error)) from error
        elif isinstance(error, OSError) and wants_certificate(error) and self._is_refused():
            raise BusUnavailableError(str(failed(error, "the bus", ""))) from error
        elif isinstance(error, errors.SlowConsumerError):
            self._overrun(error)
        elif isinstance(error, (errors.Error, OSError, TimeoutError)):
            said = str(error) or type(error).__name__
            # each try fails in the same way until the server is back
            _log.log(logging.DEBUG if said == self._trouble else logging.WARNING, "NATS: %s", said)
            self._trouble = said
        else:
            self.fail(error)

    def _is_refused(self) -> bool:
        """Whether each server was tried, and none is who it is meant to be: waiting would not help."""
        self._untrusted += not self._replies
        return self._untrusted >= self._servers and not self._replies

    def _not_permitted(self, text: str) -> None:
        asked = [
            (subject, future)
            for subject, future in self._waiting.values()
            if f'"{subject.lower()}"' in text and not future.done()
        ]
        # who asks gets a sentence, and says it where somebody wants to know
        _log.log(logging.DEBUG if asked else logging.ERROR, "NATS: %s", text)
        for subject, future in asked:
            future.set_exception(RefusedError(RefusalCode.NOT_PERMITTED, f"we may not publish on {subject}"))

    def _overrun(self, error: errors.SlowConsumerError) -> None:
        """
        The client dropped a message because more wait than it keeps. What was missed is the same as in a lost connection;
        it is told once for a whole series.
        """
        if (overrun := self._overruns.get(error.sub)) is not None:
            overrun()
            return
        if self._overrun_told is not None:
            return
        _log.warning("NATS: messages on %s come faster than they are taken; some are lost", error.subject)
        self._overrun_told = asyncio.get_running_loop().call_later(OVERRUN_S, self._after_overrun)

    def _after_overrun(self) -> None:
        self._overrun_told = None
        for listener in list(self._on_return):
            listener()

    async def _on_disconnected(self) -> None:
        if self._closing:
            return
        self._connected.clear()
        _log.warning("NATS: the connection is lost")
        for subject, future in self._waiting.values():
            if not future.done():
                future.set_exception(
                    ReplyTimeoutError(f"the connection was lost before {subject} was answered")
                )
        for listener in list(self._on_loss):
            listener()

    async def _on_reconnected(self) -> None:
        self._waits.reset()
        self._connected.set()
        self._trouble = ""
        _log.warning("NATS: connected again")
        for listener in list(self._on_return):
            listener()

    async def _on_closed(self) -> None:
        if not self._closing:
            self.fail(BusError(f"NATS closed our connection for good: {self.client.last_error}"))


def _transport(url: str, ca: str) -> TcpTransport:
    if not is_wanted(url, ca):
        return TcpTransport()
    from kettle.bus.encrypted_stream import EncryptedStreams  # only where connections are encrypted

    return TcpTransport(EncryptedStreams(ca))


def _too_large(subject: str, data: bytes, limit: int) -> str:
    return f"a message of {len(data)} bytes for {subject}; the server's max_payload allows {limit}"
