"""
What somebody tries who wants to come onto the bus, or get further there, than the token says that is shown.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error
from tests.integration.iam.gate import Gate, gate_on
from tests.integration.iam.issuer import TokenIssuer, signing_key

from kettle.auth.trust.callout import QUESTIONS
from kettle.auth.trust.keys import KeyPair
from kettle.bus.credentials import Credential
from kettle.bus.ports import NotAcceptedError, RefusedError
from kettle.client.connections.pool_file import login_name
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_wire.commands import iam, token_requests
from kettle_wire.commands.iam import SET_BAN, WHO_AM_I, SetBan, WhoAmI
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import bearer, user

CROWD = 300
RULES = """\
[[rules]]
when.issuer = '{issuer}'
when.subject = '/^([a-z]+)$/'
owner = '\\1'

[[rules]]
when.issuer = '{issuer}'
when.subject = 'elsewhere@x'
owner = 'ada@other.example'
"""


@pytest_asyncio.fixture
async def gate(backend: Backend, tmp_path: Path) -> AsyncIterator[Gate]:
    async with gate_on(backend, tmp_path, RULES) as made:
        yield made


def unsigned(gate: Gate) -> str:
    body = gate.token().split(".")[1]
    return f"{base64.urlsafe_b64encode(json.dumps({'alg': 'none'}).encode()).decode().rstrip('=')}.{body}."


def altered(gate: Gate) -> str:
    """The signature of another token."""
    head, _, signature = gate.token("ada").split(".")
    return f"{head}.{gate.token('root').split('.')[1]}.{signature}"


def of_another_key(gate: Gate) -> str:
    return TokenIssuer(gate.issuer.url, signing_key()).token("ada", "https://pool.example")


WRONG: dict[str, tuple[Callable[[Gate], str], str]] = {
    "unsigned": (unsigned, "token.alg"),
    "altered": (altered, "token.signature"),
    "signed by a stranger": (of_another_key, "token.signature"),
    "expired": (lambda gate: gate.token(exp=int(time.time()) - 3600), "token.expired"),
    "for another audience": (lambda gate: gate.token(aud="https://other.example"), "token.audience"),
    "of an unknown issuer": (lambda gate: gate.token(iss="https://rogue.example"), "token.issuer_unknown"),
    "of nobody": (lambda gate: gate.token("Ada Lovelace"), "user.unmapped"),
    "of who runs the pool": (lambda gate: gate.token(login_name()), "user.unmapped"),
    "of another domain": (lambda gate: gate.token("elsewhere@x"), "user.unmapped"),
    "nothing": (lambda _gate: "", "token.absent"),
    "no token": (lambda _gate: "x" * 8000, "token.malformed"),
}


@pytest.mark.parametrize("how", WRONG)
async def test_a_wrong_token_lets_nobody_in(gate: Gate, how: str) -> None:
    """The bus says no, and who asks iam hears the code, and never the token."""
    make, code = WRONG[how]
    token = make(gate)
    with pytest.raises(NotAcceptedError):
        async with gate.bus(token):
            pass
    status, problem = await gate.get("/v1/whoami", token)
    assert (code, True) == (problem["code"], status in {401, 403})
    assert not token or token not in json.dumps(problem)


async def test_a_crowd_with_wrong_tokens_leaves_places_for_others(gate: Gate) -> None:
    """
    However many are asked about at the same time: none is let in, and none refused because there is no place to ask.
    """
    token = gate.token(aud="https://other.example")
    strangers = [Stranger(gate) for _ in range(CROWD)]
    for stranger in strangers:
        await stranger.connect()
    for stranger in strangers:
        stranger.show(token)
    said = [await stranger.hear() for stranger in strangers]
    assert [] == [line for line in said if "maximum" in line]
    assert [] == [line for line in said if "PONG" in line]
    async with gate.bus(gate.token()) as bus:
        assert bus.connected


class Stranger:
    """A connection by hand, as far as the answer to its greeting."""

    def __init__(self, gate: Gate) -> None:
        self._credential = Credential.read(gate.sentinel)
        place = urlsplit(gate.server.url)
        self._place = place.hostname or "", place.port or 0

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._place)
        self._nonce = json.loads((await self._reader.readline()).partition(b" ")[2])["nonce"].encode()

    def show(self, token: str) -> None:
        signed = base64.b64encode(KeyPair(self._credential.seed).sign(self._nonce)).decode()
        hello = {"jwt": self._credential.jwt, "sig": signed, "auth_token": token}
        self._writer.write(b"CONNECT " + json.dumps(hello).encode() + b"\r\nPING\r\n")

    async def hear(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            line = await self._reader.readline()
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        return line.decode().strip()


async def test_a_token_speaks_for_nobody_else(gate: Gate) -> None:
    """Neither as somebody else, nor in his place: what is for him is not heard."""
    heard: list[str] = []

    async def note(error: Exception) -> None:
        heard.append(str(error))

    client = Client()
    try:
        await client.connect(
            gate.server.url,
            user_credentials=gate.sentinel,
            token=gate.token("ada"),
            error_cb=note,
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
        )
        bob = bearer("bob")
        account = user("ada")  # of the same name, which has shown no token and may do more
        tried = (f"{bob.inbox}.>", f"{account.inbox}.>", ">", "$SYS.>", QUESTIONS, "_INBOX.>")
        for subject in tried:
            await client.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]
        for other in (bob, account):
            await client.publish(gate.subjects.command("iam", "iam", "who_am_i", other.token), b"")
        await client.flush()
        await client.flush()
    finally:
        await client.close()
    assert len(tried) + 2 == len(heard)
    assert all("permissions violation" in said.lower() for said in heard)


async def test_a_member_who_asks_as_a_server_is_not_heard(gate: Gate) -> None:
    """Nobody but servers asks who somebody is, and nobody but iam answers."""
    heard: list[str] = []

    async def note(error: Exception) -> None:
        heard.append(str(error))

    for name in ("bob", "boss", "schedd", "iam"):
        client = Client()
        try:
            await client.connect(
                gate.server.url,
                user_credentials=str(gate.server.credentials(name)),
                error_cb=note,
                connect_timeout=int(PATIENCE_S),
                allow_reconnect=False,
            )
            await client.publish(QUESTIONS, b"question", reply="anything")
            await client.subscribe(QUESTIONS)  # pyright: ignore[reportUnknownMemberType]
            await client.flush()
            await client.flush()
        finally:
            await client.close()
    assert 8 == len(heard), heard


async def test_what_a_token_says_of_levels_is_a_limit_and_no_gift(gate: Gate) -> None:
    """Who has the scope of administrators is none, as long as no list of the site says so."""
    async with gate.bus(gate.token("ada", scope="condor:/ADMINISTRATOR")) as bus:
        assert "ada" == (await bus.call(WHO_AM_I, "iam", WhoAmI())).subject
        with pytest.raises(RefusedError, match="may not publish"):
            await bus.call(SET_BAN, "iam", SetBan(id="1", whom="user:bob"))


async def test_a_question_that_nobody_understands_harms_nobody(gate: Gate) -> None:
    """Whatever is shown, the next one is answered."""
    for shown in ("é" * 100, "a.b.c", "." * 2000, "\\u0000"):
        with pytest.raises((NotAcceptedError, Error)):
            async with gate.bus(shown):
                pass
    async with gate.bus(gate.token("ada")) as bus:
        assert bus.connected


LASTING = (
    iam.OPEN_SESSION,
    iam.OPEN_ANY_SESSION,
    iam.ISSUE_TOKEN,
    iam.ISSUE_ANY_TOKEN,
    iam.REGISTER_CLIENT,
    token_requests.FETCH_TOKEN,
    token_requests.FETCH_ANY_TOKEN,
    token_requests.APPROVE_OWN_TOKEN_REQUEST,
    token_requests.APPROVE_TOKEN_REQUEST,
    token_requests.AUTO_APPROVE,
)


@pytest.mark.parametrize(
    ("level", "may"),
    [("READ", iam.WHO_AM_I), ("WRITE", iam.REVOKE_TOKEN), ("ADMINISTRATOR", iam.SET_BAN)],
)
async def test_a_token_makes_nothing_that_outlives_it(
    backend: Backend, tmp_path: Path, level: str, may: Endpoint[Any, Any]
) -> None:
    """The server itself refuses the subjects, also of an administrator who may ban."""
    heard: list[str] = []

    async def note(error: Exception) -> None:
        heard.append(str(error))

    rules = RULES.replace("owner = '\\1'", "owner = '\\1'\nlevels = ['ADMINISTRATOR']")
    client = Client()
    async with gate_on(backend, tmp_path, rules) as gate:
        try:
            await client.connect(
                gate.server.url,
                user_credentials=gate.sentinel,
                token=gate.token("ada", scope=f"condor:/{level}"),
                error_cb=note,
                connect_timeout=int(PATIENCE_S),
                allow_reconnect=False,
            )
            for endpoint in (may, *LASTING):
                subject = gate.subjects.command("iam", "iam", endpoint.verb, bearer("ada").token)
                await client.publish(subject, b"")
            await client.flush()
            await client.flush()
        finally:
            await client.close()
    assert len(LASTING) == len(heard), heard
    assert not [each for each in heard if f".{may.verb}." in each]


async def test_who_cannot_be_answered_harms_nobody(gate: Gate, tmp_path: Path) -> None:
    """What fails for one, here as iam lacks the key of a kind, ends nobody else's way in."""
    file = tmp_path / "people-keys.json"
    keys = json.loads(file.read_text())
    del keys["people"]["reader"]
    await gate.stop()
    file.write_text(json.dumps(keys))
    await gate.start()
    with pytest.raises(NotAcceptedError):
        async with gate.bus(gate.token("ada", scope="condor:/READ")):
            pass
    async with gate.bus(gate.token("ada")) as bus:
        assert "ada" == (await bus.call(WHO_AM_I, "iam", WhoAmI())).subject
