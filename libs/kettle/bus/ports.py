"""
The port to the bus: commands, streams, key-value buckets and leases. It may forget; the log may not.

Errors:

    BusError
    ├── BusUnavailableError  not connected, or the server did not answer in time
    │   └── NotAcceptedError  the server does not let us in
    ├── NoResponderError     nobody serves this subject now
    ├── ReplyTimeoutError    somebody serves it but the answer did not come in time: the effect is unknown
    ├── RefusedError         the service refused, with a stable code and a sentence
    └── WrongSequenceError   a guarded append or update found another sequence than it expected
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity

if TYPE_CHECKING:
    from kettle.bus.batching import BatchingDelay


class BusError(Exception):
    """Base of what can go wrong on the bus."""


class BusUnavailableError(BusError):
    """The bus cannot be reached; the connection is retried in the background, without limit."""


class NotAcceptedError(BusUnavailableError):
    """The server does not let us in: waiting does not help. It never says why."""


class NoResponderError(BusError):
    """No service answers this subject at the moment."""


class ReplyTimeoutError(BusError):
    """The answer did not come in time; repeat the command with the same id."""


class RefusedError(BusError):
    """
    A service refused a command. `code` is stable, the message a sentence.

    `retry_after_ms`: after how long the same request may succeed; 0: unknown, or never.
    """

    def __init__(self, code: str, message: str, *, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_ms = retry_after_ms


def refusal_for(error: BusError) -> RefusedError:
    """What a service answers whose handler did not get what it needs from the bus or another service."""
    if isinstance(error, RefusedError):
        return error
    return RefusedError(
        RefusalCode.UNAVAILABLE, f"something that the service needs does not answer at the moment: {error}"
    )


class WrongSequenceError(BusError):
    """The stream (or key) is not where the caller thought; `expected` says where that was."""

    def __init__(self, message: str, *, expected: int) -> None:
        super().__init__(message)
        self.expected = expected


Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)

Handler = Callable[[Req, Identity], Awaitable[Rep]]
"""
Answers one command of one caller; raises RefusedError to refuse. Any other BusError refuses too, as `unavailable`.
"""


class Served(msgspec.Struct, Generic[Req, Rep], frozen=True):
    """An endpoint and who answers it."""

    endpoint: Endpoint[Req, Rep]
    handler: Handler[Req, Rep]
    administrators: Callable[[], Collection[str]] = tuple
    """Who the service's administrators are now, by login name, where the endpoint is for administrators."""


class Auditor(Protocol):
    """Who is told of what people have a service do, and of what they are refused."""

    def acted(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, request: msgspec.Struct
    ) -> None:
        """
        The service of that name has done what only administrators may ask for; raises RefusedError if that cannot be kept, so that
        nobody is answered.
        """
        ...

    def denied(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, refusal: RefusedError
    ) -> None:
        """It has refused somebody who may not ask."""
        ...

    def note(self, who: str, action: str, where: str, sentence: str) -> None:
        """Somebody had the service do what nobody but its administrators may."""
        ...


Authorize = Callable[[Served[Any, Any], Identity], str]
"""Why a person may not send a command that is for people, as a sentence; empty: it may be sent."""


class Learn(Protocol):
    """Brings up to date what is known of a person."""

    def __call__(self, owner: str, *, refused: bool) -> Awaitable[None]:
        """
        `refused`: he would be refused by what is known; otherwise it is enough to do something where nothing is heard by itself.
        Raises RefusedError: it cannot be known at the moment.
        """
        ...


Further = Callable[[str, Sequence[Served[Any, Any]]], Sequence[Served[Any, Any]]]
"""What is answered besides what a service serves under a role: about it."""


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A JetStream stream as the pool wants it."""

    name: str
    subjects: list[str]
    max_bytes: int = -1
    max_messages: int = -1
    max_age: float = 0.0
    """Seconds; 0: no limit."""
    transform: tuple[str, str] | None = None
    """Store what matches the first subject under the second, where `{{wildcard(n)}}` is its n-th `*`."""
    together: bool = False
    """Take several messages as one: see `Bus.append_together`."""
    first_sequence: int = 1
    """Where a stream that has to be made starts counting."""
    memory: bool = False
    remake: bool = True
    """Make it again when the server lost it; false for a stream whose owner refills it from the log."""
    objects: bool = False
    """
    Keep the newest message of each subject, each for its own lifetime; when the stream is full, refuse new ones.
    """


class BucketSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A key-value bucket."""

    name: str
    ttl: float = 0.0
    """
    Seconds that an entry lives without an update; 0: it never expires. Watchers see expiry as a deletion.
    """
    memory: bool = True
    max_bytes: int = -1


class Message(msgspec.Struct, frozen=True):
    """One message of a stream."""

    subject: str
    sequence: int
    data: bytes


class Post(msgspec.Struct, frozen=True):
    """A message that is to be stored."""

    subject: str
    data: bytes


class KeyChange(msgspec.Struct, frozen=True):
    """An entry of a bucket was put (`value`) or deleted or expired (`value` is None)."""

    key: str
    value: bytes | None
    revision: int


class Batch(Protocol):
    """Messages that were fetched together; unacknowledged ones come again."""

    @property
    def messages(self) -> Sequence[Message]:
        """In the order of the stream; never empty."""
        ...

    async def ack(self) -> None:
        """Acknowledge the whole batch: after the caller's own commit."""
        ...


FROM_JOB: Final = "job:"
"""How the address begins by which a running job asks: see `kettle.bus.job_connection`."""


class Asks(Protocol):
    """An object that sends requests: a connection to the bus, or something that chooses one."""

    @property
    def payload_limit(self) -> int:
        """
        The most bytes that one message may have beside its headers. Commands and their answers may have more.
        """
        ...

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float = 5.0
    ) -> Rep:
        """
        Ask one service. Raises NoResponderError, ReplyTimeoutError, RefusedError.

        What is larger than a message travels in parts, up to `kettle.bus.large_messages.LARGEST` bytes each way; `deadline`, in
        seconds, is then that of each part. Code `too_large`: it is larger than that; nothing happened, or the answer is.
        """
        ...


class Commands(Asks, Protocol):
    """Requests and replies: an object that sends requests, and also answers them."""

    async def serve(
        self,
        role: str,
        name: str,
        served: Sequence[Served[Any, Any]],
        *,
        version: str,
        shared: bool = False,
    ) -> None:
        """
        Answer commands until the connection closes. A malformed request is refused with code `malformed`.

        `shared`: all instances of that name can answer, and each command goes to one of them. Without it a command goes
        to all instances of that name, and the first answer counts: an owner that is stopped must not get commands that
        the new owner could answer.
        """
        ...


class Notices(Protocol):
    """Messages that are lost when there is no listener."""

    async def publish(self, subject: str, data: bytes) -> None:
        """Send to current listeners; nothing is stored or confirmed."""
        ...

    async def listen(
        self, subject: str, listener: Callable[[str, bytes], None], *, guarded: bool = False
    ) -> None:
        """
        Call `listener(subject, data)` for every message from now on; it must not block.

        `guarded`: only for those that somebody stores with `append` and `expect_last`. An answer is none of these, and who asks may
        have one sent to any subject of his account.

        Messages that come while the connection is down, or faster than they are processed, are lost: `on_return`
        reports that.
        """
        ...


class Streams(Protocol):
    """Messages that are stored in order."""

    async def ensure_stream(self, spec: StreamSpec) -> int:
        """Make the stream if it is not there; returns its last sequence."""
        ...

    async def last_sequence(self, stream: str) -> int | None:
        """The stream's last sequence; None if there is no such stream."""
        ...

    async def first_sequence(self, stream: str) -> int | None:
        """The first sequence that the stream still has; None if there is no such stream."""
        ...

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        expect_last: int | None = None,
        ttl: float | None = None,
        deadline: float = 5.0,
    ) -> int:
        """
        Store a message in the stream of `subject`; returns its sequence. WrongSequenceError if not after `expect_last`.

        `ttl`: seconds that it lives, in a stream of objects.
        """
        ...

    async def newest(self, stream: str, subject: str, *, deadline: float = 5.0) -> bytes | None:
        """The newest message of a stream on one subject; None if there is none, or no such stream."""
        ...

    async def append_together(
        self, posts: Sequence[Post], *, expect_last: int, note: str = "", deadline: float = 5.0
    ) -> int:
        """
        Store up to 1,000 messages of one stream, all of them or none; returns the sequence of the last one.

        It is stored with the `note` (printable ASCII), which is found again by `last_note`. Live listeners receive the
        messages in any case. WrongSequenceError if they would not come right after `expect_last`.
        """
        ...

    async def last_note(self, stream: str) -> tuple[int, str]:
        """
        The stream's last sequence, and the note that was stored with that message.

        Empty: it has none, or the message has outlived its time.
        """
        ...

    async def stored_subjects(self, subject: str) -> list[str]:
        """
        What the streams take that take anything of `subject`, which may be a filter: one entry per subject.
        """
        ...

    def consume(
        self,
        stream: str,
        durable: str,
        *,
        subject: str,
        batch: int = 256,
        after: int = 0,
        since: float = 0.0,
        ephemeral: bool = False,
        gather: "BatchingDelay | None" = None,
    ) -> AsyncGenerator[Batch, None]:
        """
        Read a stream from its position after sequence `after` (a new consumer), in order, without end.

        `since`: begin with what was stored at that time, seconds since the epoch, or later.

        A durable consumer goes on after its last acknowledged message; it has one reader at a time. If the stream or
        the consumer vanished they are waited for and made again; a stream that was made again is read from its
        beginning. `ephemeral` reads without a name and without acknowledging. Messages may come twice, never out of
        order.

        `gather` says how long a message may wait for others that are taken together with it.
        """
        ...

    def read(
        self, stream: str, *, subject: str, batch: int = 256, after: int = 0, since: float = 0.0
    ) -> AsyncGenerator[Message, None]:
        """What a stream has now of `subject`, in order, from where `consume` would begin; then it ends."""
        ...


class Buckets(Protocol):
    """Entries with keys: the newest value of each, for as long as it lives."""

    async def ensure_bucket(self, spec: BucketSpec) -> None:
        """Make the bucket if it is not there."""
        ...

    async def put(self, bucket: str, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """
        Set an entry, unconfirmed: the next heartbeat of its owner repairs a loss. `ttl` seconds, else the bucket's.
        """
        ...

    async def update(
        self,
        bucket: str,
        key: str,
        value: bytes,
        *,
        expect: int,
        ttl: float | None = None,
        deadline: float = 5.0,
    ) -> int:
        """
        Set an entry if its revision is `expect` (0: no entry); returns the new one. WrongSequenceError otherwise.
        """
        ...

    async def get(self, bucket: str, key: str, *, deadline: float = 5.0) -> bytes | None:
        """
        An entry as the server has it now, with everything that `update` has confirmed; None if there is none, or no bucket.
        """
        ...

    async def delete(self, bucket: str, key: str, *, expect: int | None = None) -> None:
        """Withdraw an entry (if its revision is `expect`), unconfirmed; watchers see it at once."""
        ...

    def watch(self, bucket: str, keys: str = ">") -> AsyncGenerator[KeyChange | None, None]:
        """
        All present entries, then None once, then every change.

        After a lost bucket, all over again (with its None): entries that nobody sends again within the bucket's
        time to live are then reported as deleted.
        """
        ...


class Bus(Commands, Notices, Streams, Buckets, Protocol):
    """
    A connection to the bus. Every adapter passes `tests/contract/test_bus.py`.

    Lost connections are retried without end, with jittered back-off; watches and consumers resume by themselves, and the
    buckets and streams that this connection ensured are made again if the server lost them.
    """

    @property
    def connected(self) -> bool:
        """Whether there is a server at the moment: a readiness check."""
        ...

    async def failure(self) -> None:
        """
        Wait for a failure that no retry repairs, and raise it: a failed handler, a connection that was closed permanently.

        A service awaits it beside its own loops, so that it stops instead of continuing without a part of its work.
        """
        ...

    def on_return(self, listener: Callable[[], None]) -> None:
        """
        Call `listener` after something may have been missed: the connection came back, a lost bucket was made again, or
        messages came faster than they were processed. Send again what only the bus had, and query what may have been
        missed.
        """
        ...


class Lease(Protocol):
    """A held lease; it renews itself at a third of its time until released."""

    @property
    def lost(self) -> Awaitable[None]:
        """Done when the lease could not be kept: the holder must stop."""
        ...

    async def release(self) -> None:
        """Let the next one in at once."""
        ...


class Leases(Protocol):
    """Elects who tries to own something. It does not fence: the epoch in the log does."""

    async def acquire(self, key: str, holder: str, *, ttl: float) -> Lease:
        """Wait until the lease is ours; `ttl` seconds."""
        ...
