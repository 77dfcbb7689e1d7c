"""
From the login to a running server in a real browser: JupyterHub signs people in at an issuer, and their servers are jobs of theirs, with
the token of the login in them.
"""

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer
from tests.scenario.hub_programs import HubPrograms

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .browser import DESKTOP

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

PORT: Final = held_port()
ISSUER: Final = f"http://127.0.0.1:{PORT}"
POOL: Final = "https://pool.example.org"
LIFE_S: Final = 20
LIVES: Final = 3
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "gateway")
RULES: Final = f"""
[[rules]]
when.issuer = "{ISSUER}"
when.subject = '/^([a-z0-9_-]+)$/'
owner = '\\1'
"""
CONFIG: Final = """
c = get_config()
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.authenticator_class = "generic-oauth"
c.Authenticator.enable_auth_state = True
c.Authenticator.auth_refresh_age = 0
c.Authenticator.allow_all = True
c.GenericOAuthenticator.login_service = "the laboratory"
c.GenericOAuthenticator.client_id = "hub"
c.GenericOAuthenticator.client_secret = "secret-of-the-hub"
c.GenericOAuthenticator.authorize_url = "{issuer}/authorize"
c.GenericOAuthenticator.token_url = "{issuer}/token"
c.GenericOAuthenticator.userdata_from_id_token = True
c.GenericOAuthenticator.username_claim = "sub"
c.GenericOAuthenticator.scope = ["openid", "offline_access"]
c.GenericOAuthenticator.extra_authorize_params = {{"resource": {pool!r}}}
c.GenericOAuthenticator.oauth_callback_url = "{url}/hub/oauth_callback"
c.JupyterHub.spawner_class = "kettle"
c.KettleSpawner.gateway = {gateway!r}
c.KettleSpawner.login_credential = "lab"
c.KettleSpawner.profiles = [
    {{"name": "notebook", "title": "Notebook", "about": "for everybody", "memory": 256}},
    {{"name": "large", "title": "Large", "memory": 300}},
]
c.Spawner.cmd = ["/bin/sh", "-c", {command!r}, "sh"]
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = "/tree"
c.Spawner.env_keep = ["PATH", "LANG"]
"""
WATCHES: Final = """
import base64, json, os, sys, time
with open(sys.argv[1], "w", 1) as seen:
    while True:
        with open(os.environ["BEARER_TOKEN_FILE"]) as file:
            claims = file.read().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        seen.write(f"{claims['sub']} {claims['jti']} {claims['exp'] - time.time():.3f}\\n")
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    rules = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text(RULES)
    return {
        "settings": {
            "master": {"daemon_list": list(SERVICES)},
            "iam": {"issuers": {ISSUER: [POOL]}},
            "gateway": {"rest": True, "issuers": {ISSUER: [POOL]}},
            "authorization": {"domain": "pool", "rules": str(rules)},
            "startd": {"job_account": "own"},
        }
    }


@pytest_asyncio.fixture(loop_scope="session")
async def issuer() -> AsyncIterator[TokenIssuer]:
    listener = socket.create_server(("127.0.0.1", PORT))
    async with token_issuer(ISSUER, listener, key=signing_key()) as made:
        made.expires_in, made.person = LIFE_S, "grace"
        yield made


@asynccontextmanager
async def hub(programs: HubPrograms, pool: ThrowawayPool, work: Path) -> AsyncGenerator[str]:
    """A hub whose people come by the issuer; its address."""
    url = f"http://127.0.0.1:{held_port()}"
    (work / "watches.py").write_text(WATCHES)
    single = Path(programs.python).parent / "jupyterhub-singleuser"
    text = CONFIG.format(
        url=url,
        hub=held_port(),
        api=held_port(),
        proxy=programs.proxy,
        issuer=ISSUER,
        pool=POOL,
        gateway=f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}",
        command=f'{programs.python} {work}/watches.py {work}/seen & exec {single} "$@"',
    )
    (work / "jupyterhub_config.py").write_text(text)
    environ = {**os.environ, "JUPYTERHUB_CRYPT_KEY": secrets.token_hex(32), "HOME": str(work)}
    with (work / "hub.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            programs.python,
            "-m",
            "jupyterhub",
            cwd=work,
            env=environ,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
                while True:
                    assert process.returncode is None, (work / "hub.log").read_text()
                    try:
                        async with session.get(f"{url}/hub/login") as answer:
                            if answer.status == 200:
                                break
                    except aiohttp.ClientError:
                        pass
                    await asyncio.sleep(0.1)
            yield url
        except BaseException:
            sys.stderr.write((work / "hub.log").read_text())
            raise
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGTERM)
                await process.wait()


def files(place: Path) -> Iterator[tuple[str, bytes]]:
    """
    All that the pool has written, without the sandbox and the input files of jobs, which are for their owners alone.
    """
    for path in place.rglob("*"):
        name = str(path.relative_to(place))
        if name.startswith(("execute/", "state/spool")) or path.is_symlink() or not path.is_file():
            continue
        yield name, path.read_bytes()


def environment_of_server() -> dict[str, str]:
    """What the server that runs on this machine has in its environment."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if b"jupyterhub-singleuser" in (each / "cmdline").read_bytes():
                found = (each / "environ").read_bytes().split(b"\0")
                variables = dict(word.decode().split("=", 1) for word in found if b"=" in word)
                if variables.get("JUPYTERHUB_USER") == "grace":
                    return variables
        except OSError:
            continue
    raise AssertionError("no server runs")


async def test_the_hub_is_there(hub_programs: HubPrograms) -> None:
    """What takes minutes to install has a test, and time, of its own."""
    assert Path(hub_programs.proxy).exists()


async def test_from_the_login_to_a_server_with_the_token_of_the_login(
    seeing: Browser, pool: ThrowawayPool, issuer: TokenIssuer, hub_programs: HubPrograms, tmp_path: Path
) -> None:
    """
    Somebody signs in, chooses a profile and gets a server, which is her job.  What her login gives is in it, good at every moment of three
    lives of a token; nothing of it, and no token of the hub, is in the ad, the events, or any file of the pool that is not hers.
    """
    signed: list[str] = []
    sign = issuer.signed

    def remembered(claims: Any) -> str:
        signed.append(sign(claims))
        return signed[-1]

    issuer.signed = remembered  # type: ignore[method-assign]
    async with hub(hub_programs, pool, tmp_path) as url:
        context = await seeing.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        context.set_default_timeout(120_000)
        page = await context.new_page()
        await page.goto(f"{url}/hub/spawn")
        await page.get_by_role("button", name="Sign in with the laboratory").click()
        await page.get_by_label("Notebook").wait_for()
        assert await page.get_by_label("Notebook").is_checked()
        await page.get_by_label("Large").check()
        if directory := os.environ.get("KETTLE_TEST_PICTURES"):
            await page.screenshot(path=Path(directory) / "hub-profiles.png")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url(f"{url}/user/grace/tree*")
        await page.locator(".jp-DirListing").first.wait_for()
        (ad,) = (await pool.client.queue()).jobs
        assert ("grace", 300, 2) == (ad["Owner"], ad["RequestMemory"], ad["JobStatus"])
        environ = environment_of_server()
        begun = asyncio.get_running_loop().time()
        seen = tmp_path / "seen"
        async with asyncio.timeout(LIFE_S * LIVES + PATIENCE_S):
            while asyncio.get_running_loop().time() - begun < LIFE_S * LIVES + 2:
                await asyncio.sleep(1)
        lines = [line.split() for line in seen.read_text().splitlines()]
        assert {"grace"} == {owner for owner, _, _ in lines}
        assert min(float(left) for _, _, left in lines) > 0
        assert len({token for _, token, _ in lines}) > LIVES
        assert len(lines) > LIFE_S * LIVES * 5
        job = JobId(int(str(ad["ClusterId"])), 0)
        told = str(ad) + str(await pool.client.events(job))
        texts = dict(files(pool.home))
        made = [token.rpartition(".")[2] for token in signed] + [environ["JUPYTERHUB_API_TOKEN"]]
        assert len(made) > LIVES
        for secret in made:
            assert secret not in told
            assert [] == [name for name, data in texts.items() if secret.encode() in data]
        await page.goto(f"{url}/hub/home")
        await page.locator("#stop").click()
        async with asyncio.timeout(PATIENCE_S):
            while (await pool.client.queue(select(job))).jobs:
                await asyncio.sleep(0.1)
        await context.close()
