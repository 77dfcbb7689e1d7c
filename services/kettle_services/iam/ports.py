"""What iam needs of those who sign: for access tokens its own keys, for machines one of the bus."""

from collections.abc import Mapping
from typing import Any, Protocol

from kettle.auth.tokens.issuing.derived import Grant
from kettle.auth.tokens.verified import VerifiedToken
from kettle_wire.events.iam import Joins

Claims = Mapping[str, Any]


class TokenKeys(Protocol):
    """The keys with which iam signs access tokens, and by which others check them."""

    @property
    def pin(self) -> str:
        """The SHA-256 thumbprint (RFC 7638) of the key that signs `statement`, in hexadecimal digits."""
        ...

    def issue(self, grant: Grant, token: str, *, now: float) -> str:
        """An access token with this id; raises Denied for scopes that no token can have."""
        ...

    def statement(self, claims: Claims) -> str:
        """What a machine that joins checks with the pin of its join token."""
        ...

    def opened(self, sealed: str) -> Mapping[str, str]:
        """What was sealed for the key that signs `statement` (`kettle.auth.sealing`); raises Denied."""
        ...

    def verified(self, token: str, issuer: str, *, now: float) -> VerifiedToken:
        """An access token of ours, whomever it is for; raises Denied."""
        ...

    def published(self) -> bytes:
        """The public keys, as the document of a JWK set."""
        ...

    def rotate(self, *, now: float) -> bool:
        """
        Make the next key if it is time, and forget those that no valid token needs; whether something has
        changed.
        """
        ...


class BusCredentials(Protocol):
    """Mints what machines show to the bus."""

    def require_open(self) -> None:
        """Raise Denied if this pool's bus cannot admit machines."""
        ...

    def mint_worker(self, name: str, *, key: str, owner: str, issued: float, expires: float) -> str:
        """
        The user JWT of a machine for the public key that it has made; `expires` 0: without end. The same arguments give the same JWT,
        so that a machine that asks again gets the same answer. Raises like `require_open`.
        """
        ...

    def mint_access_point(self, name: str, *, key: str, issued: float, expires: float) -> dict[str, str]:
        """The user JWT of each service of an access point, by role, as `mint_worker` makes one."""
        ...


class PoolMaster(Protocol):
    """The master that runs the pool's NATS server.  Its methods raise BusError."""

    async def cut_off(self, joins: Joins, key: str) -> None:
        """Believe nothing any more of what was said of a key."""
        ...

    async def admit(self, access_point: str, people: str) -> str:
        """Let an access point's people in; the public key of the account that they are in."""
        ...

    async def forget(self, access_point: str) -> None:
        """Undo that."""
        ...
