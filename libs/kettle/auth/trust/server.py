"""What a NATS server has to be told about whom it trusts, and the trust of a server with one account."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, Kind, SeedError
from kettle.bus.credentials import Credential


class Statements(msgspec.Struct, frozen=True):
    """The settings of a server in operator mode."""

    operator: str
    """What the operator says of itself."""
    system: str
    """The public key of the system account."""
    accounts: Mapping[str, str]
    """What the operator says of each account, by public key."""
    streams: str
    """The public key of the account that has streams."""


class Permissions(msgspec.Struct, frozen=True):
    """The subjects on which somebody may publish and to which he may subscribe; `*` and `>` as in NATS."""

    publish: Sequence[str] = ()
    subscribe: Sequence[str] = ()

    def claims(self) -> dict[str, Any]:
        """As a statement about a user has them. An empty list would mean everything."""
        return {"pub": _allowed(self.publish), "sub": _allowed(self.subscribe)}


class Trust(Protocol):
    """Whom a server of ours trusts."""

    def statements(self) -> Statements:
        """As they are now."""
        ...

    def credentials(self, name: str) -> Path:
        """The file that somebody shows to the server, by his name here."""
        ...

    def probe(self) -> str:
        """The path of such a file for the question whether JetStream answers, and nothing else."""
        ...

    def teller(self) -> Credential:
        """With which a server that runs is told of its accounts, in the next minute."""
        ...


UNLIMITED: Final = {"subs": -1, "data": -1, "payload": -1}
_ACCOUNT: Final = UNLIMITED | {"imports": -1, "exports": -1, "wildcards": True, "leaf": -1}
_JETSTREAM: Final = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
PROBE: Final = "probe"
"""The name of who asks only whether JetStream answers."""
PROBING: Final = Permissions(publish=("$JS.API.INFO",), subscribe=("_INBOX.probe.>",))
PROBE_INBOX: Final = b"_INBOX.probe"
TELLER_INBOX: Final = b"_INBOX.teller"
_TELLER_LIVES_S: Final = 60


class Seeds:
    """Keys of ours, each in a file of a private directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def key(self, name: str, kind: Kind) -> KeyPair:
        """The key of that name, made the first time and kept.  Raises SeedError if its file holds none."""
        path = self._directory / f"{name}.nk"
        try:
            seed = path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            key = KeyPair.new(kind)
            private_directory(self._directory)
            write_private(path, key.seed + "\n")
            return key
        try:
            return KeyPair(seed)
        except SeedError as error:
            raise SeedError(f"{path}: {error}; remove the file to have a new one made") from error


def operator(key: KeyPair, system: KeyPair) -> str:
    """What an operator says of itself: always the same, for a running server takes no other."""
    nats = {"type": "operator", "version": 2, "system_account": system.public}
    return encode(key, key.public, nats, name="kettle", issued=0)


def account(
    signer: KeyPair,
    key: KeyPair,
    name: str,
    *,
    jetstream: bool = False,
    connections: int = -1,
    **more: object,
) -> str:
    """
    What an operator says of an account; `connections`: how many there may be at a time, -1: any number; `more` as version 2 of
    these statements names it.
    """
    nats: dict[str, Any] = {
        "type": "account",
        "version": 2,
        "limits": _ACCOUNT | {"conn": connections} | (_JETSTREAM if jetstream else {}),
        "default_permissions": {"pub": {}, "sub": {}},
        **more,
    }
    return encode(signer, key.public, nats, name=name, issued=0)


def user(
    signer: KeyPair,
    public: str,
    name: str,
    permissions: Permissions,
    *,
    now: int,
    account: str = "",
    expires: int = 0,
) -> str:
    """
    What an account says of a user whose permissions are his own; `account`: its public key, where a signing key of it signs.
    """
    nats = {"type": "user", "version": 2, **UNLIMITED, **permissions.claims()}
    if account:
        nats["issuer_account"] = account
    return encode(signer, public, nats, name=name, issued=now, expires=expires)


def claims_of(account: str) -> str:
    """Where servers are told what their operator says of an account."""
    return f"$SYS.REQ.ACCOUNT.{account}.CLAIMS.UPDATE"


def teller(system: KeyPair) -> Credential:
    """
    A credential with which a server is told of its accounts, with the key of its system account: what it tells has to be signed by
    the operator all the same.
    """
    key, now = KeyPair.new(Kind.USER), int(time.time())
    may = Permissions((claims_of("*"),), (f"{TELLER_INBOX.decode()}.>",))
    return Credential(
        key.seed, user(system, key.public, "teller", may, now=now, expires=now + _TELLER_LIVES_S)
    )


class SingleAccount:
    """One account for all, each with permissions of his own: what tests need that are not about accounts."""

    def __init__(self, directory: Path, permissions: Mapping[str, Permissions]) -> None:
        self._directory = directory
        self._seeds = Seeds(directory / "trust")
        self._permissions = permissions

    def statements(self) -> Statements:
        """See `Trust`."""
        own, system, everybody = self._key("operator"), self._key("system"), self._key("everybody")
        for name in self._permissions:
            self.credentials(name)
        return Statements(
            operator(own, system),
            system.public,
            {
                system.public: account(own, system, "system"),
                everybody.public: account(own, everybody, "everybody", jetstream=True),
            },
            everybody.public,
        )

    def credentials(self, name: str) -> Path:
        """See `Trust`."""
        permissions = PROBING if name == PROBE else self._permissions[name]
        key = self._seeds.key(f"user-{name}", Kind.USER)
        jwt = user(self._key("everybody"), key.public, name, permissions, now=0)
        return write_private(self._directory / f"{name}.creds", Credential(key.seed, jwt).text())

    def probe(self) -> str:
        """See `Trust`."""
        return str(self.credentials(PROBE))

    def teller(self) -> Credential:
        """See `Trust`."""
        return teller(self._key("system"))

    def _key(self, name: str) -> KeyPair:
        return self._seeds.key(name, Kind.OPERATOR if name == "operator" else Kind.ACCOUNT)


def _allowed(subjects: Sequence[str]) -> dict[str, list[str]]:
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}
