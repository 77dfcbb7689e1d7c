"""
`kettle login` at an OpenID provider that others have written, whose pages a person uses meanwhile; then its tokens in
the pool.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
import pytest_asyncio

from kettle.auth.tokens.checking.issuers import Issuer as Trusted
from kettle.auth.tokens.checking.issuers import Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.client.device_login import Issuer, LoginError, TokenFiles, Tokens
from kettle.testing.patience import PATIENCE_S

from .provider import AUDIENCE, Provider, keys, provider

KETTLE: Final = str(Path(sys.executable).with_name("kettle"))
SHOWN: Final = re.compile(r"Open (\S+) and confirm the code ([A-Z]{4}-[A-Z]{4})\.")
RULES: Final = """
[[rules]]
when.issuer = "{issuer}"
when.groups = "/atlas/production"
when.subject = '/^([a-z]+)$/'
owner = '\\1@atlas'
levels = ["WRITE"]
accounting_group = "group_atlas.production"
"""


class Command:
    """`kettle` for one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @asynccontextmanager
    async def started(self, *words: str, given: str = "") -> AsyncGenerator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            KETTLE,
            *words,
            "--home",
            str(self.home),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdin is not None
            process.stdin.write(given.encode())
            process.stdin.close()
            async with asyncio.timeout(PATIENCE_S):
                yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def __call__(self, *words: str, given: str = "") -> tuple[int, str, str]:
        async with self.started(*words, given=given) as process:
            out, err = await process.communicate()
            return process.returncode or 0, out.decode(), err.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer() -> AsyncIterator[Provider]:
    async with provider(keys(1), access_token_life=600) as running:
        yield running


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def kettle(tmp_path: Path) -> Command:
    return Command(tmp_path)


async def signed_in(kettle: Command, issuer: Provider, *words: str) -> str:
    """What `kettle login` says in the end, after ada has confirmed the address that it shows."""
    async with kettle.started("login", "--issuer", issuer.url, *words) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        shown = SHOWN.search((await process.stderr.readline()).decode())
        assert shown is not None
        assert shown[2] in shown[1], "the whole address has the code in it"
        await issuer.confirm(shown[1], "ada")
        out, err = await process.stdout.read(), await process.stderr.read()
        assert (0, b"") == (await process.wait(), err)
        return out.decode()


async def test_a_person_signs_in_and_is_somebody_with_rights(kettle: Command, issuer: Provider) -> None:
    """
    The address is opened elsewhere; the token that comes of it is verified by the pool, and a rule about its groups says who
    that is, what she may do and for which accounting group.
    """
    assert f"You are signed in at {issuer.url}.\n" == await signed_in(kettle, issuer)
    kept = TokenFiles(kettle.home).path(issuer.url)
    assert 0o600 == kept.stat().st_mode & 0o777
    token = TokenFiles(kettle.home).load(issuer.url)
    assert token is not None

    async with HttpFetcher.open(FetchLimits(plain_loopback=True)) as fetcher:
        trusted = Issuers([Trusted(url=issuer.url, audiences=(AUDIENCE,))])
        verified = await Verifier(trusted, KeyCache(fetcher)).verify(token.access_token, time.time())
    assert ("ada", ("/atlas", "/atlas/production")) == (verified.subject, verified.groups)

    rules = kettle.home / "rules.toml"
    rules.write_text(RULES.format(issuer=issuer.url))
    status, out, err = await kettle(
        "iam", "test", "-", "--rules", str(rules), "--json", given=token.access_token
    )
    assert (0, "") == (status, err)
    who = json.loads(out)
    assert ("ada@atlas", "group_atlas.production") == (who["name"], who["accounting_group"])
    assert {"file": str(rules), "line": 2} == {name: who["because"][0][name] for name in ("file", "line")}
    allowed = {each["level"] for each in who["levels"] if each["allowed"]}
    assert {"READ", "WRITE"} <= allowed
    assert "ADMINISTRATOR" not in allowed
    assert token.access_token not in out


async def test_the_sign_in_is_renewed_and_ends(kettle: Command, issuer: Provider) -> None:
    """
    With a third of its life left there is a new token, of which two programs that ask at once make one; the refresh token is
    exchanged with it, and is worth nothing after `kettle logout`.
    """
    await signed_in(kettle, issuer)
    files = TokenFiles(kettle.home)
    before = files.load(issuer.url)
    assert before is not None
    assert "" != before.refresh_token
    now = time.time()
    files.save(msgspec.structs.replace(before, obtained=now - 400.0, expires=now + 200.0))
    both = await asyncio.gather(*(kettle("login", "--issuer", issuer.url, "--print") for _ in range(2)))
    after = files.load(issuer.url)
    assert after is not None
    assert [(0, f"{after.access_token}\n", "")] * 2 == both
    assert after.access_token != before.access_token
    assert after.refresh_token not in {"", before.refresh_token}

    assert (0, f"You are signed out of {issuer.url}.\n", "") == await kettle("logout", "--issuer", issuer.url)
    assert files.load(issuer.url) is None
    form = {"grant_type": "refresh_token", "client_id": "kettle", "refresh_token": after.refresh_token}
    status, answer = await issuer.post("token", form)
    assert (400, "invalid_grant") == (status, answer["error"])
    status, _, err = await kettle("login", "--issuer", issuer.url, "--print")
    assert 1 == status
    assert (
        f"kettle login: nobody is signed in at {issuer.url}; say: kettle login --issuer {issuer.url}\n" == err
    )


async def test_a_refresh_token_that_somebody_has_used_ends_the_sign_in(
    kettle: Command, issuer: Provider
) -> None:
    """The issuer takes it for a theft; what is said of it has a way out and no secret."""
    await signed_in(kettle, issuer)
    files = TokenFiles(kettle.home)
    stolen = files.load(issuer.url)
    assert stolen is not None
    form = {"grant_type": "refresh_token", "client_id": "kettle", "refresh_token": stolen.refresh_token}
    assert 200 == (await issuer.post("token", form))[0]
    files.save(msgspec.structs.replace(stolen, expires=time.time()))
    status, out, err = await kettle("login", "--issuer", issuer.url, "--print")
    assert (1, "") == (status, out)
    assert err == (
        f"kettle login: {issuer.url} does not renew the sign-in (invalid_grant); say: kettle login --issuer {issuer.url}\n"
    )


async def waited(issuer: Provider, client: str, pauses: list[float], meanwhile: float = 0.0) -> Tokens:
    """A sign-in whose pauses are noted; `meanwhile`: how long each really is."""

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(meanwhile)

    def work() -> Tokens:
        found = Issuer(issuer.url)
        return found.wait(found.device_code(client, "openid offline_access"), client, sleep=pause)

    return await asyncio.to_thread(work)


async def test_whoever_does_not_confirm_in_time_is_told(issuer: Provider) -> None:
    """The issuer's own `expired_token`, after its own `authorization_pending`."""
    with pytest.raises(LoginError, match=r"^the code was not confirmed in time; say kettle login again$"):
        await waited(issuer, "late", [], meanwhile=0.4)


async def test_whoever_refuses_in_the_browser_is_told(issuer: Provider) -> None:
    """The issuer's own `access_denied`."""
    found = Issuer(issuer.url)
    code = await asyncio.to_thread(found.device_code, "kettle", "openid offline_access")
    await issuer.refuse(code.verification_uri_complete, "ada")
    with pytest.raises(LoginError, match=r"^the sign-in was refused in the browser$"):
        await asyncio.to_thread(found.wait, code, "kettle", sleep=lambda _pause: None)


async def test_an_issuer_that_fails_meanwhile_is_asked_again_with_the_same_code(issuer: Provider) -> None:
    """
    A connection that is cut doubles the pause until there is an answer, `slow_down` adds five seconds for good, and the code that
    was confirmed meanwhile is good.
    """
    found = Issuer(issuer.url)
    code = await asyncio.to_thread(found.device_code, "kettle", "openid offline_access")
    await issuer.confirm(code.verification_uri_complete, "ada")
    await issuer.fail("hang-up", 503, "slow_down", "hang-up")
    pauses: list[float] = []
    tokens = await asyncio.to_thread(found.wait, code, "kettle", sleep=pauses.append)
    assert "" != tokens.access_token
    assert [1.0, 2.0, 4.0, 6.0, 12.0] == pauses


async def test_an_issuer_without_codes_says_what_it_has(kettle: Command) -> None:
    """Its grants, from its own description."""
    async with provider(keys(1), device=False) as plain:
        status, out, err = await kettle("login", "--issuer", plain.url)
    assert (1, "") == (status, out)
    assert err == (
        f"kettle login: {plain.url} has no sign-in by a code; its grants are: "
        "implicit, authorization_code, refresh_token, client_credentials\n"
    )
