"""Join tokens as who makes them has them: the secret is made here, and only its SHA-256 is sent."""

import hashlib
import os
from base64 import urlsafe_b64encode
from typing import Final

import msgspec

from kettle.client.connections.transport import Requests
from kettle_wire.commands.iam import JoinTokenMade

PATIENCE_S: Final = 10.0
"""A pool need not have an iam: it is not waited for as long as for others."""


class MadeJoinToken(msgspec.Struct, frozen=True, kw_only=True):
    """A join token, which is shown once."""

    token: str
    made: JoinTokenMade


def iam_patience(requests: Requests) -> float:
    """How many seconds an answer of iam is waited for."""
    return min(requests.transport.patience, PATIENCE_S)


def new_secret() -> tuple[str, str]:
    """A secret of 256 random bits, and what is recorded of it."""
    secret = urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
    return secret, hashlib.sha256(secret.encode()).hexdigest()
