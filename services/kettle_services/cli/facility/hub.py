"""
The JupyterHub of a demonstration: its people sign in at an issuer, and their servers are jobs of the pool, with the token of the login.
"""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from kettle.auth.private_files import write_private
from kettle.embedded.ports import free_ports
from kettle.embedded.server_account import Account
from kettle.embedded.server_process import ServerProcess, Stop
from kettle_services.cli.errors import CommandError
from kettle_services.cli.facility.parts import PROXY

_STOP: Final = Stop(((signal.SIGTERM, 20.0),))
_WITHIN_S: Final = 120.0
_LOOK_S: Final = 0.1
_CONFIG: Final = """\
c = get_config()  # noqa
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.authenticator_class = "generic-oauth"
c.Authenticator.enable_auth_state = True
c.Authenticator.auth_refresh_age = 0
c.Authenticator.allow_all = True
c.GenericOAuthenticator.login_service = "the issuer of this demonstration"
c.GenericOAuthenticator.client_id = "hub"
c.GenericOAuthenticator.client_secret = {secret!r}
c.GenericOAuthenticator.authorize_url = "{issuer}/authorize"
c.GenericOAuthenticator.token_url = "{issuer}/token"
c.GenericOAuthenticator.userdata_from_id_token = True
c.GenericOAuthenticator.username_claim = "sub"
c.GenericOAuthenticator.scope = ["openid", "offline_access"]
c.GenericOAuthenticator.extra_authorize_params = {{"resource": {audience!r}}}
c.GenericOAuthenticator.oauth_callback_url = "{url}/hub/oauth_callback"
c.JupyterHub.services = [{{"name": "demo", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{"name": "demo", "services": ["demo"], "scopes": ["admin:servers", "tokens", "read:users", "access:servers"]}}
]
c.JupyterHub.spawner_class = "kettle"
c.KettleSpawner.gateway = {gateway!r}
c.KettleSpawner.login_credential = "lab"
c.KettleSpawner.profiles = [{{"name": "notebook", "title": "Notebook", "memory": 1024}}]
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = {args!r}
c.Spawner.environment = {environment!r}
c.Spawner.env_keep = ["PATH", "LANG", "PYTHONPATH"]
c.Spawner.start_timeout = c.Spawner.http_timeout = {within}
"""


class HubWishes(msgspec.Struct, frozen=True, kw_only=True):
    """What a hub has to know of the facility."""

    port: int
    """Where its servers reach it."""
    issuer: str
    audience: str
    """For whom tokens of logins have to be: the pool."""
    gateway: str
    environment: dict[str, str]
    """Of servers."""


class DemonstrationHub:
    """A hub that runs, as who signs in and uses it sees it."""

    def __init__(self, url: str, token: str, process: ServerProcess, log: Path) -> None:
        self.url: Final = url
        self._token: Final = token
        self._process: Final = process
        self._log: Final = log

    async def sign_in(self) -> None:
        """As a browser does it, from the hub to the issuer and back; raises CommandError."""
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
            session.get(f"{self.url}/hub/oauth_login", params={"next": "/hub/home"}) as answer,
        ):
            if answer.status != 200 or not str(answer.url).endswith("/hub/home"):
                raise self.failure(f"nobody can sign in: {answer.url} answers {answer.status}")

    async def start_server(self, person: str) -> str:
        """Have the hub start the server of a person; its address when it is ready.  Raises CommandError."""
        status, said = await self._ask("POST", f"users/{person}/server")
        if status not in {201, 202}:
            raise self.failure(f"the server does not start: {said.get('message', status)}")
        until = time.monotonic() + _WITHIN_S
        while time.monotonic() < until:
            _, user = await self._ask("GET", f"users/{person}")
            server = user["servers"].get("")
            if server is None:
                raise self.failure("the hub has given up on the server")
            if server["ready"]:
                return self.url + str(server["url"])
            await asyncio.sleep(_LOOK_S)
        raise self.failure(f"the server is not ready after {_WITHIN_S:.0f} s")

    async def token_for(self, person: str) -> str:
        """With which the server of a person is used."""
        _, made = await self._ask("POST", f"users/{person}/tokens", {"note": "demo", "expires_in": 3600})
        return str(made["token"])

    async def stop_server(self, person: str) -> None:
        """Have it stopped; its job is removed meanwhile."""
        await self._ask("DELETE", f"users/{person}/server")

    def failure(self, sentence: str) -> CommandError:
        """What is raised when something does not work, with the last words of the hub."""
        tail = self._log.read_text(errors="replace")[-2000:]
        return CommandError(f"{sentence}\nJupyterHub's last words:\n{tail}")

    async def answers(self) -> None:
        """Wait until it does; raises CommandError."""
        until = time.monotonic() + _WITHIN_S
        while self._process.running and time.monotonic() < until:
            try:
                status, _ = await self._ask("GET", "")
            except aiohttp.ClientError:
                status = 0
            if status == 200:
                return
            await asyncio.sleep(_LOOK_S)
        raise self.failure("JupyterHub does not start")

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"token {self._token}"}
        limit = aiohttp.ClientTimeout(total=_WITHIN_S)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=limit) as session,
            session.request(method, f"{self.url}/hub/api/{path}", json=body) as answer,
        ):
            text = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, msgspec.json.decode(text, type=dict[str, Any]) if text and is_json else {}


@asynccontextmanager
async def running_hub(place: Path, wishes: HubWishes) -> AsyncGenerator[DemonstrationHub]:
    """
    A hub as long as the context lasts; `place`: the directory of its files.

    Raises CommandError: it does not start.
    """
    place.mkdir(0o700)
    port, api = free_ports(2)
    url, token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
    write_private(
        place / "jupyterhub_config.py",
        _CONFIG.format(
            url=url,
            hub=wishes.port,
            api=api,
            proxy=PROXY,
            secret=secrets.token_hex(16),
            issuer=wishes.issuer,
            audience=wishes.audience,
            token=token,
            gateway=wishes.gateway,
            python=sys.executable,
            args=["--allow-root"] if os.geteuid() == 0 else [],
            environment=wishes.environment,
            within=int(_WITHIN_S),
        ),
    )
    log = place / "hub.log"
    process = await ServerProcess.spawn(
        [sys.executable, "-m", "jupyterhub"],
        account=Account(os.geteuid(), os.getegid(), changed=False),
        stop=_STOP,
        environ={**os.environ, "JUPYTERHUB_CRYPT_KEY": secrets.token_hex(32), "HOME": str(place)},
        cwd=place,
        log=log,
    )
    hub = DemonstrationHub(url, token, process, log)
    try:
        await hub.answers()
        yield hub
    finally:
        await process.stop()
