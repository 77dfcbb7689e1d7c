"""
Whom the server of a pool trusts: the accounts, and one signing key for each kind of member of them.

    <directory>/operator.nk            signs what is said of accounts; nobody needs it while the pool runs
    <directory>/account-<ACCOUNT>.nk
    <directory>/sign-<kind>.nk         signs members of one kind, and can give them no other permissions than that kind has
    <directory>/access-points.json     access points that have joined, each with the key by which it vouches for its people
    <directory>/revoked.json           keys of members that are not admitted any more

A signing key is *scoped*: the account says what those may do whom it signs for, in a form with their name in it, and a
statement that brings permissions of its own is refused by the server.  So a stolen key makes members of one kind.
Services are the exception: each role has permissions of its own, and what is said of them is signed by a key that only
the master uses.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.auth import bus_permissions
from kettle.auth.bus_permissions import (
    ADMINISTRATOR,
    BEARER,
    BEARING_ADMINISTRATOR,
    FORWARDER,
    MONITOR,
    READER,
    STARTD,
    SUBMITTER,
    VISITOR,
    people_of,
    permissions,
)
from kettle.auth.private_files import private_directory, write_private
from kettle.auth.trust.accounts import Account, uses
from kettle.auth.trust.callout import ANSWERS, CalloutKeys, asked, callout_keys
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, TrustError
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.server import (
    PROBE,
    PROBING,
    UNLIMITED,
    Permissions,
    Seeds,
    Statements,
    account,
    operator,
    teller,
    user,
)
from kettle.auth.trust.shared_subjects import exported, imported
from kettle.bus.credentials import ACCESS_POINT, GUEST, Credential
from kettle_wire import identity
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects, token

CONNECTIONS: Final[Mapping[Account, int]] = {
    Account.PEOPLE: 4096,
    Account.WORKERS: 10_240,
    Account.OUTSIDERS: 512,
    Account.JOINED: 1024,
    Account.AUTH: 8192,
}
"""
So that there is room for the pool's own services, whatever others do: our server has 16,384 connections at most. Who shows a token
has a place in AUTH until iam has answered, and with a wrong one as long as anybody: with few places strangers would keep people out.
"""
SUBSCRIPTIONS: Final = 512
"""Of one connection of a member; ours have some dozens."""
_ACCESS_POINTS: Final = "access-points.json"
OBSERVERS_INBOX: Final = "_INBOX.observer"
_NAME: Final = "KETTLETEMPLATE"
_ITS_NAME: Final = "{{name()}}"


class Kind(Enum):
    """
    Kinds of members: their role in the permissions, the account that they are in, and the identity that they speak under.
    """

    READER = READER, Account.PEOPLE, identity.bearer
    SUBMITTER = SUBMITTER, Account.PEOPLE, identity.bearer
    PERSON = "user", Account.PEOPLE, identity.user
    ADMINISTRATOR = ADMINISTRATOR, Account.PEOPLE, identity.user
    BEARER = BEARER, Account.PEOPLE, identity.bearer
    BEARING_ADMINISTRATOR = BEARING_ADMINISTRATOR, Account.PEOPLE, identity.bearer
    MONITOR = MONITOR, Account.PEOPLE, identity.daemon
    WORKER = STARTD, Account.WORKERS, identity.worker
    VISITOR = VISITOR, Account.OUTSIDERS, identity.visitor
    FORWARDER = FORWARDER, Account.OUTSIDERS, identity.visitor
    SCHEDD = "joined-schedd", Account.JOINED, partial(identity.daemon, "schedd")
    SHADOW = "joined-shadow", Account.JOINED, partial(identity.daemon, "shadow")
    MASTER = "joined-master", Account.JOINED, partial(identity.daemon, "master")

    def __init__(self, role: str, account: Account, speaks_as: Callable[[str], Identity]) -> None:
        self.role = role
        self.account = account
        self.speaks_as = speaks_as


_OF_ACCESS_POINTS: Final = (Kind.SCHEDD, Kind.SHADOW, Kind.MASTER)
_BY_TOKEN: Final[Mapping[str, Kind]] = {
    "reader": Kind.READER,
    "submitter": Kind.SUBMITTER,
    "person": Kind.BEARER,
    "administrator": Kind.BEARING_ADMINISTRATOR,
}
"""Whom there are only where people come by token, by what iam calls them."""


class AccessPoint(msgspec.Struct, frozen=True):
    """One that has joined."""

    people: str
    """The public key of the account's signing key that it has made for the people who use it."""
    apart: bool = False
    """
    Its services are in the account of such access points.  One that joined before there was that account has them in the account
    of the pool's own services, until it joins again.
    """


class PoolTrust:
    """The keys of one pool, in a directory that only its account can read."""

    def __init__(
        self,
        directory: Path,
        subjects: Subjects,
        *,
        shards: Mapping[str, Sequence[str]] = bus_permissions.SHARDS,
        callout: bool = False,
        connections: Mapping[Account, int] = CONNECTIONS,
    ) -> None:
        """
        `shards`: the names of the shards that each role owns; `callout`: people come by token, and an iam says who they are;
        `connections`: how many members an account has at a time.
        """
        self.callout: Final = callout
        self._connections = connections
        self._directory = directory
        self._subjects = subjects
        self._shards = shards
        self._seeds = Seeds(directory)

    def statements(self) -> Statements:
        """
        What the server has to be told, as it is now.  It is the same text until something has changed, because the server builds
        an account again of which it is told something else, and answers that are on their way into that are lost.
        """
        own = self._seeds.key("operator", KeyKind.OPERATOR)
        keys = {each: self._account(each) for each in Account if self.callout or each is not Account.AUTH}
        shared, revoked = uses(self._subjects), self._revoked()
        accounts: dict[str, str] = {}
        for each, key in keys.items():
            more: dict[str, object] = {
                "exports": exported(each, shared),
                "imports": imported(each, shared, keys),
                "signing_keys": self._signing_keys(each),
            }
            if each in revoked:
                more["revocations"] = revoked[each]
            if each is Account.AUTH:
                more |= asked(self._seeds, keys[Account.PEOPLE].public)
            accounts[key.public] = account(
                own,
                key,
                each.value,
                jetstream=each is Account.POOL,
                connections=self._connections.get(each, -1),
                **more,
            )
        system, pool = keys[Account.SYSTEM], keys[Account.POOL]
        return Statements(operator(own, system), system.public, accounts, pool.public)

    def member(self, kind: Kind, name: str, public: str, *, expires: int = 0) -> str:
        """What the pool says of somebody's key; `expires` in seconds since the epoch, 0 is never."""
        nats = {
            "type": "user",
            "version": 2,
            "issuer_account": self._account(kind.account).public,
            "tags": tags_of(kind),
        }
        return encode(self._signer(kind), public, nats, name=token(name), issued=_now(), expires=expires)

    def service(self, role: str, public: str) -> str:
        """What the pool says of the key of one of its services, or of who asks whether its server is up."""
        speaks_as = identity.daemon(role)
        may = (
            PROBING
            if role == PROBE
            else Permissions(*permissions(role, self._subjects, speaks_as, shards=self._shards_for(role)))
        )
        signer, pool = self._seeds.key("sign-service", KeyKind.ACCOUNT), self._account(Account.POOL).public
        return user(signer, public, role, may, now=_now(), account=pool)

    def callout_keys(self) -> CalloutKeys:
        """What an iam needs to say who people are, and nothing more."""
        people = {name: self._signer(kind).seed for name, kind in _BY_TOKEN.items()}
        own, system = self._account(Account.AUTH), self._account(Account.SYSTEM)
        public = self._account(Account.PEOPLE).public
        return callout_keys(self._seeds, own, system, public, people, now=_now())

    def observer(self, public: str) -> str:
        """
        What the system account says of the key of somebody who may ask the server what it holds, and nothing else.
        """
        key = self._account(Account.SYSTEM)
        may = Permissions(publish=("$SYS.REQ.SERVER.PING.*",), subscribe=(f"{OBSERVERS_INBOX}.>",))
        return user(key, public, "observer", may, now=_now())

    def teller(self) -> Credential:
        """With which a server that runs is told of its accounts, in the next minute."""
        return teller(self._account(Account.SYSTEM))

    @property
    def people_account(self) -> str:
        """The public key of the account that people are in."""
        return self._account(Account.PEOPLE).public

    def access_points(self) -> dict[str, AccessPoint]:
        """Those that have joined, by name.  Raises TrustError if the file is damaged."""
        path = self._directory / _ACCESS_POINTS
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, AccessPoint])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TrustError(
                f"{path}: this is no list of access points ({error}); put back a copy of it, or remove the file and have them "
                "join again"
            ) from error

    def keep_access_points(self, wanted: Mapping[str, AccessPoint]) -> None:
        """
        Let the people of these in, and of no others.

        Raises:
            TrustError: one names a key that signs for others already, whose rights would become those of its people.
        """
        keys = [each.people for each in wanted.values()]
        taken = {self._signer(kind).public for kind in Kind}
        if len(set(keys)) < len(keys) or not taken.isdisjoint(keys):
            raise TrustError(
                "the key with which an access point signs for its people is one that signs for others"
            )
        private_directory(self._directory)
        write_private(self._directory / _ACCESS_POINTS, msgspec.json.encode(wanted).decode())

    def revoke(self, kind: Kind, publics: Sequence[str]) -> None:
        """Whatever has been said until now of these keys of members is not to be believed any more."""
        revoked, now = self._revoked(), dict.fromkeys(publics, _now())
        self._keep(revoked | {each: now | revoked.get(each, {}) for each in _accounts_of(kind)})

    def restore(self, kind: Kind, publics: Sequence[str]) -> None:
        """It is to be believed again."""
        revoked = self._revoked()
        kept = {
            each: {key: at for key, at in revoked.get(each, {}).items() if key not in publics}
            for each in _accounts_of(kind)
        }
        self._keep(revoked | kept)

    def _keep(self, revoked: Mapping[Account, Mapping[str, int]]) -> None:
        wanted = {each: dict(keys) for each, keys in revoked.items() if keys}
        if wanted != self._revoked():
            private_directory(self._directory)
            write_private(self._directory / "revoked.json", msgspec.json.encode(wanted).decode())

    def _revoked(self) -> dict[Account, dict[str, int]]:
        """Raises TrustError if the file is damaged: then nobody knows who is not admitted any more."""
        path = self._directory / "revoked.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[Account, dict[str, int]])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TrustError(
                f"{path}: this is no list of withdrawn keys ({error}); put back a copy of it, or remove the file and withdraw "
                "them again"
            ) from error

    def _account(self, which: Account) -> KeyPair:
        return self._seeds.key(f"account-{which}", KeyKind.ACCOUNT)

    def _shards_for(self, role: str) -> Mapping[str, Sequence[str]]:
        """Of those that have joined every service may read, save those that have a queue themselves."""
        if role in {"schedd", "shadow"}:
            return self._shards
        joined = [f"schedd.{name}" for name in self.access_points()]
        return {
            **self._shards,
            "schedd": [*self._shards.get("schedd", ()), *joined],
            bus_permissions.JOINED_SHARDS: joined,
        }

    def _signer(self, kind: Kind) -> KeyPair:
        return self._seeds.key(f"sign-{kind.name.lower()}", KeyKind.ACCOUNT)

    def _signing_keys(self, which: Account) -> list[Any]:
        found: list[Any] = []
        if which is Account.POOL:
            found.append(self._seeds.key("sign-service", KeyKind.ACCOUNT).public)
            if not all(each.apart for each in self.access_points().values()):
                found += [
                    _scope(self._signer(kind).public, kind.name.lower(), self._form(kind, guest=False))
                    for kind in _OF_ACCESS_POINTS
                ]
        if which is Account.AUTH:
            found.append(self._seeds.key(ANSWERS, KeyKind.ACCOUNT).public)
        if which is Account.PEOPLE:
            found += [
                _scope(each.people, f"person at {name}", self._people_of(name))
                for name, each in self.access_points().items()
            ]
        return found + [
            _scope(self._signer(kind).public, kind.name.lower(), self._form(kind))
            for kind in Kind
            if kind.account is which and (self.callout or kind not in _BY_TOKEN.values())
        ]

    def _people_of(self, access_point: str) -> Permissions:
        publish, subscribe = people_of(access_point, self._subjects, identity.user(_NAME))
        return Permissions(_with_name(publish), _with_name(subscribe))

    def _form(self, kind: Kind, *, guest: bool = True) -> Permissions:
        """What each of a kind may do, with the place of his name."""
        speaks_as = kind.speaks_as(_NAME)
        publish, subscribe = permissions(kind.role, self._subjects, speaks_as, guest=guest)
        if kind in {
            Kind.ADMINISTRATOR,
            Kind.BEARING_ADMINISTRATOR,
        }:  # nobody's events are closed to those who run the pool
            more = permissions(MONITOR, self._subjects, speaks_as, guest=True)
            publish, subscribe = [*publish, *more[0]], [*subscribe, *more[1]]
        return Permissions(_with_name(publish), _with_name(subscribe))


def _with_name(subjects: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(subject.replace(_NAME, _ITS_NAME) for subject in subjects))


def tags_of(kind: Kind) -> list[str]:
    """What a statement says of a member besides the name, for programs of ours that show it."""
    return [GUEST, ACCESS_POINT] if kind in _OF_ACCESS_POINTS else [GUEST]


def _accounts_of(kind: Kind) -> tuple[Account, ...]:
    """In which statements about a kind are believed."""
    return (kind.account, Account.POOL) if kind in _OF_ACCESS_POINTS else (kind.account,)


def _scope(key: str, role: str, form: Permissions) -> dict[str, Any]:
    return {
        "kind": "user_scope",
        "key": key,
        "role": role,
        "template": UNLIMITED | {"subs": SUBSCRIPTIONS} | form.claims(),
    }


def _now() -> int:
    return int(time.time())
