"""
What machines show to the bus, signed with the pool's signing key for startds: what a startd may do is in the account, and
not in what is said of it.  A stolen key of this kind can make startds, and nothing else.
"""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NoReturn

from kettle.auth.trust.accounts import Account
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, SeedError
from kettle.bus.credentials import ACCESS_POINT, GUEST
from kettle.runtime import SettingsError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.subjects import token

SERVICES: Final = ("master", "schedd", "shadow")
"""The services of an access point."""
_ACCESS_POINT: Final = re.compile(r"(?!.*_2E)[A-Za-z0-9_-]{1,63}")
"""
Without what a dot becomes in the name of a stream: the stream of a queue `ap.lab` of the pool's own is that of an access point `ap_2Elab`,
and who has it may read with the readers of the other.
"""


class ScopedSigningKey:
    """Signs for one account of the bus."""

    def __init__(
        self,
        account: str,
        seed_file: Path,
        taken: Callable[[], Collection[str]] = tuple,
        trust: Path | None = None,
    ) -> None:
        """
        `account`: its public key; `taken`: names that no machine may have, since others in the pool have them; `trust`: where
        the keys of the pool's own server are, for access points.

        Raises:
            SettingsError: the file holds no seed of an account's signing key.
        """
        self._account: Final = account
        self._taken = taken
        self._trust = trust
        try:
            self._key: Final = KeyPair(seed_file.read_text(encoding="ascii"))
        except (OSError, SeedError) as error:
            raise SettingsError(f"workers_signing_key: {seed_file} holds no NKey seed: {error}") from error
        if not self._key.public.startswith("A"):
            raise SettingsError(f"workers_signing_key: {seed_file} holds no seed of an account's signing key")

    def require_open(self) -> None:
        """See `BusCredentials`."""

    def mint_worker(self, name: str, *, key: str, owner: str, issued: float, expires: float) -> str:
        """See `BusCredentials`."""
        if name in self._taken():
            raise Denied(
                Code.JOIN_NAME_TAKEN,
                f"{name} is the name of a host of this pool: join under another name",
                status=409,
            )
        tags = [GUEST, *([f"owner:{token(owner)}"] if owner else [])]
        nats = {"type": "user", "version": 2, "issuer_account": self._account, "tags": tags}
        return encode(self._key, key, nats, name=token(name), issued=int(issued), expires=int(expires))

    def mint_access_point(self, name: str, *, key: str, issued: float, expires: float) -> dict[str, str]:
        """See `BusCredentials`."""
        if self._trust is None:
            raise Denied(
                Code.JOIN_CLOSED,
                "no access point can join this pool by a token: its NATS server is not the pool's own, and has to be told of each",
                status=503,
            )
        if not _ACCESS_POINT.fullmatch(name):
            raise Denied(
                Code.REQUEST_MALFORMED,
                f"{name[:64]} cannot be the name of an access point: letters, digits, - and _ but not _2E, 63 at most; give one with --name",
                status=400,
            )
        if name in self._taken():
            raise Denied(
                Code.JOIN_NAME_TAKEN,
                f"{name} is the name of a host or queue of this pool: join under another name",
                status=409,
            )
        joined = _key(self._trust / f"account-{Account.JOINED}.nk").public
        nats = {"type": "user", "version": 2, "issuer_account": joined, "tags": [GUEST, ACCESS_POINT]}
        return {
            role: encode(
                _key(self._trust / f"sign-{role}.nk"),
                key,
                nats,
                name=name,
                issued=int(issued),
                expires=int(expires),
            )
            for role in SERVICES
        }


def _key(seed_file: Path) -> KeyPair:
    return KeyPair(seed_file.read_text(encoding="ascii"))


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

    def mint_worker(self, name: str, *, key: str, owner: str, issued: float, expires: float) -> str:
        """See `BusCredentials`."""
        self.require_open()

    def mint_access_point(self, name: str, *, key: str, issued: float, expires: float) -> dict[str, str]:
        """See `BusCredentials`."""
        self.require_open()
