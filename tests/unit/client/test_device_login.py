"""Signing in by a code, at an issuer that behaves as RFC 8628 lets it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web

from kettle.client.device_login import Issuer, LoginError, Polling, TokenFiles, Tokens

Answer = tuple[int, dict[str, Any]]
GOOD: Answer = (200, {"access_token": "first", "refresh_token": "r1", "expires_in": 600, "scope": "openid"})


class FakeIssuer:
    """Answers what a test has prepared."""

    def __init__(self) -> None:
        self.url = ""
        self.metadata: dict[str, Any] = {}
        self.answers: list[Answer] = []
        self.asked: list[dict[str, str]] = []

    async def describe(self, _request: web.Request) -> web.Response:
        return web.json_response(self.metadata)

    async def code(self, request: web.Request) -> web.Response:
        self.asked.append({name: str(value) for name, value in (await request.post()).items()})
        return web.json_response(
            {
                "device_code": "secret-code",
                "user_code": "ABCD",
                "verification_uri": f"{self.url}/device",
                "expires_in": 600,
                "interval": 5,
            }
        )

    async def token(self, request: web.Request) -> web.Response:
        self.asked.append({name: str(value) for name, value in (await request.post()).items()})
        status, body = self.answers.pop(0)
        return web.json_response(body, status=status)


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[FakeIssuer]:
    fake = FakeIssuer()
    application = web.Application()
    application.router.add_get("/.well-known/openid-configuration", fake.describe)
    application.router.add_post("/code", fake.code)
    application.router.add_post("/token", fake.token)
    application.router.add_post("/revoke", fake.token)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    fake.metadata = {
        "issuer": fake.url,
        "device_authorization_endpoint": f"{fake.url}/code",
        "token_endpoint": f"{fake.url}/token",
        "revocation_endpoint": f"{fake.url}/revoke",
        "grant_types_supported": ["authorization_code"],
    }
    yield fake
    await runner.cleanup()


def refused(error: str) -> Answer:
    return 400, {"error": error}


async def signed_in(fake: FakeIssuer, sleep: Callable[[float], None]) -> Tokens:
    def work() -> Tokens:
        found = Issuer(fake.url)
        return found.wait(found.device_code("kettle", "openid"), "kettle", sleep=sleep)

    return await asyncio.to_thread(work)


async def test_it_asks_more_slowly_for_good(issuer: FakeIssuer) -> None:
    """
    `slow_down` adds five seconds to all pauses that follow, a failure of the issuer doubles them until it answers.
    """
    pauses: list[float] = []
    pending = refused("authorization_pending")
    issuer.answers = [pending, refused("slow_down"), pending, (503, {}), pending, GOOD]
    tokens = await signed_in(issuer, pauses.append)
    assert [5.0, 5.0, 10.0, 10.0, 20.0, 10.0] == pauses
    assert ("first", "r1") == (tokens.access_token, tokens.refresh_token)
    assert {"secret-code"} == {asked["device_code"] for asked in issuer.asked[1:]}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("access_denied", "refused in the browser"),
        ("expired_token", "not confirmed in time"),
        ("invalid_client", "invalid_client"),
    ],
)
async def test_it_ends_with_one_sentence(issuer: FakeIssuer, error: str, sentence: str) -> None:
    """Whatever the issuer says that is no reason to wait."""
    issuer.answers = [refused(error)]
    with pytest.raises(LoginError, match=sentence) as caught:
        await signed_in(issuer, lambda _pause: None)
    assert "secret-code" not in str(caught.value)


async def test_an_issuer_without_codes_says_what_it_has(issuer: FakeIssuer) -> None:
    """And one that calls itself otherwise is not believed."""
    del issuer.metadata["device_authorization_endpoint"]
    with pytest.raises(LoginError, match="its grants are: authorization_code"):
        await signed_in(issuer, lambda _pause: None)
    issuer.metadata["issuer"] = "https://another.example"
    with pytest.raises(LoginError, match="says that it is another issuer"):
        await signed_in(issuer, lambda _pause: None)


async def test_tokens_are_renewed_by_one_at_a_time(issuer: FakeIssuer, tmp_path: Path) -> None:
    """
    With a third of the life left there is a new one, stored with the next refresh token; two who ask at once refresh once.
    """
    files, now = TokenFiles(tmp_path), time.time()
    files.save(
        Tokens(
            issuer=issuer.url,
            client="kettle",
            access_token="old",
            refresh_token="r1",
            obtained=now - 70,
            expires=now + 30,
        )
    )
    assert 0o600 == files.path(issuer.url).stat().st_mode & 0o777
    issuer.answers = [(200, {"access_token": "new", "refresh_token": "r2", "expires_in": 600})]
    both = await asyncio.gather(*(asyncio.to_thread(files.fresh, issuer.url) for _ in range(2)))
    assert ["new", "new"] == [tokens.access_token for tokens in both]
    assert ["r1"] == [asked["refresh_token"] for asked in issuer.asked]
    kept = msgspec.json.decode(files.path(issuer.url).read_bytes(), type=Tokens)
    assert ("new", "r2") == (kept.access_token, kept.refresh_token)
    assert [kept] == files.all()


async def test_a_refused_renewal_keeps_what_there_is(issuer: FakeIssuer, tmp_path: Path) -> None:
    """It says what to do, and the next attempt has the same refresh token."""
    files, now = TokenFiles(tmp_path), time.time()
    old = Tokens(
        issuer=issuer.url,
        client="kettle",
        access_token="old",
        refresh_token="r1",
        obtained=now - 70,
        expires=now + 30,
    )
    files.save(old)
    issuer.answers = [refused("invalid_grant")]
    with pytest.raises(LoginError, match="kettle login --issuer"):
        await asyncio.to_thread(files.fresh, issuer.url)
    assert old == files.load(issuer.url)


def test_pauses_do_not_grow_without_end() -> None:
    """An issuer that is away is asked once a minute."""
    polling = Polling(5.0)
    for _ in range(20):
        polling.unreachable()
    assert 60.0 == polling.pause


def test_no_secret_is_sent_without_https() -> None:
    """Except on this machine."""
    with pytest.raises(LoginError, match="it has to begin with https://"):
        Issuer("http://iam.example")
