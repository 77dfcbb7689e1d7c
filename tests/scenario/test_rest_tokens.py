"""
People for whom the pool has no key on the gateway's machine, over HTTP: what they ask for is done on the bus in their names, by the
token that they show.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer
from yarl import URL

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool

from .asking import patiently

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

PORT: Final = held_port()
ISSUER: Final = f"http://127.0.0.1:{PORT}"
KEY: Final = signing_key()
CLIENT: Final = "kettle-web"
POOL: Final = "https://pool.example.org"
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "gateway")
RULES: Final = f"""
[[rules]]
when.issuer = "{ISSUER}"
when.subject = '/^([a-z0-9_-]+)$/'
owner = '\\1'
"""
JOB: Final[dict[str, Any]] = {
    "ad": {"Cmd": "/bin/true", "JobUniverse": 5, "Iwd": "/tmp", "TransferExecutable": False, "JobStatus": 5},
    "columns": [],
    "rows": [[]],
}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    rules = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text(RULES)
    return {
        "settings": {
            "master": {"daemon_list": list(SERVICES)},
            "iam": {"issuers": {ISSUER: [POOL, CLIENT]}},
            "gateway": {
                "rest": True,
                "issuers": {ISSUER: [POOL]},
                "login": [{"issuer": ISSUER, "client": CLIENT}],
            },
            "authorization": {"domain": "pool", "rules": str(rules)},
        }
    }


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with token_issuer(ISSUER, socket.create_server(("127.0.0.1", PORT)), key=KEY) as made:
        yield made


@asynccontextmanager
async def browser(pool: ThrowawayPool, token: str = "") -> AsyncGenerator[aiohttp.ClientSession]:
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    jar = aiohttp.CookieJar(unsafe=True)
    session = aiohttp.ClientSession(address, headers=headers, cookie_jar=jar, middlewares=(patiently,))
    async with session:
        yield session


async def sent(session: aiohttp.ClientSession, method: str, path: str, **said: Any) -> tuple[int, Any]:
    async with session.request(method, path, **said) as response:
        return response.status, await response.json(content_type=None)


async def test_what_somebody_asks_for_is_done_in_the_own_name(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """
    By her token somebody submits and removes a job, which is hers; a ban at iam ends that within seconds, and her questions too.
    """
    async with browser(pool, issuer.token(another, POOL)) as grace:
        status, made = await sent(grace, "POST", "/v2/jobs", json=JOB)
        assert 200 == status, made
        job = f"{made['cluster']}.0"
        (ad,) = (await pool.client.queue(projection=["Owner", "ClusterId"])).jobs
        assert (another, made["cluster"]) == (ad["Owner"], ad["ClusterId"])
        async with browser(pool, issuer.token("alan", POOL)) as alan:
            status, answer = await sent(alan, "POST", "/v2/jobs:remove", json={"ids": [job]})
            assert (200, ["denied"]) == (status, [each["outcome"] for each in answer["outcomes"]])
        status, answer = await sent(grace, "POST", "/v2/jobs:remove", json={"ids": [job]})
        assert (200, ["done"]) == (status, [each["outcome"] for each in answer["outcomes"]])
        await pool.client.iam.ban(f"user:{another}", reason="mines coins")
        try:
            for method, path, body in (
                ("GET", "/v2/clusters", None),
                ("POST", "/v2/jobs", JOB),
            ):
                async with asyncio.timeout(PATIENCE_S):
                    while (found := await sent(grace, method, path, json=body))[0] == 200:
                        await asyncio.sleep(0.1)
                assert (403, True) == (found[0], "is banned by " in found[1]["detail"]), found
        finally:
            await pool.client.iam.unban(f"user:{another}")


async def test_who_has_signed_in_at_the_issuer_acts_in_the_own_name(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """A page's request goes over the bus with the token of the session, which is in no log and in no file."""
    issuer.person = another
    async with browser(pool) as edsger:
        start = URL("/login/start").with_query(issuer=ISSUER, next="/v2/browser-sessions")
        async with edsger.get(start) as response:
            assert 200 == response.status, await response.text()
            page = await response.text()
        assert "url=../v2/browser-sessions" in page
        status, answer = await sent(edsger, "GET", "/v2/browser-sessions")
        assert (200, "issuer") == (status, answer["sessions"][0]["way"])
        async with edsger.get("/jobs", headers={"Accept": "text/html"}) as response:
            csrf = (await response.text()).partition('name="csrf" content="')[2].partition('"')[0]
        headers = {"X-CSRF-Token": csrf, "Sec-Fetch-Site": "same-origin"}
        status, made = await sent(edsger, "POST", "/v2/jobs", json=JOB, headers=headers)
        assert 200 == status, made
        (ad,) = (await pool.client.queue(projection=["Owner"])).jobs
        assert another == ad["Owner"]
        job = {"ids": [f"{made['cluster']}.0"]}
        status, answer = await sent(edsger, "POST", "/v2/jobs:remove", json=job, headers=headers)
        assert (200, ["done"]) == (status, [each["outcome"] for each in answer["outcomes"]])
        cookies = [cookie.value for cookie in edsger.cookie_jar]
    secrets = [*cookies, csrf, f"refresh-of-{another}"]
    assert [] == [each for each in secrets if each and each in pool.log("gateway")]


async def test_credentials_are_stored_for_the_own_jobs_alone(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """
    Who has no account stores one over HTTP, and sees that it is there; nobody is shown what it is, and nobody else sees it.
    """
    place = "/v2/credentials/box"
    async with (
        browser(pool, issuer.token(another, POOL)) as grace,
        browser(pool, issuer.token("alan", POOL)) as alan,
    ):
        for text in ("two words", "{}", ""):
            found, refused = await sent(grace, "PUT", place, json={"text": text})
            assert 422 == found, refused
        said = {"service": "box", "handle": "hub"}
        assert (200, said) == await sent(grace, "PUT", place + "?handle=hub", json={"text": "canary"})
        (shown,) = (await sent(grace, "GET", "/v2/credentials"))[1]["credentials"]
        assert ("box", "hub", "token") == (shown["service"], shown["handle"], shown["kind"])
        assert "canary" not in str(shown)
        assert [] == (await sent(alan, "GET", "/v2/credentials"))[1]["credentials"]
        assert 404 == (await sent(alan, "DELETE", place + "?handle=hub"))[0]
        assert (200, said) == await sent(grace, "DELETE", place + "?handle=hub")
        assert 404 == (await sent(grace, "DELETE", place + "?handle=hub"))[0]
