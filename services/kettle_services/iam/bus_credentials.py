"""
User JWTs of machines, signed with a scoped signing key of the bus: what a machine may do is in the account, and not in its JWT.

A stolen key of this kind can make machines, and nothing else.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import nkeys  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from kettle.runtime import SettingsError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.events.iam import Joins
from kettle_wire.subjects import token

_json: Final = msgspec.json.Encoder(order="deterministic").encode


class ScopedSigningKey:
    """Signs for one account of the bus."""

    def __init__(self, account: str, seed_file: Path) -> None:
        """
        `account`: its public key.

        Raises:
            SettingsError: the file holds no seed of an account's signing key.
        """
        self._account = account
        try:
            seed = seed_file.read_text(encoding="ascii").strip()
            self._key: Any = nkeys.from_seed(bytearray(seed.encode()))  # pyright: ignore[reportUnknownMemberType]
            self._public = str(self._key.public_key, "ascii")
        except (OSError, ValueError, nkeys.NkeysError) as error:
            raise SettingsError(f"workers_signing_key: {seed_file} holds no NKey seed: {error}") from error
        if not self._public.startswith("A"):
            raise SettingsError(f"workers_signing_key: {seed_file} holds no seed of an account's signing key")

    def require_open(self) -> None:
        """See `BusCredentials`."""

    def mint_worker(
        self, name: str, *, joins: Joins, key: str, owner: str, issued: float, expires: float
    ) -> str:
        """See `BusCredentials`."""
        tags = [f"name:{token(name)}", f"joins:{joins}", *([f"owner:{token(owner)}"] if owner else [])]
        claims: dict[str, Any] = {
            "iat": int(issued),
            "iss": self._public,
            "sub": key,
            "name": token(name),
            "nats": {"type": "user", "version": 2, "issuer_account": self._account, "tags": tags},
        }
        if expires:
            claims["exp"] = int(expires)
        claims["jti"] = base64.b32encode(hashlib.sha256(_json(claims)).digest()).rstrip(b"=").decode()
        signed = f"{_b64(_json({'typ': 'JWT', 'alg': 'ed25519-nkey'}))}.{_b64(_json(claims))}"
        return f"{signed}.{_b64(self._key.sign(signed.encode()))}"


class NoSigningKey:
    """A pool whose bus admits no machines by token."""

    def require_open(self) -> NoReturn:
        """See `BusCredentials`."""
        raise Denied(
            Code.JOIN_CLOSED,
            "no machine can join this pool by a token: iam has no key that signs for the bus, see workers_account and "
            "workers_signing_key in the table [iam]",
            status=503,
        )

    def mint_worker(
        self, name: str, *, joins: Joins, key: str, owner: str, issued: float, expires: float
    ) -> str:
        """See `BusCredentials`."""
        self.require_open()


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
