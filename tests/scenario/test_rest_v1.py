"""PROMINENCE's REST interface on a running pool, asked by people with tokens."""

import asyncio
import hashlib
import io
import signal
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.iam_http import JOIN_GRANT

from .asking import patiently
from .test_containers import WORKING

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
POOL: Final = "https://pool.example.org"
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "gateway")
RULES: Final = f"""
[[rules]]
when.issuer = "{ISSUER}"
when.subject = '/^([a-z0-9_-]+)$/'
owner = '\\1'
"""
WITHIN_S: Final = PATIENCE_S
AS_A_PAGE: Final = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    rules = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text(RULES)
    return {
        "settings": {
            "master": {"daemon_list": list(SERVICES)},
            "startd": {"container_runtimes": WORKING},
            "iam": {"issuers": {ISSUER: [POOL]}},
            "gateway": {
                "rest": True,
                "prominence": True,
                "issuers": {ISSUER: [POOL]},
                "request_burst": 1e6,
                "requests_per_second": 1e6,
            },
            "authorization": {"domain": "pool", "rules": str(rules)},
        }
    }


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with token_issuer(ISSUER, socket.create_server(("127.0.0.1", PORT)), key=KEY) as made:
        yield made


class V1:
    """Asks as PROMINENCE's client does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, method: str, path: str, status: int = 200, **said: Any) -> Any:
        """The answer, which has this status: the value of its JSON, or its text."""
        async with self.session.request(method, f"/prominence/v1{path}", **said) as response:
            assert response.status == status, (response.status, await response.text())
            if response.content_type == "application/json":
                return await response.json()
            return await response.text()


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


@asynccontextmanager
async def client(pool: ThrowawayPool, token: str = "") -> AsyncGenerator[V1]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(address(pool), headers=headers, middlewares=(patiently,)) as session:
        yield V1(session)


async def test_refusals_have_the_form_that_the_client_understands(
    pool: ThrowawayPool, issuer: TokenIssuer
) -> None:
    """
    Without a good token it is 401, at a wrong address 404, else 400, always with a sentence under `error`; health needs no token.
    """
    async with client(pool) as nobody:
        assert "error" in await nobody.ask("GET", "/kv?list", 401)
        assert "error" in await nobody.ask("GET", "/nowhere", 404)
        assert "" == await nobody.ask("GET", "/health", 204)
    async with client(pool, "no token at all") as nobody:
        assert "error" in await nobody.ask("GET", "/kv?list", 401)
    async with client(pool, issuer.token("ada", POOL)) as ada:
        assert "error" in await ada.ask("POST", "/kv/" + "k" * 513, 400, data=b"1")
        assert "error" in await ada.ask("PATCH", "/kv/a", 404)


async def test_tokens_of_the_issuer_are_believed_and_no_others(
    pool: ThrowawayPool, issuer: TokenIssuer
) -> None:
    """
    One for another audience, one that is over, not yet good, or of another issuer, and one whose claims were changed after it was signed,
    open nothing.
    """
    good, now = issuer.token("ada", POOL), int(time.time())
    head, _, signature = good.split(".")
    claims = issuer.token("root", POOL).split(".")[1]
    wrong = [
        issuer.token("ada", "another"),
        issuer.token("ada", POOL, exp=now - 3600),
        issuer.token("ada", POOL, nbf=now + 3600),
        issuer.token("ada", POOL, iss="https://issuer.elsewhere.example"),
        f"{head}.{claims}.{signature}",
    ]
    async with client(pool, good) as ada:
        await ada.ask("GET", "/kv?list")
    for token in wrong:
        async with client(pool, token) as stranger:
            assert "error" in await stranger.ask("GET", "/kv?list", 401)


async def test_values_are_ones_own_and_have_limits(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    A value has 16384 bytes at most, all of one person's together 512 KiB; nobody sees those of another, and keys of PROMINENCE's own
    parts are not listed.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada, client(pool, issuer.token("bob", POOL)) as bob:
        await ada.ask("POST", "/kv/limits/most", 201, data=b"x" * 16_384)
        assert "16,384" in (await ada.ask("POST", "/kv/limits/more", 400, data=b"x" * 16_385))["error"]
        assert "x" * 16_384 == await ada.ask("GET", "/kv/limits/most")
        await bob.ask("POST", "/kv/limits/most", 201, data="b\u00f6b's")
        assert "b\u00f6b's" == await bob.ask("GET", "/kv/limits/most")
        assert {"error": "No such key"} == await bob.ask("GET", "/kv/limits/more", 404)
        await ada.ask("POST", "/kv/limits/_internal_/x", 201, data=b"1")
        assert ["/limits/most"] == await ada.ask("GET", "/kv/limits/?list")
        assert {"/limits/most": "b\u00f6b's"} == await bob.ask("GET", "/kv/limits/?list&values")
        for number in range(30):
            await ada.ask("POST", f"/kv/limits/{number}", 201, data=b"x" * 16_384)
        assert "together" in (await ada.ask("POST", "/kv/limits/30", 400, data=b"x" * 16_384))["error"]
        await ada.ask("DELETE", "/kv/limits/?prefix=True")
        assert [] == await ada.ask("GET", "/kv/limits/?list")
        assert ["/limits/most"] == await bob.ask("GET", "/kv/limits/?list")
        await bob.ask("DELETE", "/kv/limits/most")
        await bob.ask("DELETE", "/kv/limits/most")
        await ada.ask("GET", "/kv/limits/_internal_/x", 404)


async def test_one_of_fifty_wins(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    Of fifty programs that replace the same value at the same time one is told that it did, and the value is that one's.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada:
        await ada.ask("POST", "/kv/race", 201, data=b"free")

        async def grab(number: int) -> int:
            sent = ada.session.post("/prominence/v1/kv/race?prev=free", data=f"{number}")
            async with sent as response:
                answer = await response.json()
                assert (response.status == 201) or answer == {"error": "Atomic replacement not successful"}
                return response.status

        statuses = await asyncio.gather(*map(grab, range(50)))
        assert 1 == statuses.count(201)
        assert str(statuses.index(201)) == await ada.ask("GET", "/kv/race")
        missing = await ada.ask("POST", "/kv/race/none?prev=", 400, data=b"1")
        assert {"error": "Atomic replacement not successful"} == missing


async def test_values_outlive_who_keeps_them(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    What was acknowledged is there after iam and the gateway were killed: the next iam reads it from the log.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada:
        await ada.ask("POST", "/kv/kept", 201, data=b"for good")
    killed = {name: pool.kill(name, signal.SIGKILL) for name in ("iam", "gateway")}
    for name, number in killed.items():
        await pool.restarted(name, after=number)
    async with client(pool, issuer.token("ada", POOL)) as ada, asyncio.timeout(WITHIN_S):
        while (found := await _got(ada, "/kv/kept")) != (200, "for good"):
            assert 404 != found[0], found
            await asyncio.sleep(0.1)


async def _got(ada: V1, path: str) -> tuple[int, str]:
    async with ada.session.get(f"/prominence/v1{path}") as response:
        return response.status, await response.text()


async def test_files_are_sent_and_fetched_by_addresses(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    What is sent behind its digest is there under its name, whole or in parts, for who has an address; another digest or another name
    is refused and leaves nothing.
    """
    content = bytes(range(256)) * 10_000
    digest = hashlib.sha256(content).hexdigest()
    async with client(pool, issuer.token("ada", POOL)) as ada, client(pool) as anybody:
        made = await ada.ask("POST", "/data/upload", 201, json={"filename": "big.bin", "checksum": digest})

        async def send(fields: dict[str, str], body: bytes, url: str = made["url"]) -> tuple[int, str]:
            form = aiohttp.FormData(fields)
            form.add_field("file", io.BytesIO(body), filename="big.bin")
            async with anybody.session.post(url, data=form) as response:
                return response.status, await response.text()

        assert 400 == (await send(made["fields"], content[:-1]))[0]
        assert 400 == (await send({}, content))[0]
        assert 403 == (await send(made["fields"], content, made["url"].replace("of=ada", "of=bob")))[0]
        assert [] == await ada.ask("GET", "/data")
        assert (204, "") == await send(made["fields"], content)
        plain = await ada.ask("POST", "/data", 201, json={"filename": "small.txt"})
        async with anybody.session.put(plain["url"], data=b"small") as response:
            assert 201 == response.status
        async with anybody.session.get(plain["url"]) as response:
            assert 403 == response.status
        listed = await ada.ask("GET", "/data")
        assert [("big.bin", len(content)), ("small.txt", 5)] == [
            (each["name"], each["size"]) for each in listed
        ]
        await ada.ask("DELETE", "/data/small.txt", 204)
        await ada.ask("DELETE", "/data/small.txt", 400)
        await ada.ask("DELETE", "/data/big.bin", 204)


async def test_areas_of_groups_are_for_their_members(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    A member sends and sees what the group has; a group of which the name is a part, and nobody else, does not.
    """
    fusion = issuer.token("ada", POOL, groups=["fusion"])
    fus = issuer.token("bob", POOL, groups=["fus", "atom"])
    async with client(pool, fusion) as ada, client(pool, fus) as bob:
        made = await ada.ask("POST", "/data/upload", 201, json={"filename": "fusion/x", "checksum": None})
        async with bob.session.put(made["url"], data=b"1") as response:
            assert 201 == response.status
        assert ["fusion/x"] == [each["name"] for each in await ada.ask("GET", "/data/fusion")]
        for path in ("/data/fusion", "/data/fusion/x", "/data/usio"):
            assert "error" in await bob.ask("GET", path, 403)
        for name in ("fusion/x", "usio/x", "fus,atom/x"):
            assert "error" in await bob.ask("POST", "/data/upload", 403, json={"filename": name})
        await bob.ask("DELETE", "/data/fusion/x", 403)
        await ada.ask("DELETE", "/data/fusion/x", 204)
        for name, status in (("", 400), ("../x", 403), ("fusion/../../x" + "x" * 500, 400)):
            assert "error" in await ada.ask("POST", "/data/upload", status, json={"filename": name})


async def test_the_pool_says_what_it_has_and_what_was_used(pool: ThrowawayPool, issuer: TokenIssuer) -> None:
    """
    Machines with what is free of them, usage by person and by group, a token for a machine of one's own; days that are none are
    refused.
    """
    async with client(pool, issuer.token("ada", POOL)) as ada:
        async with asyncio.timeout(WITHIN_S):
            while not (machines := (await ada.ask("GET", "/resources"))["existing"]):
                await asyncio.sleep(0.1)
        (machine,) = machines
        assert {"cpus": 2, "memory": 8} == machine["capacity"]
        assert {"usage": {"users": {}}} == await ada.ask("GET", "/accounting?start=2020-01-01&end=2020-01-31")
        groups = await ada.ask("GET", "/accounting?start=2020-01-01&end=2020-01-31&by_group=true")
        assert {"usage": {"groups": {}}} == groups
        assert "error" in await ada.ask("GET", "/accounting?start=2020-01-01&end=31", 400)
        assert "usage" in await ada.ask("GET", "/accounting?start=0001-01-01&end=9999-12-31")
        assert "error" in await ada.ask("GET", f"/ts/1?start={'9' * 400}", 400)
        assert (await ada.ask("POST", "/token", 201))["token"].startswith("kettle-join-1.")


async def test_a_machine_that_a_token_has_let_in_goes_with_it(
    pool: ThrowawayPool, issuer: TokenIssuer
) -> None:
    """
    Who has shown it sees the machine and removes it, and nobody else does; when the token is withdrawn, another one goes by itself.
    """
    token = issuer.token("ada", POOL, jti="lost")
    port = (pool.home / "iam" / "port").read_text()

    async def join(ada: V1, name: str) -> None:
        form = {
            "grant_type": JOIN_GRANT,
            "join_token": (await ada.ask("POST", "/token", 201))["token"],
            "name": name,
            "key": KeyPair.new(Kind.USER).public,
        }
        async with ada.session.post(f"http://127.0.0.1:{port}/v1/token", data=form) as answer:
            assert answer.status == 200, await answer.text()

    async def machines(person: V1) -> list[str]:
        async with person.session.get("/v2/own-workers") as answer:
            assert answer.status == 200, await answer.text()
            return [each["name"] for each in (await answer.json())["workers"]]

    async def unused(person: V1) -> set[str]:
        async with person.session.get("/v2/own-workers") as answer:
            assert answer.status == 200, await answer.text()
            return {each["id"] for each in (await answer.json())["join_tokens"]}

    async with client(pool, token) as ada, client(pool, issuer.token("bob", POOL)) as bob:
        before = await unused(ada)
        await join(ada, "n1.ada")
        await join(ada, "n2.ada")
        assert (["n1.ada", "n2.ada"], []) == (await machines(ada), await machines(bob))
        for person, status in ((bob, 404), (ada, 200)):
            async with person.session.delete("/v2/own-workers/n1.ada") as answer:
                assert status == answer.status, await answer.text()
        await join(ada, "n3.ada")
        for person, status in ((bob, 404), (ada, 200)):  # by the form of a page, which leads back to it
            form = {"machine": "n3.ada"}
            async with person.session.post("/own-machines/remove", data=form, headers=AS_A_PAGE) as answer:
                assert (status, status == 200) == (answer.status, "/machines/n2.ada" in await answer.text())
        assert ["n2.ada"] == await machines(ada)
        await ada.ask("POST", "/token", 201)
        (number,) = await unused(ada) - before
        for person, status in ((bob, 404), (ada, 200)):
            async with person.session.delete(f"/v2/own-join-tokens/{number}") as answer:
                assert status == answer.status, await answer.text()
        await pool.client.iam.revoke_token("lost")
        async with client(pool, issuer.token("ada", POOL)) as again, asyncio.timeout(WITHIN_S):
            while await machines(again):
                await asyncio.sleep(0.05)
