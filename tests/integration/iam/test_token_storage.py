"""Storage that others have written, XRootD with libSciTokens, takes the tokens of a real iam over HTTPS."""

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from kettle.pki.authority_files import AuthorityFiles
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.servers.token_storage import TokenStorage, no_token_storage, token_storage
from kettle.testing.services import Backend

from .conftest import ACCESS_TOKEN, EXCHANGE, Office, office_on

pytestmark = pytest.mark.skipif(bool(no_token_storage()), reason=no_token_storage())

STORAGE: Final = "https://storage.example.org"
ELSEWHERE: Final = "https://elsewhere.example.org"
LOOK_S: Final = 0.1
SCOPES: Final = ["storage.read:/ada", "storage.modify:/ada/results"]
FILES: Final = {"/ada/input": b"1", "/ada/results/old": b"2", "/bob/input": b"4"}


@asynccontextmanager
async def encrypted(backend: Backend, directory: Path, **own: object) -> AsyncGenerator[Office]:
    """An iam over HTTPS, with a certificate as `kettle pki` makes it."""
    files = AuthorityFiles(directory / "pki")
    now = datetime.now(UTC)
    authority = files.make("Test", now=now)
    certificate = files.issue(["localhost", "127.0.0.1"], "server", now=now)
    port = held_port()
    own |= {
        "http_port": port,
        "url": f"https://localhost:{port}",
        "certificate": str(certificate.certificate),
        "certificate_key": str(certificate.key),
        "ca_certificate": str(authority.certificate),
    }
    async with office_on(backend, directory, **own) as made:
        yield made


@pytest_asyncio.fixture
async def office(backend: Backend, tmp_path: Path) -> AsyncIterator[Office]:
    async with encrypted(backend, tmp_path) as made:
        yield made


def storage_of(office: Office) -> AbstractContextManager[TokenStorage]:
    return token_storage(office.url, STORAGE, Path(office.settings.ca_certificate), FILES)


class Client:
    """A program that iam gives tokens for storage."""

    def __init__(self, office: Office, name: str, secret: str) -> None:
        self.office = office
        self.own = {"client_id": name, "client_secret": secret}

    async def token(self, **form: str) -> str:
        wanted = {"grant_type": "client_credentials", "audience": STORAGE} | form
        status, got = await self.office.post("/v1/token", wanted | self.own)
        assert 200 == status, got
        return str(got["access_token"])

    async def narrower(self, token: str, scope: str) -> str:
        return await self.token(
            grant_type=EXCHANGE, subject_token=token, subject_token_type=ACCESS_TOKEN, scope=scope
        )


async def registered(office: Office, name: str = "transfer", *, lifetime: float = 60.0) -> Client:
    secret = await office.administrator.register_client(
        name,
        owner="ada",
        scopes=SCOPES,
        audiences=[STORAGE, ELSEWHERE],
        lifetime=lifetime,
        exchanges=True,
    )
    return Client(office, name, secret)


async def test_storage_lets_in_what_the_scopes_say(office: Office) -> None:
    """
    Reading and writing each below its path, and nothing without a token; a token that was derived from another opens only
    its own part, and one for another audience nothing.
    """
    client = await registered(office)
    token = await client.token()
    derived = await client.narrower(token, "storage.read:/ada/results")
    elsewhere = await client.token(audience=ELSEWHERE)
    with storage_of(office) as storage:
        for method, path, shown, status in (
            ("GET", "/ada/input", token, 200),
            ("GET", "/ada/results/old", token, 200),
            ("GET", "/bob/input", token, 403),
            ("GET", "/ada/input", "", 403),
            ("PUT", "/ada/results/new", token, 200),
            ("PUT", "/ada/new", token, 403),
            ("GET", "/ada/results/old", derived, 200),
            ("GET", "/ada/input", derived, 403),
            ("PUT", "/ada/results/more", derived, 403),
            ("GET", "/ada/input", elsewhere, 403),
        ):
            data = b"written" if method == "PUT" else None
            found = await storage.ask(method, path, shown, data)
            # XRootD says 200 or 201 to what it has stored.
            assert status == (200 if found == 201 else found), (method, path, found)
        written = {path.name for path in (storage.directory / "ada").rglob("*") if path.is_file()}
        assert {"input", "old", "new"} == written
        assert b"written" == (storage.directory / "ada" / "results" / "new").read_bytes()


async def test_storage_refuses_a_token_whose_time_is_over(office: Office) -> None:
    """Of a life that iam cut to what the program may have."""
    token = await (await registered(office, "hasty", lifetime=1.0)).token()
    with storage_of(office) as storage:
        await asyncio.sleep(
            1.1
        )  # it keeps an answer for a minute, so that the first question has to come now
        assert 403 == await storage.ask("GET", "/ada/input", token)
        assert 200 == await storage.ask("GET", "/ada/input", await (await registered(office)).token())


async def test_storage_knows_the_next_key_before_it_signs(backend: Backend, tmp_path: Path) -> None:
    """It has fetched the keys once, and takes tokens of the former key and of the next one."""
    async with encrypted(backend, tmp_path, key_lifetime=2.0, key_overlap=2.0) as office:
        client = await registered(office)
        first = await client.token()
        async with asyncio.timeout(PATIENCE_S):
            while len(await published(office)) < 3:  # one is for machines that join
                await asyncio.sleep(LOOK_S)
        with storage_of(office) as storage:
            assert 200 == await storage.ask("GET", "/ada/input", first)
            async with asyncio.timeout(PATIENCE_S):
                while key_of(second := await client.token()) == key_of(first):
                    await asyncio.sleep(LOOK_S)
            assert 200 == await storage.ask("GET", "/ada/input", second)
            assert 200 == await storage.ask("GET", "/ada/results/old", first)


async def published(office: Office) -> list[object]:
    async with office.http.get(f"{office.url}/jwks.json") as answer:
        keys: list[object] = (await answer.json())["keys"]
    return keys


def key_of(token: str) -> object:
    header = token.partition(".")[0]
    return json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4)))["kid"]
