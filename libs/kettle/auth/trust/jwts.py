"""
The signed statements that a NATS server in operator mode believes: of the operator, of accounts, and of users.

Their form is that of version 2 of NATS's own tools: a JWT with the algorithm `ed25519-nkey`, whose `jti` is the hash of the
other claims.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kettle.auth.trust.keys import KeyPair

VERSION: Final = 2
_json: Final = msgspec.json.Encoder(order="deterministic")


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


_HEADER: Final = _b64(_json.encode({"typ": "JWT", "alg": "ed25519-nkey"}))


def encode(
    signer: KeyPair,
    subject: str,
    nats: Mapping[str, Any],
    *,
    name: str,
    issued: int,
    expires: int = 0,
    audience: str = "",
) -> str:
    """
    What `signer` says of the public key `subject`; times in seconds since the epoch, `expires` 0 is never.
    """
    claims: dict[str, Any] = {"iat": issued, "iss": signer.public, "sub": subject, "name": name, "nats": nats}
    if expires:
        claims["exp"] = expires
    if audience:
        claims["aud"] = audience
    claims["jti"] = (
        base64.b32encode(hashlib.sha256(_json.encode(claims)).digest()).rstrip(b"=").decode("ascii")
    )
    signed = f"{_HEADER}.{_b64(_json.encode(claims))}"
    return f"{signed}.{_b64(signer.sign(signed.encode('ascii')))}"
