"""Tokens of an OpenID provider that others have written (npm: oidc-provider), over its own server."""

import asyncio
import json
import os
import shutil
import time
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from joserfc.jwk import ECKey, RSAKey

from kettle.auth.tokens.capabilities import rights
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError
from kettle.auth.tokens.verifier import Verifier

ORDER: Final = "KETTLE_TEST_CLIENTS"
PACKAGE: Final = "oidc-provider@9.13.3"
AUDIENCE: Final = "https://pool.example.org/"
MINUTE: Final = 61.0


async def done(*words: str, within_s: float, cwd: Path) -> None:
    """Run a program to its end."""
    process = await asyncio.create_subprocess_exec(*words, cwd=cwd, stdout=asyncio.subprocess.DEVNULL)
    async with asyncio.timeout(within_s):
        assert 0 == await process.wait()


@pytest.fixture
async def place(tmp_path: Path) -> Path:
    """A directory with the provider in it: it needs a package registry, and therefore an order."""
    npm = shutil.which("npm")
    if ORDER not in os.environ or npm is None:
        pytest.skip(
            f"oidc-provider is not installed ({ORDER}=1 installs clients into environments of their own)"
        )
    await done(npm, "install", "--silent", "--no-audit", "--no-fund", PACKAGE, within_s=300, cwd=tmp_path)
    shutil.copy(Path(__file__).with_name("oidc_issuer.mjs"), tmp_path)
    return tmp_path


def keys(generation: int) -> str:
    """Private keys, of both kinds, with names that tell their generation."""
    made = (
        ECKey.generate_key("P-256", {"kid": f"ec-{generation}", "use": "sig", "alg": "ES256"}),
        RSAKey.generate_key(2048, {"kid": f"rsa-{generation}", "use": "sig", "alg": "RS256"}),
    )
    return json.dumps({"keys": [key.as_dict(private=True) for key in made]})


@asynccontextmanager
async def provider(place: Path, generation: int, port: int = 0) -> AsyncGenerator[str]:
    """The provider at work, and its URL."""
    node = shutil.which("node")
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node,
        "oidc_issuer.mjs",
        str(port),
        keys(generation),
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # it warns that its store is for tests
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def token(url: str, scope: str, resource: str) -> str:
    """An access token for a service, as any client asks for one."""
    form = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
    async with (
        aiohttp.ClientSession(
            headers={"Authorization": f"Basic {b64encode(b'robot:secret').decode()}"}
        ) as session,
        session.post(f"{url}/token", data=form) as response,
    ):
        answer = await response.json()
    assert 200 == response.status, answer
    return str(answer["access_token"])


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_its_tokens_are_accepted_also_after_it_has_changed_its_keys(
    place: Path, algorithm: str
) -> None:
    """
    Keys are found by its own description; while it is down its last keys are used; new keys are learned by their names.
    """
    audience = f"{AUDIENCE}?alg={algorithm}"
    now = time.time()
    async with HttpFetcher.open(FetchLimits(plain_loopback=True)) as fetcher:
        cache = KeyCache(fetcher)
        async with provider(place, 1) as url:
            issuer = Issuer(url=url, audiences=(audience,))
            verifier = Verifier(Issuers([issuer]), cache)
            first = await token(url, "condor:/READ", audience)
            found = await verifier.verify(first, now)
            assert ("at+jwt", "robot") == (found.profile, found.subject)
            assert {"READ"} == rights(found, issuer).levels
            with pytest.raises(TokenError) as elsewhere:
                await verifier.verify(await token(url, "condor:/READ", "https://elsewhere.example.org/"), now)
            assert elsewhere.value.code == "token.audience"
        assert "robot" == (await verifier.verify(first, now)).subject  # it is down
        async with provider(place, 2, int(url.rpartition(":")[2])) as again:
            assert url == again
            second = await token(url, "condor:/READ condor:/WRITE", audience)
            later = await verifier.verify(second, now + MINUTE)
            assert {"READ", "WRITE"} == rights(later, issuer).levels
            with pytest.raises(TokenError) as replaced:
                await verifier.verify(first, now + MINUTE)
            assert replaced.value.code == "token.key_unknown"
    assert {url: 2} == cache.counts.fetched
