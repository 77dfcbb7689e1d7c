"""
Making a token, byte for byte as HTCondor does. Pure: the time and the token's name are given in.

The name is of 32 hexadecimal digits.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.auth.mapping.levels import SCOPE, Level

LEVELS: Final = tuple(level.value for level in Level if level is not Level.OWNER)
"""The levels to which a token may be limited."""
ALGORITHM: Final = "HS256"


class IdTokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says."""

    trust_domain: str
    identity: str
    """`user@domain`."""
    issued: int
    """Seconds since the epoch."""
    id: str
    lifetime: int | None = None
    """Seconds; without end if there is none."""
    levels: Sequence[str] = ()
    """To which it is limited; to none if there are none."""


def create(claims: IdTokenClaims, key_name: str, secret: bytes) -> str:
    """The signed token; raises ValueError: HTCondor would read another trust domain."""
    if not claims.trust_domain or any(each in claims.trust_domain for each in ", \t\r\n"):
        raise ValueError("Issuer namespace may not contain spaces or commas")
    payload: dict[str, object] = {
        "iat": claims.issued,
        "iss": claims.trust_domain,
        "jti": claims.id,
        "sub": claims.identity,
    }
    if claims.lifetime is not None:
        payload["exp"] = claims.issued + claims.lifetime
    if claims.levels:
        payload["scope"] = " ".join(f"{SCOPE}{level}" for level in claims.levels)
    data = f"{_part({'alg': ALGORITHM, 'kid': key_name})}.{_part(payload)}"
    return f"{data}.{_encoded(hmac.digest(secret, data.encode(), hashlib.sha256))}"


def _part(values: Mapping[str, object]) -> str:
    # HTCondor's library for JSON sorts the names and writes a slash with a backslash before it.
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _encoded(text.replace("/", "\\/").encode())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
