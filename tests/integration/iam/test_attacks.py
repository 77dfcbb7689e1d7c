"""What attackers try at iam; each row of the table is a test."""

import asyncio
import base64
import hmac
from contextlib import AsyncExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.bus.ports import RefusedError
from kettle.client.errors import CommandRefusedError
from kettle.http.idle_connections import MOST_SILENT
from kettle.testing.services import Backend, eventually
from kettle_wire.commands import iam, token_requests
from kettle_wire.commands.iam import LIST_BANS, ListBans, QueryAudit
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import user

from .conftest import ACCESS_TOKEN, EXCHANGE, JOIN, Office, office_on


def encoded(part: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=").decode()


async def forged(office: Office, how: str) -> str:
    """An access token that nobody here has signed."""
    made = (await office.administrator.issue_token()).token
    head, body, signature = made.split(".")
    claims = msgspec.json.decode(base64.urlsafe_b64decode(body + "=="), type=dict[str, Any])
    key = (await office.get("/jwks.json"))[1]["keys"][0]
    match how:
        case "another claim":
            return f"{head}.{encoded(claims | {'sub': 'grace'})}.{signature}"
        case "no signature":
            return f"{encoded({'alg': 'none', 'typ': 'at+jwt'})}.{body}."
        case "the public key as a secret":
            signed = f"{encoded({'alg': 'HS256', 'typ': 'at+jwt', 'kid': key['kid']})}.{body}"
            mac = hmac.new(msgspec.json.encode(key), signed.encode(), sha256).digest()
            return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        case "an unknown key":
            return f"{encoded({'alg': 'ES256', 'typ': 'at+jwt', 'kid': 'x'})}.{body}.{signature}"
        case _:
            return "x" * 20_000


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("another claim", "token.signature"),
        ("no signature", "token.alg"),
        ("the public key as a secret", "token.alg"),
        ("an unknown key", "token.key_unknown"),
        ("20 kB", "token.size"),
    ],
)
async def test_a_forged_token_is_refused(office: Office, how: str, code: str) -> None:
    """
    By its code and one sentence that does not have it, and with the header that says why; it is recorded.
    """
    token = await forged(office, how)
    async with office.http.get(
        f"{office.url}/v1/whoami", headers={"Authorization": f"Bearer {token}"}
    ) as answer:
        text, challenge = await answer.text(), answer.headers["WWW-Authenticate"]
        assert (401, "application/problem+json") == (answer.status, answer.content_type)
    assert code == msgspec.json.decode(text)["code"]
    assert challenge.startswith('Bearer realm="kettle", error="invalid_token", error_description="')
    assert token[:100] not in text + challenge
    [alarm] = await office.audit("access.denied")
    assert (True, "127.0.0.1") == (alarm.alarm, alarm.address)


@pytest.mark.parametrize("name", ["access_token", "join_token", "client_secret", "token"])
@pytest.mark.parametrize("path", ["/v1/whoami", "/v1/token", "/v1/revoke"])
async def test_a_token_in_an_address_is_refused(office: Office, name: str, path: str) -> None:
    """Also a valid one: addresses are logged on the way. It is not repeated."""
    made = await office.administrator.issue_token()
    ask = office.http.get if path == "/v1/whoami" else office.http.post
    async with ask(f"{office.url}{path}?{name}={made.token}") as answer:
        text = await answer.text()
        assert 400 == answer.status
    assert "token.in_query" == msgspec.json.decode(text)["code"]
    assert made.token not in text


async def test_thousands_of_wrong_tokens_keep_nobody_out(backend: Backend, tmp_path: Path) -> None:
    """
    After some the wrong ones are answered with 429 and are not recorded one by one; a right one is accepted meanwhile, quickly.
    """
    own = {"requests_per_second": 1e6, "request_burst": 1e6}
    async with office_on(backend, tmp_path, **own) as office:
        right = (await office.administrator.issue_token()).token
        wrong = f"{right.rpartition('.')[0]}.{'A' * 86}"
        statuses: list[int] = []

        async def attack(http: aiohttp.ClientSession, times: int) -> None:
            for _ in range(times):
                headers = {"Authorization": f"Bearer {wrong}"}
                async with http.get(f"{office.url}/v1/whoami", headers=headers) as answer:
                    statuses.append(answer.status)
                    assert 401 == answer.status or int(answer.headers["Retry-After"]) >= 1

        async with aiohttp.ClientSession() as attacker, asyncio.TaskGroup() as attacks:
            for _ in range(4):
                attacks.create_task(attack(attacker, 500))
            while len(statuses) < 1_800:
                assert 200 == (await office.get("/v1/whoami", right))[0]
        assert 2_000 == len(statuses)
        assert 20 <= statuses.count(401) < 100
        recorded = (await office.administrator.audit(QueryAudit(what="access.denied", limit=10_000))).acts
        assert len(recorded) == statuses.count(401)


async def test_too_many_requests_are_refused(backend: Backend, tmp_path: Path) -> None:
    """Whatever they ask, an address has only so many at once."""
    own = {"requests_per_second": 0.001, "request_burst": 3.0}
    async with office_on(backend, tmp_path, **own) as office:
        assert [200, 200, 200, 429] == [(await office.get("/jwks.json"))[0] for _ in range(4)]


async def test_many_wrong_join_tokens_are_few_alarms(backend: Backend, tmp_path: Path) -> None:
    """
    Who guesses is answered with 429 after some attempts, and a machine with a right token joins meanwhile.
    """
    async with office_on(backend, tmp_path) as office:
        made = await office.administrator.create_join_token()
        parts = made.token.split(".")
        wrong = ".".join([*parts[:2], "x" * 43, parts[3]])
        key = KeyPair.new(Kind.USER).public
        codes = [(await office.join(wrong, "n9", key))[1]["code"] for _ in range(40)]
        assert {"join.secret", "request.too_many"} == set(codes)
        assert 200 == (await office.join(made.token, "n1", key))[0]


async def test_nobody_else_commands_it(backend: Backend, tmp_path: Path) -> None:
    """
    Who is no administrator can neither make join tokens nor ban nor read the audit, nor end others' sessions.
    """
    async with office_on(backend, tmp_path) as office:
        opened = await office.administrator.open_session()
        async with backend.bus(user("eve")) as bus:
            eve = office.asked_by(bus)
            for attempt in (
                eve.create_join_token(),
                eve.ban("user:root"),
                eve.audit(QueryAudit()),
                eve.revoke_token(opened.made.session),
                eve.sessions(everybody=True),
                eve.issue_token(scopes=["condor:/ADMINISTRATOR"]),
            ):
                with pytest.raises((CommandRefusedError, RefusedError)):
                    await attempt
            assert ["READ", "WRITE"] == [right.level for right in (await eve.whoami()).levels]
            with pytest.raises(RefusedError):
                await bus.call(LIST_BANS, "iam", ListBans())
        assert 1 == len(await office.administrator.sessions())


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"alg":"ES256","x":[['])
async def test_what_is_nested_without_end_is_no_token(office: Office, opening: bytes) -> None:
    """Wherever it is put: a sentence, and no error of the server."""
    deep = base64.urlsafe_b64encode(opening * (9_000 // len(opening))).decode().rstrip("=")
    token = f"{deep}.e30.AAAA"
    form = {"grant_type": EXCHANGE, "subject_token_type": ACCESS_TOKEN, "subject_token": token}
    for status, answer in (
        await office.post("/v1/token", form),
        await office.post("/v1/token", {"grant_type": JOIN, "sealed": token}),
        await office.get("/v1/whoami", token),
    ):
        assert status in {400, 401}
        assert answer["detail"]


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):  # the server may have ended it
        await writer.wait_closed()


async def test_who_sends_slowly_keeps_nobody_out(office: Office) -> None:
    """
    Of connections over which no request comes one network has a hundred; one that sends half a request ends in time.
    """
    host, _, port = office.url.removeprefix("http://").partition(":")
    half = b"GET /jwks.json HTTP/1.1\r\nHost: x\r\nX-Slow: "
    async with AsyncExitStack() as stack:
        held: list[asyncio.StreamReader] = []
        for _ in range(MOST_SILENT + 50):
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.push_async_callback(closed, writer)
            writer.write(half)
            held.append(reader)

        async def ended() -> bool:
            return sum(reader.at_eof() for reader in held) >= 50

        await eventually(ended)
        assert 200 == (await office.get("/jwks.json"))[0]
        assert MOST_SILENT == sum(not reader.at_eof() for reader in held)


@pytest.mark.parametrize(
    ("endpoint", "request_"),
    [
        (iam.ISSUE_TOKEN, iam.IssueToken(scopes=["condor:/ADMINISTRATOR"])),
        (iam.OPEN_SESSION, iam.BeginSession(id="1", hash="0" * 64, scopes=["condor:/ADMINISTRATOR"])),
        (iam.REVOKE_TOKEN, iam.RevokeToken(id="2", token="somebodys")),
        (token_requests.FETCH_TOKEN, token_requests.FetchToken(levels=["ADMINISTRATOR"])),
        (token_requests.FETCH_TOKEN, token_requests.FetchToken(levels=["DAEMON"])),
    ],
    ids=lambda value: getattr(value, "verb", ""),
)
async def test_a_limited_credential_is_not_exchanged_for_one_without_limits(
    office: Office, endpoint: Endpoint[Any, Any], request_: msgspec.Struct
) -> None:
    """
    What the bus lets through with the level WRITE gives no more than WRITE, also to an administrator: it may be a token limited to
    WRITE that asks.
    """
    with pytest.raises(RefusedError) as refused:
        await office.bus.call(endpoint, "iam", request_)
    assert refused.value.code in {"denied", "not_found", "unacceptable"}
    assert [] == await office.audit("token.issued") + await office.audit("session")
