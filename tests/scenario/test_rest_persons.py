"""Other people over HTTP, by tokens of an issuer that the pool trusts."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from tests.conformance.token_cells import ec_key, public, signed

from kettle.accounts.lookup import own_name
from kettle.auth.trust.files import write
from kettle.auth.trust.pool import Kind, PoolTrust
from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.subjects import Subjects

from .asking import patiently

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

SECRET: Final = 'executable = /bin/true\nhold = true\nenvironment = "SECRET=1"\nqueue\n'
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam")
PORT: Final = held_port()
ISSUER: Final = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names = tmp_path_factory.mktemp("names") / "map"
    names.write_text(
        "".join(
            f'SCITOKENS "{ISSUER},{subject}" {name}\n'
            for subject, name in {
                "ada": "ada",
                "cyd": "cyd",
                "bob": "bob@elsewhere",
                "rex": "root",
                "own": own_name(),
            }.items()
        )
    )
    return {
        "settings": {
            "master": {"daemon_list": [*SERVICES, "gateway"]},
            "gateway": {"rest": True, "issuers": {ISSUER: ["kettle"]}},
            "authorization": {"domain": "pool", "map_files": [str(names)]},
        }
    }


@pytest_asyncio.fixture
async def issuer() -> AsyncGenerator[None]:
    """What publishes the key of the tokens."""

    async def about(_request: web.Request) -> web.Response:
        return web.json_response({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"})

    async def keys(_request: web.Request) -> web.Response:
        return web.json_response({"keys": [public(ec_key("one"), alg="ES256")]})

    application = web.Application()
    application.router.add_get("/.well-known/openid-configuration", about)
    application.router.add_get("/jwks", keys)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", PORT).start()
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def as_person(
    pool: ThrowawayPool, name: str, **claims: object
) -> AsyncGenerator[aiohttp.ClientSession]:
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": name, "aud": "kettle", "iat": now, "nbf": now, "exp": now + 600, **claims}
    async with with_token(pool, signed({"alg": "ES256", "kid": "one"}, claims, ec_key("one"))) as session:
        yield session


@asynccontextmanager
async def with_token(pool: ThrowawayPool, token: str) -> AsyncGenerator[aiohttp.ClientSession]:
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as session:
        yield session


async def asked(session: aiohttp.ClientSession, method: str, path: str, **said: Any) -> tuple[int, Any]:
    async with session.request(method, path, **said) as response:
        return response.status, await response.json(content_type=None)


async def test_a_person_sees_and_does_what_that_person_may(
    pool: ThrowawayPool, issuer: None, tmp_path: Path
) -> None:
    """
    By her token somebody sees jobs of others without their secrets, and is refused by their queue in her own name.
    """
    if not selection.servers_are_ours():
        pytest.skip("who may connect to servers of somebody else is theirs to say")
    submitted = await pool.client.submit(SECRET, cwd=tmp_path)
    job = f"{submitted.cluster}.0"
    trust = PoolTrust(pool.home / "credentials" / "trust", Subjects(pool.client.pool.pool))
    key = write(pool.home / "credentials" / "account-ada.creds", partial(trust.member, Kind.PERSON, "ada"))
    shard, frame = submitted.position.shard, submitted.position.frame
    try:
        async with as_person(pool, "ada") as ada:
            least = {"at_least": f"{shard}:{frame}"}
            status, seen = await asked(ada, "GET", f"/v2/jobs/{job}", params=least)
            assert (200, "held") == (status, seen["state"])
            assert "Cmd" in seen["attributes"]
            assert "SECRET" not in str(seen)
            assert "SECRET" not in str((await asked(ada, "GET", f"/v2/jobs/{job}/history"))[1])
            for theirs in ("files", "stdout", "stderr", "archive", "files/_condor_stdout", "events"):
                status, refused = await asked(ada, "GET", f"/v2/jobs/{job}/{theirs}")
                assert status == 403, refused
            assert "SECRET" not in str(
                (await asked(ada, "GET", f"/v2/jobs/{job}", params={"as_of": seen["submitted"]}))[1]
            )
            removed = await asked(ada, "POST", "/v2/jobs:remove", json={"ids": [job]})
            assert 200 == removed[0], removed
            assert ["denied"] == [each["outcome"] for each in removed[1]["outcomes"]]
            edited = await asked(ada, "PATCH", f"/v2/jobs/{job}", json={"attributes": {"JobPrio": 1}})
            assert (403, "not_permitted") == (edited[0], edited[1]["code"])
            text = await asked(ada, "POST", "/v2/jobs", data=SECRET, headers={"Content-Type": "text/plain"})
            assert (415, "body.type") == (text[0], text[1]["code"])
    finally:
        key.unlink()
    assert [5] == [ad["JobStatus"] for ad in await pool.client.jobs(select(submitted.cluster))]


async def test_a_token_is_good_for_what_it_says_and_where_there_is_a_connection(
    pool: ThrowawayPool, issuer: None
) -> None:
    """
    A token for reading writes nothing; without a connection of the person's a write is refused with the reason.
    """
    body = {"ids": ["1.0"]}
    async with as_person(pool, "ada", scope="condor:/READ") as reader:
        assert 200 == (await asked(reader, "GET", "/v2/jobs"))[0]
        status, refused = await asked(reader, "POST", "/v2/jobs:hold", json=body)
        assert (403, True) == (status, "has not the level WRITE" in refused["detail"])
    async with as_person(pool, "cyd") as person:
        status, refused = await asked(person, "POST", "/v2/jobs:hold", json=body)
        assert (503, "connection.none", True) == (
            status, refused["code"], "has made no key" in refused["detail"],
        )  # fmt: skip
    wrong: list[tuple[dict[str, object], int, str]] = [
        ({"exp": int(time.time()) - 600}, 401, "token.expired"),
        ({"aud": "another"}, 401, "token.audience"),
        ({"sub": "eve"}, 403, "user.unmapped"),
        ({"sub": "bob"}, 403, "user.unmapped"),
        ({"sub": "rex"}, 403, "user.unmapped"),
        ({"sub": "own"}, 403, "user.unmapped"),
        ({"kettle_session": "schedd#1.0#1"}, 403, "not_permitted"),
    ]
    for claims, expected, code in wrong:
        async with as_person(pool, "ada", **claims) as person:
            status, refused = await asked(person, "GET", "/v2/jobs")
            assert (expected, code) == (status, refused["code"])


async def test_a_token_of_the_pools_iam_is_good_until_it_is_withdrawn(pool: ThrowawayPool) -> None:
    """
    It is believed without a word in the settings, with the levels that it has there, and refused as soon as the iam says so.
    """
    iam = pool.client.iam
    reading = await iam.issue_token(scopes=["condor:/READ"])
    async with with_token(pool, reading.token) as session:
        assert 200 == (await asked(session, "GET", "/v2/jobs"))[0]
        status, refused = await asked(session, "POST", "/v2/jobs:hold", json={"ids": ["1.0"]})
        assert (403, True) == (status, "has not the level WRITE" in refused["detail"])
        await iam.revoke_token(reading.id)
        async with asyncio.timeout(PATIENCE_S):
            while (found := await asked(session, "GET", "/v2/jobs"))[0] == 200:
                await asyncio.sleep(0.2)
        assert (401, "token.revoked") == (found[0], found[1]["code"])


async def test_an_administrator_bans_somebody_and_lets_him_in_again(
    pool: ThrowawayPool, issuer: None
) -> None:
    """
    Forms of the administrator's page change bans, which the record has with who did it; who is no administrator sees none of it,
    and neither does an administrator's token that is for reading only.
    """
    whom = "user:mallory"
    own = (pool.home / "gateway" / "token").read_text().strip()
    async with with_token(pool, own) as session:
        fields = {"whom": whom, "reason": "<b>mined</b>", "hours": "2"}
        async with session.post("/admin/ban", data=fields) as response:
            page = await response.text()
            assert (200, "/admin") == (response.status, response.url.path)
        assert (True, False) == ("&lt;b&gt;mined" in page, "<b>mined" in page)
        assert [(whom, own_name(), True)] == await bans_of(session, whom)
        async with session.post("/admin/unban", data={"whom": whom}) as response:
            assert 200 == response.status
        assert [] == await bans_of(session, whom)
        record = (await asked(session, "GET", "/v2/audit", params={"what": "ban"}))[1]
        about = [deed for deed in record["deeds"] if deed["whom"] == whom]
        assert [own_name()] * 2 == [deed["who"] for deed in about]
        wrong = await asked(session, "POST", "/v2/bans", json={"whom": "mallory"})
        assert (422, "/body/whom") == (wrong[0], wrong[1]["errors"][0]["pointer"])
    reading = await pool.client.iam.issue_token(scopes=["condor:/READ"])
    async with with_token(pool, reading.token) as reader, as_person(pool, "ada") as ada:
        for session in (reader, ada):
            assert 403 == (await asked(session, "GET", "/v2/audit"))[0]
            assert 403 == (await asked(session, "POST", "/v2/bans", json={"whom": whom}))[0]
            async with session.get("/jobs", headers={"Accept": "text/html"}) as response:
                assert "Audit and bans" not in await response.text()


async def bans_of(session: aiohttp.ClientSession, whom: str) -> list[tuple[str, str, bool]]:
    """Whom, by whom, and whether it has an end: each ban of somebody."""
    bans = (await asked(session, "GET", "/v2/bans"))[1]["bans"]
    return [(ban["whom"], ban["by"], "until" in ban) for ban in bans if ban["whom"] == whom]


async def test_rules_that_have_changed_are_in_force_without_a_restart(
    pool: ThrowawayPool, issuer: None, configuration: dict[str, Any]
) -> None:
    """Somebody whom a map file names from now on is somebody within seconds."""
    names = Path(configuration["settings"]["authorization"]["map_files"][0])
    async with as_person(pool, "dan") as person:
        assert 403 == (await asked(person, "GET", "/v2/jobs"))[0]
        names.write_text(f'{names.read_text()}SCITOKENS "{ISSUER},dan" dan\n')
        async with asyncio.timeout(PATIENCE_S):
            while (await asked(person, "GET", "/v2/jobs"))[0] != 200:
                await asyncio.sleep(0.2)
