"""The keys on disk: one file that only its owner reads, and that is there whole or not at all."""

import os
from pathlib import Path
from typing import Final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from kettle.auth.private_files import private_directory, write_private
from kettle.auth.tokens.issuing.signing_keys import KeyRing, KeyTimes, SigningKey

_OTHERS: Final = 0o077


class KeyStoreError(Exception):
    """The keys cannot be used; the text names the file and says what to do."""


class _StoredKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    created: int
    jwk: dict[str, str | list[str]]


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[_StoredKey]


class KeyStore:
    """A file with a key ring."""

    def __init__(self, path: Path, times: KeyTimes | None = None) -> None:
        self._path = path
        self.times = times or KeyTimes()

    def ring(self, now: int) -> KeyRing:
        """
        The keys as they are to be now: the first is made if there is none, and what is due is rotated and stored.

        Raises KeyStoreError, OSError.
        """
        stored = self.load()
        fresh = new_key(now) if stored.needs_key(now, self.times) else None
        ring = stored.rotated(fresh, now, self.times)
        if ring != stored:
            self.save(ring)
        return ring

    def load(self) -> KeyRing:
        """What is on disk; empty if there is nothing. Raises KeyStoreError, OSError."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return KeyRing()
        with file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise KeyStoreError(
                    f"{self._path} has keys that sign tokens and others may read it: make new keys, or chmod 600 it if nobody"
                    " else can have read it"
                )
            data = file.read()
        try:
            keys = msgspec.json.decode(data, type=_Stored).keys
            return KeyRing(tuple(SigningKey(_private(each.jwk), each.created) for each in keys))
        except (msgspec.DecodeError, ValueError, JoseError):  # the texts of these may have a key in them
            raise KeyStoreError(
                f"{self._path} is no file of signing keys: restore it, or remove it to have new keys made"
            ) from None

    def save(self, ring: KeyRing) -> None:
        """Put these keys in the place of those on disk. Raises OSError."""
        stored = _Stored([_StoredKey(key.created, key.key.as_dict(private=True)) for key in ring.keys])
        private_directory(self._path.parent)
        write_private(self._path, msgspec.json.encode(stored))


def new_key(now: int) -> SigningKey:
    """A key that nobody has had before."""
    return SigningKey(ECKey.generate_key("P-256"), now)


def _private(jwk: dict[str, str | list[str]]) -> ECKey:
    key = ECKey.import_key(dict(jwk))
    if not key.is_private or key.curve_name != "P-256":
        raise ValueError("not a private key of P-256")
    return key
