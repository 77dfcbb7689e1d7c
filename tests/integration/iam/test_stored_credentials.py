"""
Credentials that people store for their jobs: kept enciphered, exchanged by iam alone, given to their owner's jobs.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from kettle import VERSION
from kettle.bus.ports import RefusedError, Served
from kettle.client.errors import CommandRefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.job_credentials import (
    END_JOB_TOKENS,
    ISSUE_JOB_TOKENS,
    EndJobTokens,
    IssueJobTokens,
)
from kettle_wire.commands.schedd import NEEDED_TOKENS, AskNeededTokens, TokensNeeded
from kettle_wire.endpoint import Endpoint
from kettle_wire.events import CredentialRemoved, CredentialStored
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.job_tokens import JobToken, NeededToken
from kettle_wire.jobs import JobId

from .conftest import ACCESS_TOKEN, EXCHANGE, Office, office_on
from .test_tokens import recorded

SECRET = "kettle-canary-client-secret"
REFRESH = "kettle-canary-refresh"


class Issuer:
    """A service that exchanges refresh tokens, each of which is good once."""

    def __init__(self) -> None:
        self.good = f"{REFRESH}-0"
        self.asked: list[dict[str, str]] = []
        self.status = 200

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        expected = "Basic " + base64.b64encode(f"pool:{SECRET}".encode()).decode()
        if self.status != 200:
            return web.json_response({"error": "server_error"}, status=self.status)
        if request.headers.get("Authorization") != expected or form["refresh_token"] != self.good:
            return web.json_response({"error": "invalid_grant"}, status=400)
        number = len(self.asked)
        self.good = f"{REFRESH}-{number}"
        return web.json_response(
            {"access_token": f"access-{number}", "expires_in": 600, "refresh_token": self.good}
        )


class Queue:
    """A schedd that says of a job what a test wants."""

    def __init__(self) -> None:
        self.needed: list[NeededToken] = [NeededToken(service="box")]
        self.owner = "ada"

    async def needed_tokens(self, request: AskNeededTokens, caller: Identity) -> TokensNeeded:
        if request.attempt != 1:
            raise RefusedError(RefusalCode.NOT_RUNNING, "it does not run")
        return TokensNeeded(owner=self.owner, tokens=self.needed)


class World:
    """An iam, a service outside, a queue, and its shadow."""

    def __init__(self, office: Office, issuer: Issuer, queue: Queue, directory: Path) -> None:
        self.office, self.issuer, self.queue, self.directory = office, issuer, queue, directory

    async def given(self, attempt: int = 1) -> list[JobToken]:
        """What a job of the queue gets."""
        request = IssueJobTokens(schedd="schedd", job=JobId(1, 0), attempt=attempt)
        async with self.office.backend.bus(daemon("shadow")) as shadow:
            return (await shadow.call(ISSUE_JOB_TOKENS, "iam", request, deadline=10.0)).tokens

    async def refused(self) -> str:
        with pytest.raises(RefusedError) as caught:
            await self.given()
        return str(caught.value)


@pytest_asyncio.fixture
async def world(backend: Backend, tmp_path: Path) -> AsyncIterator[World]:
    issuer, queue = Issuer(), Queue()
    application = web.Application()
    application.router.add_post("/token", issuer.token)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    services: dict[str, Any] = {
        "box": {
            "token_url": f"http://127.0.0.1:{port}/token",
            "client_id": "pool",
            "client_secret_file": str(tmp_path / "secret"),
            "sign_in": "https://box.example/connect",
        }
    }
    try:
        async with (
            backend.bus(daemon("schedd")) as bus,
            office_on(backend, tmp_path, oauth_services=services) as office,
        ):
            await bus.serve("schedd", "schedd", [Served(NEEDED_TOKENS, queue.needed_tokens)], version=VERSION)
            yield World(office, issuer, queue, tmp_path)
    finally:
        await runner.cleanup()


async def test_a_token_is_kept_and_given_to_its_owners_jobs_alone(world: World) -> None:
    """Another owner's job gets nothing of it, nor does one of another attempt; and nobody is shown it."""
    async with world.office.backend.bus(user("ada")) as bus:
        ada = world.office.asked_by(bus)
        await ada.store_credential("site", "kettle-canary-token", handle="mine")
        shown = await ada.credentials()
        assert [("site", "mine", "token")] == [
            (each.service, each.handle, each.kind) for each in shown.credentials
        ]
        assert "canary" not in str(shown)
        world.queue.needed = [NeededToken(service="site", handle="mine")]
        assert [("site_mine", "kettle-canary-token")] == [
            (each.name, each.text) for each in await world.given()
        ]
        with pytest.raises(RefusedError) as caught:
            await world.given(attempt=2)
        assert RefusalCode.NOT_RUNNING == caught.value.code
        world.queue.owner = "bob"
        assert (
            "bob has stored no credential of site with the handle mine: condor_store_cred add-oauth -s site -H mine"
            in (await world.refused())
        )
        world.queue.owner = "ada"
        await ada.remove_credential("site", handle="mine")
        assert "ada has stored no credential of site" in await world.refused()
        async with asyncio.timeout(PATIENCE_S):
            while list((world.office.settings.directory / "credentials").glob("*/*")):
                await asyncio.sleep(0.01)
    for kind in (CredentialStored, CredentialRemoved):
        [event] = await recorded(world.office, kind)
        assert ("ada", "site", "mine") == (event.owner, event.service, event.handle)
        assert "canary" not in str(event)


async def test_the_shadow_of_an_access_point_that_has_joined_gets_none(world: World) -> None:
    """Whatever queue it names, and it ends no token of others."""
    end = EndJobTokens(schedd="schedd", job=JobId(1, 0), attempt=1)
    issue = IssueJobTokens(schedd="schedd", job=JobId(1, 0), attempt=1)
    async with world.office.backend.bus(daemon("shadow", "ap1")) as shadow:
        asked: list[tuple[Endpoint[Any, Any], Any]] = [(ISSUE_JOB_TOKENS, issue), (END_JOB_TOKENS, end)]
        for endpoint, request in asked:
            with pytest.raises(RefusedError, match="get no tokens") as caught:
                await shadow.call(endpoint, "iam", request, deadline=10.0)
            assert RefusalCode.DENIED == caught.value.code


async def test_what_is_stored_again_stays(world: World) -> None:
    """
    The file of what was removed goes only after that is recorded, and not if another took its place meanwhile.
    """
    async with world.office.backend.bus(user("ada")) as bus:
        ada = world.office.asked_by(bus)
        world.queue.needed = [NeededToken(service="site")]
        for number in range(20):
            await ada.store_credential("site", f"token-{number}")
            await asyncio.gather(
                ada.remove_credential("site"), ada.store_credential("site", f"again-{number}")
            )
            if (await ada.credentials()).credentials:
                assert [f"again-{number}"] == [each.text for each in await world.given()]


async def test_a_refresh_token_is_exchanged_and_its_successor_kept(world: World) -> None:
    """
    Jobs share an access token while it is young, each set of scopes has its own, and neither secret leaves iam.
    """
    async with world.office.backend.bus(user("ada")) as bus:
        ada = world.office.asked_by(bus)
        await ada.store_credential("box", f'{{"refresh_token": "{REFRESH}-0", "access_token": "old"}}')
        first = await asyncio.gather(*(world.given() for _ in range(5)))
        assert {"access-1"} == {token.text for tokens in first for token in tokens}
        assert all(300 < token.left <= 600 for tokens in first for token in tokens)
        world.queue.needed = [NeededToken(service="box", scopes=["read"], audiences=["https://a"])]
        assert "access-2" == (await world.given())[0].text
        assert [None, "read"] == [form.get("scope") for form in world.issuer.asked]
        assert [f"{REFRESH}-0", f"{REFRESH}-1"] == [form["refresh_token"] for form in world.issuer.asked]
        world.issuer.good, world.queue.needed = "withdrawn", [NeededToken(service="box", scopes=["write"])]
        assert "box gives no access token (invalid_grant): store a new credential" in await world.refused()
        world.issuer.status = 503
        with pytest.raises(RefusedError) as caught:
            await world.given()
        assert RefusalCode.UNAVAILABLE == caught.value.code


async def test_what_lies_on_the_disk_tells_nothing(world: World) -> None:
    """
    No file but that of the keys is enough to read one, none can stand in for another, and nobody else may read any.
    """
    async with world.office.backend.bus(user("ada")) as bus:
        await world.office.asked_by(bus).store_credential("site", "kettle-canary-token")
        await world.office.asked_by(bus).store_credential("other", "kettle-canary-other")
    files = world.office.settings.directory / "credentials"
    (mine,) = files.glob("ada/site.*")
    assert [0o600, 0o600] == [path.stat().st_mode & 0o777 for path in (mine, files / "keys.json")]
    assert all(b"canary" not in path.read_bytes() for path in files.rglob("*") if path.is_file())
    mine.write_bytes((files / "ada" / "other..sealed").read_bytes())
    world.queue.needed = [NeededToken(service="site")]
    assert (
        "the stored credential site. of ada cannot be read (InvalidTag): store it again"
        in await world.refused()
    )


@pytest.mark.parametrize(
    ("service", "text", "words"),
    [
        ("site", '{"refresh_token": "x"}', "iam exchanges no refresh tokens of site (it does of: box)"),
        ("box", '{"token": "kettle-canary"}', "JSON without a refresh_token or an access_token"),
        ("box", '{"kettle-canary', "begins as JSON does and is none"),
        ("box", "two kettle-canary words", "a token is one word of printable ASCII"),
        ("kettle", "kettle-canary", "tokens of kettle are made for each job"),
    ],
)
async def test_what_is_no_credential_is_refused(world: World, service: str, text: str, words: str) -> None:
    """In words that have nothing of it."""
    with pytest.raises(CommandRefusedError) as caught:
        await world.office.administrator.store_credential(service, text)
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


async def test_the_token_of_a_job_makes_no_other_token(world: World) -> None:
    """
    An exchanged one would be good after the attempt, and would not say that it is a job's; at the end it is
    withdrawn.
    """
    world.queue.needed = [NeededToken(service="kettle")]
    ((token,), office) = (await world.given(), world.office)
    assert (200, "ada") == ((found := await office.get("/v1/whoami", token.text))[0], found[1]["subject"])
    form = {"grant_type": EXCHANGE, "subject_token": token.text, "subject_token_type": ACCESS_TOKEN}
    status, answer = await office.post("/v1/token", form)
    assert (400, "client.exchange") == (status, answer["code"])
    request = EndJobTokens(schedd="schedd", job=JobId(1, 0), attempt=1)
    async with office.backend.bus(daemon("shadow")) as shadow:
        for _ in range(2):
            await shadow.call(END_JOB_TOKENS, "iam", request, deadline=10.0)
    assert (401, "token.revoked") == (
        (found := await office.get("/v1/whoami", token.text))[0],
        found[1]["code"],
    )
