"""
Which of our keys signs, which are published, and when there is a new one. Pure: keys and time are given in.

A key is published a while before it signs, so that a service that keeps our keys for hours has it by then, and for a while
after it has signed its last token, so that this token can be checked until it ends.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from joserfc import jws
from joserfc.jwk import ECKey

from kettle.auth.tokens.checking.public_keys import KeySet, PublicKey

ALGORITHM: Final = "ES256"
_DAY: Final = 86400


class KeyTimes(msgspec.Struct, frozen=True, kw_only=True):
    """All in seconds."""

    life: int = 30 * _DAY
    """After so long a new key is made."""
    lead: int = _DAY
    """A key is published so long before it signs; the first key signs at once."""
    overlap: int = 2 * _DAY
    """A key is published so long after it has stopped to sign: longer than any token is valid."""


class SigningKey(msgspec.Struct, frozen=True):
    """One of our keys, with its secret half."""

    key: ECKey
    created: int
    """Seconds since the epoch."""

    @property
    def kid(self) -> str:
        """Its name: its fingerprint (RFC 7638), so that no two keys have one name."""
        return self.key.thumbprint()

    @property
    def digest(self) -> bytes:
        """The fingerprint itself, the 32 bytes of a SHA-256."""
        return base64.urlsafe_b64decode(f"{self.kid}=")

    def signed(self, claims: Mapping[str, object], kind: str) -> str:
        """The JWT of these claims; `kind` is its `typ`."""
        header = {"alg": ALGORITHM, "typ": kind, "kid": self.kid}
        return jws.serialize_compact(header, msgspec.json.encode(claims), self.key, algorithms=[ALGORITHM])

    def __repr__(self) -> str:
        """Without the secret."""
        return f"SigningKey({self.kid}, created={self.created})"


class KeyRing(msgspec.Struct, frozen=True):
    """Our keys, the oldest first."""

    keys: tuple[SigningKey, ...] = ()

    def needs_key(self, now: int, times: KeyTimes) -> bool:
        """Whether it is time for a new key."""
        return not self.keys or now >= self.keys[-1].created + times.life

    def signing(self, now: int, times: KeyTimes) -> SigningKey:
        """The key that signs now: the newest of those that have been published for long enough."""
        assert self.keys, "a key ring has a key before anything is signed"
        ready = [key for key in self.keys if key.created + times.lead <= now]
        return ready[-1] if ready else self.keys[0]

    def rotated(self, fresh: SigningKey | None, now: int, times: KeyTimes) -> "KeyRing":
        """The ring with a new key, if there is one, and without those that no token needs any longer."""
        keys = (*self.keys, fresh) if fresh is not None else self.keys
        replaced = [key.created + times.lead + times.overlap <= now for key in keys[1:]]
        return KeyRing(
            tuple(key for key, over in zip(keys, [*replaced, False], strict=bool(keys)) if not over)
        )

    def without(self, kid: str) -> "KeyRing":
        """
        The ring without a key that somebody else may have: all that it has signed is worth nothing at once.
        """
        return KeyRing(tuple(key for key in self.keys if key.kid != kid))

    def jwks(self) -> bytes:
        """The document of all keys, as it is published (RFC 7517)."""
        return json.dumps({"keys": [_published(key) for key in self.keys]}).encode()

    def key_set(self) -> KeySet:
        """The keys for checking our own tokens, without asking ourselves over the network."""
        return KeySet(tuple(PublicKey(key.kid, ALGORITHM, _public(key)) for key in self.keys))


def _published(key: SigningKey) -> dict[str, Any]:
    return {**_public(key).as_dict(private=False), "kid": key.kid, "use": "sig", "alg": ALGORITHM}


def _public(key: SigningKey) -> ECKey:
    return ECKey.import_key(key.key.as_dict(private=False))
