"""
A JupyterHub of a site for tests of pages: its people sign in at an issuer, and their servers are jobs of theirs, with the token of the login.
"""

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer
from tests.scenario.hub_programs import HubPrograms

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool

POOL: Final = "https://pool.example.org"
"""For whom the tokens of logins are."""
PERSON: Final = "grace"
SERVICES: Final = ("collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "gateway")
RULES: Final = """
[[rules]]
when.issuer = "{issuer}"
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
    {{"name": "analysis", "title": "Analysis", "memory": 1500}},
]
c.Spawner.cmd = {command!r}
c.Spawner.args = ["--allow-root"]
c.Spawner.default_url = {page!r}
c.Spawner.environment = {environment!r}
c.Spawner.env_keep = ["PATH", "LANG"]
"""


class IssuerHere:
    """The issuer of a module's people, whose address its pool knows before it is there."""

    def __init__(self) -> None:
        self.port: Final = held_port()
        self.url: Final = f"http://127.0.0.1:{self.port}"
        # One for all tests of the module: of an issuer whose keys it knows, a pool asks for others after a while only.
        self._key: Final = signing_key()

    def settings(self, directory: Path, services: tuple[str, ...] = SERVICES) -> dict[str, dict[str, Any]]:
        """Of a pool that lets its people in; `directory`: where the rules are put."""
        rules = directory / "rules.toml"
        rules.write_text(RULES.format(issuer=self.url))
        return {
            "master": {"daemon_list": list(services)},
            "iam": {"issuers": {self.url: [POOL]}},
            "gateway": {"rest": True, "issuers": {self.url: [POOL]}},
            "authorization": {"domain": "pool", "rules": str(rules)},
            "startd": {"job_account": "own"},
        }

    @asynccontextmanager
    async def serving(self, *, life_s: int) -> AsyncGenerator[TokenIssuer]:
        """It gives tokens of so many seconds to one person."""
        listener = socket.create_server(("127.0.0.1", self.port))
        async with token_issuer(self.url, listener, key=self._key) as made:
            made.expires_in, made.person = life_s, PERSON
            yield made


@asynccontextmanager
async def running_hub(
    programs: HubPrograms,
    pool: ThrowawayPool,
    issuer: TokenIssuer,
    work: Path,
    *,
    page: str,
    command: list[str] | None = None,
    environment: dict[str, str] | None = None,
) -> AsyncGenerator[str]:
    """
    A hub whose people come by the issuer; its address.  `page`: what they see of their server first; `command`: that of servers, empty: the usual
    one; `environment`: of servers.
    """
    url = f"http://127.0.0.1:{held_port()}"
    single = str(Path(programs.python).parent / "jupyterhub-singleuser")
    text = CONFIG.format(
        url=url,
        hub=held_port(),
        api=held_port(),
        proxy=programs.proxy,
        issuer=issuer.url,
        pool=POOL,
        gateway=f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}",
        command=command or [single],
        page=page,
        environment=environment or {},
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
