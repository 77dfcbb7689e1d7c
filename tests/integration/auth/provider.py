"""
An OpenID provider that others have written (npm: oidc-provider), with a person who uses its pages and a client of its
own.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest
from joserfc.jwk import ECKey, RSAKey

from kettle.testing.patience import PATIENCE_S

PACKAGE: Final = Path(__file__).parent / "oidc"
"""Its versions, with their hashes, and the script that runs it."""
ORDER: Final = "KETTLE_TEST_CLIENTS"
AUDIENCE: Final = "https://pool.example.org/"
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kettle-tests"
_FORM: Final = re.compile(r'<form[^>]*\baction="([^"]*)"')
_HIDDEN: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')
_UNREACHABLE: Final = re.compile(
    r"^npm error code (EAI_AGAIN|ECONN[A-Z]*|ENETUNREACH|ENOTFOUND|ETIMEDOUT|E5\d\d)$", re.MULTILINE
)
_CANCEL: Final = re.compile(r'<a href="([^"]*/abort)"')


def modules() -> Path:
    """Where it is installed; skips the test if it is not, and cannot be."""
    why, place = _installed()
    if why:
        pytest.skip(why)
    return place / "node_modules"


@cache
def _installed() -> tuple[str, Path]:
    """
    Why there is none, and where it is: in the cache of the account that runs the tests, once for each lock file.  To install it
    takes npm, a package registry, and therefore an order.
    """
    lock = (PACKAGE / "package-lock.json").read_bytes()
    place = _CACHE / f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:16]}"
    npm = shutil.which("npm")
    if npm is None or not shutil.which("node"):
        return "oidc-provider is not installed: there is no npm", place
    if place.exists():
        return "", place
    if ORDER not in os.environ and os.environ.get("CI") != "true":
        why = f"oidc-provider is not installed ({ORDER}=1 installs clients into environments of their own)"
        return why, place
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return "" if place.exists() else _install(npm, place), place


def _install(npm: str, place: Path) -> str:
    """Why it was not; empty: it was."""
    with tempfile.TemporaryDirectory(dir=place.parent) as directory:
        stage = Path(directory) / "whole"
        stage.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PACKAGE / name, stage)
        words = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"]
        done = subprocess.run(
            [npm, "ci", *words], cwd=stage, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode and _UNREACHABLE.search(done.stderr):
            return "oidc-provider cannot be fetched: no registry of npm answers"
        assert 0 == done.returncode, done.stderr
        stage.rename(place)
        return ""


def keys(generation: int) -> dict[str, Any]:
    """Private keys, of both kinds, with names that tell their generation."""
    made = (
        ECKey.generate_key("P-256", {"kid": f"ec-{generation}", "use": "sig", "alg": "ES256"}),
        RSAKey.generate_key(2048, {"kid": f"rsa-{generation}", "use": "sig", "alg": "RS256"}),
    )
    return {"keys": [key.as_dict(private=True) for key in made]}


class Provider(msgspec.Struct, frozen=True):
    """It at work."""

    url: str

    async def token(self, scope: str, resource: str = AUDIENCE) -> str:
        """An access token for a service, as any client asks for one (`client_credentials`)."""
        form = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
        robot = {"Authorization": f"Basic {b64encode(b'robot:secret').decode()}"}
        status, answer = await self.post("token", form, robot)
        assert 200 == status, answer
        return str(answer["access_token"])

    async def post(
        self, path: str, form: dict[str, str], headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """What it answers to a form."""
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}/{path}", data=form) as response,
        ):
            return response.status, await response.json()

    async def fail(self, *faults: str | int) -> None:
        """Have the next questions for tokens go wrong, one after the other."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/faults", json=faults) as response,
        ):
            assert 204 == response.status

    async def confirm(self, address: str, login: str) -> None:
        """What a person does in a browser who has been shown an address: sign in, and consent."""
        page = await self._browse(address, login, cancel=False)
        assert "Sign-in Success" in page

    async def refuse(self, address: str, login: str) -> None:
        """A person who signs in, and cancels where she is asked to consent."""
        await self._browse(address, login, cancel=True)

    async def _browse(self, address: str, login: str, *, cancel: bool) -> str:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            return await self.browse(browser, address, login, cancel=cancel)

    async def browse(
        self, browser: aiohttp.ClientSession, address: str, login: str, *, cancel: bool = False
    ) -> str:
        """A person goes from an address through all forms, in a browser that keeps cookies; the last page."""
        page = await _shown(browser, "GET", address)
        while form := _FORM.search(page):
            if cancel and 'value="consent"' in page and (way := _CANCEL.search(page)):
                return await _shown(browser, "GET", way[1])
            fields = dict(_HIDDEN.findall(page))
            if 'name="login"' in page:
                fields |= {"login": login, "password": "any"}
            page = await _shown(browser, "POST", form[1], fields)
        return page


async def _shown(
    browser: aiohttp.ClientSession, method: str, address: str, form: dict[str, str] | None = None
) -> str:
    async with browser.request(method, address, data=form) as response:
        return await response.text()


@asynccontextmanager
async def provider(
    jwks: dict[str, Any],
    *,
    port: int = 0,
    device: bool = True,
    access_token_life: int = 600,
    back: str = "",
) -> AsyncGenerator[Provider]:
    """
    The provider while the context lasts; `device`: whether it has sign-ins by a code; lives in seconds; `back`: where the client
    `kettle-web` has browsers led back to.  `ada` is in /atlas/production.
    """
    words = {
        "jwks": jwks,
        "device": device,
        "interval": 1,
        "accessTokenLife": access_token_life,
        "back": back,
        "groups": {"ada": ["/atlas", "/atlas/production"]},
    }
    process = await asyncio.create_subprocess_exec(
        "node",
        str(PACKAGE / "provider.mjs"),
        str(modules()),
        str(port),
        json.dumps(words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # it warns that its store is for tests
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            url = (await process.stdout.readline()).decode().strip()
        assert url, "the provider ended before it said where it is"
        yield Provider(url)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
