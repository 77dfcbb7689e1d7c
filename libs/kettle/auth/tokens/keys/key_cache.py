"""
Which keys of an issuer are used, for how long, and when they are fetched again.

Keys are fetched again after six hours, and when a token names one that is not known: that is how a new key is
learned within seconds. While an issuer is down its last keys are used for up to a day; every such use is counted.
Strangers can write any name of a key into a token, so an issuer is asked at most once a minute, no matter how many do.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec

from kettle.auth.tokens.checking.public_keys import KeySet
from kettle.auth.tokens.keys.discovery import Fetcher, FetchError, published_keys
from kettle.auth.tokens.verified import TokenCode, TokenError


class CacheTimes(msgspec.Struct, frozen=True, kw_only=True):
    """All in seconds."""

    fresh: float = 6 * 3600.0
    """How long keys are used without asking their issuer again."""
    usable: float = 4 * 6 * 3600.0
    """How long keys are used while their issuer cannot be asked."""
    between: float = 60.0
    """How long an issuer is left alone after it was asked."""
    between_first: float = 5.0
    """How long it is left alone while no keys of it are known: people wait for them."""


class CacheCounts(msgspec.Struct):
    """What became of the questions, by issuer: for metrics."""

    fetched: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    used_while_down: Counter[str] = msgspec.field(default_factory=Counter)
    """Checks that were made with keys that should have been fetched again."""


class _Entry(msgspec.Struct):
    keys: KeySet | None = None
    fetched: float = 0.0
    asked: float | None = None
    failure: str = ""
    busy: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


class KeyCache:
    """The keys of all issuers. Times are seconds of one clock, given by the caller."""

    def __init__(
        self, fetcher: Fetcher, times: CacheTimes | None = None, *, own: Mapping[str, KeySet] | None = None
    ) -> None:
        """`own`: the keys of issuers that need not be asked, as this pool itself."""
        self._fetcher = fetcher
        self._times = times or CacheTimes()
        self._own = own or {}
        self._entries: dict[str, _Entry] = {}
        self.counts = CacheCounts()

    async def keys(self, issuer: str, kid: object, now: float) -> KeySet:
        """
        The keys of an issuer, fetched again if they are old or `kid` is not among them.

        Raises TokenError: there are none, and the issuer cannot be asked.
        """
        own = self._own.get(issuer)
        if own is not None:
            return own
        entry = self._entries.setdefault(issuer, _Entry())
        if not self._should_ask(entry, kid, now):
            return self._known(issuer, entry, kid, now)
        if (
            entry.busy.locked()
            and entry.keys is not None
            and entry.keys.has(kid)
            and self._usable(entry, now)
        ):
            return self._known(issuer, entry, kid, now)  # those who come meanwhile need not wait
        async with entry.busy:
            if self._should_ask(entry, kid, now):
                await self._ask(issuer, entry, now)
        return self._known(issuer, entry, kid, now)

    def forget(self, issuer: str) -> None:
        """Drop what is known of an issuer: it is not trusted any longer, or its settings have changed."""
        self._entries.pop(issuer, None)

    def _should_ask(self, entry: _Entry, kid: object, now: float) -> bool:
        if entry.keys is not None and 0 <= now - entry.fetched < self._times.fresh and entry.keys.has(kid):
            return False
        pause = self._times.between if self._usable(entry, now) else self._times.between_first
        # A clock that was set back must not keep an issuer from being asked.
        return entry.asked is None or not 0 <= now - entry.asked < pause

    def _usable(self, entry: _Entry, now: float) -> bool:
        return entry.keys is not None and now - entry.fetched < self._times.usable

    def _known(self, issuer: str, entry: _Entry, kid: object, now: float) -> KeySet:
        if entry.keys is None or not self._usable(entry, now) or (entry.failure and not entry.keys.has(kid)):
            raise TokenError(
                TokenCode.KEYS_UNAVAILABLE,
                f"the keys of {issuer} cannot be fetched, so its tokens cannot be checked now: {entry.failure}",
            )
        if now - entry.fetched >= self._times.fresh:
            self.counts.used_while_down[issuer] += 1
        return entry.keys

    async def _ask(self, issuer: str, entry: _Entry, now: float) -> None:
        try:
            keys = await published_keys(issuer, self._fetcher)
        except FetchError as error:
            entry.failure = str(error)
            self.counts.failed[issuer] += 1
        else:
            entry.keys, entry.fetched, entry.failure = keys, now, ""
            self.counts.fetched[issuer] += 1
        entry.asked = now  # not if this was cancelled: nobody has had an answer then
