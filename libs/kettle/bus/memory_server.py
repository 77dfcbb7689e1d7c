"""
A server in memory: what the connections of one test or simulation share.

Its clock is injected. With a clock that does not tick by itself, call `expire` after moving it.
"""

import asyncio
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from kettle.bus.large_requests import Parcel
from kettle.bus.ports import (
    BucketSpec,
    BusUnavailableError,
    KeyChange,
    Message,
    NoResponderError,
    Post,
    StreamSpec,
    WrongSequenceError,
)
from kettle.bus.watched_keys import WatchedKeys

PAYLOAD_LIMIT: Final = 8 * 1024 * 1024


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject falls under a pattern: `*` is one token, a final `>` the rest."""
    wanted, tokens = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(tokens) <= len(wanted):
            return False
        tokens = tokens[: len(wanted)]
    return len(wanted) == len(tokens) and all(w in ("*", t) for w, t in zip(wanted, tokens, strict=True))


def transformed(transform: tuple[str, str] | None, subject: str) -> str:
    """What a stream stores a subject as."""
    if transform is None or not matches(transform[0], subject):
        return subject
    wild = [t for w, t in zip(transform[0].split("."), subject.split("."), strict=True) if w == "*"]
    stored = transform[1]
    for number, text in enumerate(wild, start=1):
        stored = stored.replace(f"{{{{wildcard({number})}}}}", text)
    return stored


class Stream:
    """The messages of a stream, and how far its durable consumers have acknowledged."""

    def __init__(self, spec: StreamSpec) -> None:
        self.spec = spec
        self.first = spec.first_sequence
        self.messages: list[Message] = []
        self.times: list[float] = []
        self.last_note = (self.last, "")
        self.acked: dict[str, int] = {}
        self.changed = asyncio.Event()
        self.until: dict[int, float] = {}
        """When messages with a time to live end, by sequence."""

    @property
    def last(self) -> int:
        """The last sequence; one before the first if the stream is empty."""
        return self.first + len(self.messages) - 1

    def append(
        self,
        subject: str,
        data: bytes,
        expect_last: int | None,
        *,
        at: float,
        note: str = "",
        ttl: float | None = None,
    ) -> int:
        """Add a message under the guard."""
        if self.spec.objects:
            self._make_room(subject, at)
        if expect_last is not None and expect_last != self.last:
            raise WrongSequenceError(
                f"{self.spec.name}: the last sequence is {self.last}", expected=expect_last
            )
        stored = transformed(self.spec.transform, subject)
        self.messages.append(Message(stored, self.last + 1, data))
        self.times.append(at)
        if ttl is not None:
            self.until[self.last] = at + ttl
        self.last_note = (self.last, note)
        self.notify()
        return self.last

    def newest(self, subject: str, *, now: float) -> bytes | None:
        """The newest message on a subject; None if there is none any more."""
        for message in reversed(self.messages):
            if message.subject == subject:
                return message.data if self.until.get(message.sequence, math.inf) > now else None
        return None

    def _make_room(self, subject: str, now: float) -> None:
        """Refuse what finds no room beside the newest messages of the other subjects."""
        newest = {m.subject: m for m in self.messages if m.subject != subject}
        lives = sum(self.until.get(m.sequence, math.inf) > now for m in newest.values())
        if 0 <= self.spec.max_messages < lives + 1:
            raise BusUnavailableError(f"{self.spec.name}: maximum messages exceeded")

    def before(self, time: float) -> int:
        """The sequence of the last message that was stored before a time."""
        return self.first - 1 + bisect_left(self.times, time)

    def after(self, sequence: int, subject: str, limit: int) -> list[Message]:
        """The messages that follow on a sequence."""
        begin = max(0, sequence - self.first + 1)
        return [m for m in self.messages[begin:] if matches(subject, m.subject)][:limit]

    def notify(self) -> None:
        """Wake who waits, each for itself."""
        self.changed.set()
        self.changed = asyncio.Event()


class _Entry(msgspec.Struct, frozen=True):
    value: bytes | None
    revision: int
    expires: float


class Watcher:
    """One watch, with the changes that were not delivered to it yet."""

    def __init__(self, keys: str) -> None:
        self.keys = keys
        self.known = WatchedKeys()
        self.changes: list[KeyChange | None] = []
        self.filled = asyncio.Event()

    def tell(self, change: KeyChange | None) -> None:
        """Queue a change."""
        if change is not None:
            if not matches(self.keys, change.key):
                return
            self.known.record_change(change)
        self.changes.append(change)
        self.filled.set()


class Bucket:
    """The entries of a bucket; deleted ones keep their last revision."""

    def __init__(self, spec: BucketSpec) -> None:
        self.spec = spec
        self.revision = 0
        self.entries: dict[str, _Entry] = {}

    def last(self, key: str) -> int:
        """The revision of an entry or of its deletion."""
        entry = self.entries.get(key)
        return entry.revision if entry else 0


class Connection(Protocol):
    """A client that may answer a command."""

    shared: set[str]
    """Patterns of what others answer as well."""

    def pattern(self, subject: str) -> str:
        """Under which pattern this one answers a command; empty if it does not."""
        ...

    def answer(self, subject: str, parcel: Parcel) -> asyncio.Future[Parcel] | None:
        """The reply to come; None: it is not for this one."""
        ...


class MemoryServer:
    """Streams, buckets, listeners and services."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, payload_limit: int = PAYLOAD_LIMIT
    ) -> None:
        self.clock = clock
        self.payload_limit = payload_limit
        self.streams: dict[str, Stream] = {}
        self.buckets: dict[str, Bucket] = {}
        self.watchers: dict[str, list[Watcher]] = {}
        self.listeners: list[tuple[str, Callable[[str, bytes], None]]] = []
        self.made = asyncio.Event()
        """Set, and replaced, when a stream is made."""
        self.connections: list[Connection] = []
        self.remade: list[Callable[[str], None]] = []
        """Called with the name of a stream or bucket that was lost."""

    def publish(self, subject: str, data: bytes) -> None:
        """Deliver a message to all listeners, in the next iteration of the loop."""
        for pattern, listener in self.listeners:
            if matches(pattern, subject):
                asyncio.get_running_loop().call_soon(listener, subject, data)

    def stream_of(self, subject: str) -> Stream:
        """The stream that stores a subject."""
        for stream in self.streams.values():
            if any(matches(pattern, subject) for pattern in stream.spec.subjects):
                return stream
        raise NoResponderError(f"nobody answers {subject}")

    def append(self, subject: str, data: bytes, expect_last: int | None, ttl: float | None = None) -> int:
        """Store one message under the guard."""
        return self.stream_of(subject).append(subject, data, expect_last, at=self.clock(), ttl=ttl)

    def append_together(self, posts: Sequence[Post], expect_last: int, note: str) -> int:
        """Store messages under the guard, the last one with the note."""
        for post in posts:
            self.publish(post.subject, post.data)
        stream = self.stream_of(posts[0].subject)
        for number, post in enumerate(posts):
            last = number == len(posts) - 1
            stream.append(
                post.subject,
                post.data,
                expect_last + number,
                at=self.clock(),
                note=note if last else "",
            )
        return stream.last

    def put(self, bucket: str, key: str, value: bytes | None, ttl: float | None, expect: int | None) -> int:
        """Set or delete (`value` None) an entry and notify the watchers; returns the revision."""
        self.expire()
        into = self.buckets.get(bucket)
        if into is None:
            raise NoResponderError(f"there is no bucket {bucket}")
        if expect is not None and expect != into.last(key):
            raise WrongSequenceError(f"{bucket}.{key} is at revision {into.last(key)}", expected=expect)
        into.revision += 1
        lives = into.spec.ttl if ttl is None else ttl
        expires = self.clock() + lives if lives and value is not None else float("inf")
        into.entries[key] = _Entry(value, into.revision, expires)
        if lives and value is not None:
            asyncio.get_running_loop().call_later(lives + 0.001, self.expire)
        self._tell(bucket, KeyChange(key, value, into.revision))
        return into.revision

    def entry(self, bucket: str, key: str) -> bytes | None:
        """The value of an entry; None if there is none, or no bucket."""
        self.expire()
        found = self.buckets[bucket].entries.get(key) if bucket in self.buckets else None
        return found.value if found else None

    def watch(self, bucket: str, keys: str) -> Watcher:
        """Begin a watch."""
        watcher = Watcher(keys)
        self.watchers.setdefault(bucket, []).append(watcher)
        if bucket in self.buckets:
            self._replay(self.buckets[bucket], watcher)
        return watcher

    def expire(self) -> None:
        """Delete what has outlived its time."""
        now = self.clock()
        for name, bucket in self.buckets.items():
            for key in [key for key, entry in bucket.entries.items() if entry.expires <= now]:
                bucket.revision += 1
                bucket.entries[key] = _Entry(None, bucket.revision, float("inf"))
                self._tell(name, KeyChange(key, None, bucket.revision))
            for watcher in self.watchers.get(name, ()):
                for key in watcher.known.due(now):
                    watcher.tell(KeyChange(key, None, 0))

    def make_stream(self, spec: StreamSpec) -> Stream:
        """Make a stream if it is not there."""
        if spec.name not in self.streams:
            self.streams[spec.name] = Stream(spec)
            self.made.set()
            self.made = asyncio.Event()
        return self.streams[spec.name]

    def make_bucket(self, spec: BucketSpec) -> None:
        """Make a bucket if it is not there; who watches the name sees it from its beginning."""
        if spec.name in self.buckets:
            return
        bucket = self.buckets[spec.name] = Bucket(spec)
        for watcher in self.watchers.get(spec.name, ()):
            watcher.known.lost(self.clock() + spec.ttl)
            self._replay(bucket, watcher)
            asyncio.get_running_loop().call_later(spec.ttl + 0.001, self.expire)

    def lose(self, name: str) -> None:
        """Lose a stream or bucket with all that is in it, as a server that comes back with nothing does."""
        stream = self.streams.pop(name, None)
        self.buckets.pop(name, None)
        for remake in self.remade:
            remake(name)
        if stream is not None:
            stream.notify()

    def _replay(self, bucket: Bucket, watcher: Watcher) -> None:
        for key, entry in sorted(bucket.entries.items(), key=lambda item: item[1].revision):
            watcher.tell(KeyChange(key, entry.value, entry.revision))
        watcher.tell(None)

    def _tell(self, bucket: str, change: KeyChange) -> None:
        for watcher in self.watchers.get(bucket, ()):
            watcher.tell(change)
