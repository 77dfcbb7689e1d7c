"""The keys of iam on disk: those that sign access tokens, and the one by which machines know the pool."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kettle.auth import sealing
from kettle.auth.private_files import private_directory
from kettle.auth.sealing import SealingError
from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.issuing.derived import Grant, issue
from kettle.auth.tokens.issuing.key_store import KeyStore, KeyStoreError
from kettle.auth.tokens.issuing.signing_keys import KeyRing, KeyTimes
from kettle.auth.tokens.verified import TokenError, VerifiedToken
from kettle.runtime import SettingsError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.ports import Claims

_FOR_EVER: Final = KeyTimes(life=1 << 62)


class KeyFiles:
    """The keys in one directory."""

    def __init__(self, directory: Path, times: KeyTimes, *, now: float) -> None:
        """Raises SettingsError: a file is damaged."""
        private_directory(directory)
        self._store: Final = KeyStore(directory / "token-keys.json", times)
        try:
            self._ring: KeyRing = self._store.ring(int(now))
            joins = KeyStore(directory / "join-key.json", _FOR_EVER).ring(int(now))
        except KeyStoreError as error:
            raise SettingsError(str(error)) from error
        self._pinned: Final = joins.keys[0]
        self._checking = self._ring.key_set()

    @property
    def pin(self) -> str:
        """See `TokenKeys`."""
        return self._pinned.digest.hex()

    def issue(self, grant: Grant, token: str, *, now: float) -> str:
        """See `TokenKeys`."""
        key = self._ring.signing(int(now), self._store.times)
        try:
            return issue(grant, key, int(now), token)
        except TokenError as error:
            raise Denied(Code(error.code), str(error), status=400) from error

    def statement(self, claims: Claims) -> str:
        """See `TokenKeys`."""
        return self._pinned.signed(claims, "kettle-join+jwt")

    def opened(self, sealed: str) -> Mapping[str, str]:
        """See `TokenKeys`."""
        try:
            return sealing.opened(sealed, self._pinned.key)
        except SealingError as error:
            raise Denied(Code.JOIN_MALFORMED, str(error), status=400) from error

    def verified(self, token: str, issuer: str, *, now: float) -> VerifiedToken:
        """See `TokenKeys`."""
        own = Issuer(url=issuer, audiences=(issuer,))
        try:
            return verify(parse(token), own, self._checking, now, for_anybody=True)
        except TokenError as error:
            raise Denied(Code(error.code), str(error), status=401) from error

    def published(self) -> bytes:
        """See `TokenKeys`."""
        return KeyRing((*self._ring.keys, self._pinned)).jwks()

    def rotate(self, *, now: float) -> bool:
        """See `TokenKeys`."""
        before = [key.kid for key in self._ring.keys]
        self._ring = self._store.ring(int(now))
        self._checking = self._ring.key_set()
        return before != [key.kid for key in self._ring.keys]
