"""
People who show a token: how the server asks who somebody is, and what is answered (NATS's authorization callout).

Who has a token connects as the *sentinel*, a user of the account AUTH that may do nothing and that everybody may have.
The server asks the responder, who is in that account too and is let in without being asked about, and believes the answer:
what a scoped key of the account of people says of the key that the server has made for this one connection.  So who takes
the responder over makes people, of the kinds whose keys it has, and nothing else.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, TrustError
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.server import Permissions, Seeds, user
from kettle.bus.credentials import GUEST, Credential
from kettle_wire.identity import daemon
from kettle_wire.subjects import token

QUESTIONS: Final = "$SYS.REQ.USER.AUTH"
"""Where the server asks."""
RESPONDER: Final = daemon("callout")
WATCHER: Final = daemon("connections")
"""Who sees the connections of people, and ends them."""
ANSWERS: Final = "sign-answer"
"""The name of the key that signs answers to the server."""
_RESPONDER_KEY: Final = "user-callout"
_ANSWERS_OF_SERVER: Final = "$SYS._INBOX.>"
"""Where the server waits for an answer."""


ANSWERING: Final = Permissions((_ANSWERS_OF_SERVER,), (QUESTIONS, f"{RESPONDER.inbox}.>"))
"""What who answers may do."""


class CalloutKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an iam needs to answer; a secret, in a file of its own."""

    responder: str
    """The credential with which it answers, as the text of a file of NATS credentials."""
    watcher: str
    """The credential with which it sees the connections of people, and ends them."""
    sentinel: str
    """The credential of those who show a token; no secret."""
    account: str
    """The public key of the account AUTH."""
    answers: str
    """The seed of the key that signs answers."""
    people_account: str
    """The public key of the account of people."""
    people: dict[str, str]
    """The seeds of that account's scoped keys, by what they make: `reader`, `submitter`, `person`, `administrator`."""

    @classmethod
    def decode(cls, text: bytes) -> "CalloutKeys":
        """Raises TrustError."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise TrustError(f"these are no keys that sign for people: {error}") from error

    def text(self) -> str:
        """The content of the file."""
        return msgspec.json.format(msgspec.json.encode(self)).decode() + "\n"

    def __repr__(self) -> str:
        return "CalloutKeys()"


def asked(seeds: Seeds, people: str) -> dict[str, Any]:
    """
    What the operator says of the account AUTH besides what is said of each; `people`: the account of those.
    """
    responder = seeds.key(_RESPONDER_KEY, KeyKind.USER).public
    return {"authorization": {"auth_users": [responder], "allowed_accounts": [people]}}


def callout_keys(
    seeds: Seeds, own: KeyPair, system: KeyPair, people_account: str, people: dict[str, str], *, now: int
) -> CalloutKeys:
    """The keys of a pool; `own` is that of the account AUTH, `system` that of the server's own account."""
    watching = watches(people_account)
    return CalloutKeys(
        responder=_credential(seeds, _RESPONDER_KEY, own, ANSWERING, now),
        watcher=_credential(seeds, "user-connections", system, watching, now),
        sentinel=_credential(seeds, "user-sentinel", own, Permissions(), now),
        account=own.public,
        answers=seeds.key(ANSWERS, KeyKind.ACCOUNT).seed,
        people_account=people_account,
        people=people,
    )


def _credential(seeds: Seeds, name: str, signer: KeyPair, may: Permissions, now: int) -> str:
    key = seeds.key(name, KeyKind.USER)
    return Credential(key.seed, user(signer, key.public, name.partition("-")[2], may, now=now)).text()


def watches(account: str) -> Permissions:
    """What who sees the connections of an account may do, and ends them."""
    return Permissions((connections_of(account), end_at("*")), (f"{WATCHER.inbox}.>", goodbyes(account)))


def connections_of(account: str) -> str:
    """Where servers say which connections of an account they have."""
    return f"$SYS.REQ.ACCOUNT.{account}.CONNZ"


def goodbyes(account: str) -> str:
    """Where servers say that a connection of an account has ended."""
    return f"$SYS.ACCOUNT.{account}.DISCONNECT"


def end_at(server: str) -> str:
    """Where a server is told to end a connection."""
    return f"$SYS.REQ.SERVER.{server}.KICK"


class _Server(msgspec.Struct, frozen=True):
    id: str


class _Client(msgspec.Struct, frozen=True):
    id: int
    host: str = ""


class _Shown(msgspec.Struct, frozen=True):
    auth_token: str = ""
    jwt: str = ""


class _Asked(msgspec.Struct, frozen=True):
    server_id: _Server
    user_nkey: str
    client_info: _Client
    connect_opts: _Shown


class _Claims(msgspec.Struct, frozen=True):
    nats: _Asked


_decode: Final = msgspec.json.Decoder(_Claims).decode


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Who is this?"""

    server: str
    """The server's id."""
    connection: int
    """The connection's number at that server."""
    key: str
    """The public key that the server has made for the connection."""
    address: str
    """From where it comes."""
    token: str
    """What is shown; a secret."""

    @classmethod
    def decode(cls, data: bytes) -> "Question":
        """
        What a server asks; raises ValueError.  Nobody else can ask: only servers may publish where it comes from, so its
        signature is not looked at.
        """
        body = data.split(b".", 2)[1]
        try:
            found = _decode(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))).nats
        except msgspec.MsgspecError as error:
            raise ValueError(f"no question of a server: {error}") from error
        return cls(
            server=found.server_id.id,
            connection=found.client_info.id,
            key=found.user_nkey,
            address=found.client_info.host,
            token=found.connect_opts.auth_token,
        )


class PeopleSigner:
    """
    Answers what a server asks; who is not let in gets an answer without content, which needs no signature.
    """

    def __init__(self, keys: CalloutKeys) -> None:
        """Raises SeedError."""
        self._account = keys.account
        self._people_account = keys.people_account
        self._answers = KeyPair(keys.answers)
        self._people: Mapping[str, KeyPair] = {kind: KeyPair(seed) for kind, seed in keys.people.items()}

    def person(self, question: Question, kind: str, name: str, *, now: int, expires: int) -> bytes:
        """He is a person of this kind and name; times in seconds since the epoch."""
        said = {"type": "user", "version": 2, "issuer_account": self._people_account, "tags": [GUEST]}
        signer = self._people[kind]
        jwt = encode(signer, question.key, said, name=token(name), issued=now, expires=expires)
        nats = {
            "type": "authorization_response",
            "version": 2,
            "issuer_account": self._account,
            "jwt": jwt,
        }
        signed = encode(self._answers, question.key, nats, name="", issued=now, audience=question.server)
        return signed.encode("ascii")
