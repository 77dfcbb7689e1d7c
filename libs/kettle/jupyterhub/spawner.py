"""
`KettleSpawner`: the server of a person is a job of that person, anywhere in the pool.

    c.JupyterHub.spawner_class = "kettle"
    c.KettleSpawner.gateway = "https://pool.example.org"

This is what JupyterHub knows of it: settings, and its questions passed on to `kettle.jupyterhub.lifecycle`.
"""
# JupyterHub is installed where hubs run; its types are not known here.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false, reportUntypedFunctionDecorator=false

import asyncio
import socket
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import msgspec
from jupyterhub.spawner import Spawner
from sqlalchemy.orm import object_session
from tornado.web import HTTPError
from traitlets import Dict, Enum, List, TraitError, Unicode, default, validate

from kettle.client.connections.pool_file import home_directory
from kettle.jupyterhub.errors import GatewayRefusedError, GatewayUnreachableError, HubError
from kettle.jupyterhub.gateway_access import PoolGateway
from kettle.jupyterhub.lifecycle import ServerOfPerson
from kettle.jupyterhub.login_credential import LoginCredential
from kettle.jupyterhub.login_renewal import renew
from kettle.jupyterhub.options import chosen, form_of, from_form
from kettle.jupyterhub.person_tokens import CommandToken, LoginToken, OwnAccountToken, TokenSource
from kettle.jupyterhub.server_connections import ForwardedConnections
from kettle.jupyterhub.server_jobs import JobServers, ServerProfile
from kettle.jupyterhub.server_orders import ServerOrder, mark_of

_SECRET: Final = frozenset({"JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN"})
"""Variables of the environment that are recorded nowhere."""


class KettleSpawner(Spawner):
    """Servers as jobs of a pool."""

    _renewing: ClassVar[WeakKeyDictionary[Any, asyncio.Lock]] = WeakKeyDictionary()
    """By person; several servers of one renew the same login."""

    gateway = Unicode(
        "",
        help="The address of the pool's gateway, as https://pool.example.org; empty: that of the personal pool of `home`.",
    ).tag(config=True)
    gateway_ca = Unicode(
        "", help="Path of the certificate of the authority of the gateway; empty: those of this machine."
    ).tag(config=True)
    home = Unicode(
        help="The directory of the personal pool that is used where no gateway is named; KETTLE_HOME, else ~/.kettle."
    ).tag(config=True)
    hub_name = Unicode(
        help="By which the pool tells this hub from others whose people are the same; the machine's name and the hub's port."
    ).tag(config=True)
    token_from = Enum(
        ["", "login", "command", "own"],
        "",
        help="Where the token comes from that shows the pool in whose name the hub asks: the person's login, `token_command`, or the "
        "account that the hub runs as; empty: the command if there is one, the own account without `gateway`, else the login.",
    ).tag(config=True)
    token_name = Unicode("access_token", help="What the token is called in the `auth_state` of a login.").tag(
        config=True
    )
    token_command = List(
        Unicode(),
        help="A command that prints a token of the person; {username} in it is the name at the hub.",
    ).tag(config=True)
    login_credential = Unicode(
        "",
        help="The name under which servers have the token of the person's login, renewed while they run, in the file that "
        "BEARER_TOKEN_FILE names; empty: they have none.",
    ).tag(config=True)
    job_tokens = List(
        Unicode(),
        help="Services whose tokens servers have besides; `kettle` is the pool itself, whose token submits jobs in the person's name.",
    ).tag(config=True)
    profiles = List(
        Dict(),
        [{"name": "notebook", "title": "Notebook"}],
        help="What people may choose: name, title, about, cpus, memory and disk (MiB), gpus, image, requirements, attributes.",
    ).tag(config=True)

    @default("home")
    def _home_of_account(self) -> str:
        return str(home_directory())

    @default("hub_name")
    def _machine_and_port(self) -> str:
        return f"{socket.gethostname()}:{urlsplit(self.hub.url).port or 0}"

    @default("options_from_form")
    def _fields_of_form(self) -> Any:
        return from_form

    @default("apply_user_options")
    def _applied_by_start(self) -> Any:
        def none(_spawner: Any, _options: Any) -> None:
            """Nothing: `start` reads them."""

        return none

    @validate("profiles")
    def _readable(self, proposal: Any) -> Any:
        try:
            names = [each.name for each in msgspec.convert(proposal["value"], list[ServerProfile])]
        except msgspec.ValidationError as error:
            raise TraitError(f"c.KettleSpawner.profiles: {error}") from error
        if not names or len(set(names)) < len(names):
            raise TraitError("c.KettleSpawner.profiles: there has to be one, and each name once")
        return proposal["value"]

    def __init__(self, **said: Any) -> None:
        super().__init__(**said)
        self._state_id = ""
        self._made: ServerOfPerson | None = None
        self._kept: LoginCredential | None = None
        self._source: TokenSource | None = None

    def get_state(self) -> dict[str, Any]:
        """What the hub's database keeps of the server."""
        id_ = self._made.id if self._made is not None else self._state_id
        return {**super().get_state(), **({"id": id_} if id_ else {})}

    def load_state(self, state: dict[str, Any]) -> None:
        """See `get_state`."""
        super().load_state(state)
        self._state_id, self._made = state.get("id", ""), None

    def clear_state(self) -> None:
        """There is no server."""
        super().clear_state()
        self._state_id, self._made = "", None

    async def get_options_form(self) -> str:
        """The profiles, unless the site has a form of its own."""
        return str(await super().get_options_form()) if self.options_form else form_of(self._profiles())

    async def start(self) -> str:
        """The address of the server for the hub's proxy."""
        try:
            server, credential = self._pool_server(), self._credential()
            if credential is not None:
                await credential.store()
                credential.keep()
            return await server.start(self._order(), self._remember)
        except HubError as error:
            status = error.status if isinstance(error, GatewayRefusedError) else 503
            raise _ShownError(status, str(error)) from error

    async def poll(self) -> int | None:
        """Nothing while it runs, or as long as nobody knows; else how it has ended."""
        status = await self._pool_server().poll()
        if (credential := self._credential()) is not None:
            if status is None:
                credential.keep()
            else:
                await self._end_credential(credential)
        return status

    async def get_url(self) -> str:
        """The address of a server that runs, after the hub has started again."""
        return await self._pool_server().address()

    async def stop(self, now: bool = False) -> None:  # noqa: FBT001, FBT002 - JupyterHub's
        """Have the server end."""
        del now  # how a job ends is the pool's to say
        await self._pool_server().stop()
        if (credential := self._credential()) is not None:
            await self._end_credential(credential)

    async def progress(self) -> AsyncGenerator[dict[str, Any]]:
        """Lines about how far the start is, and why it is not farther."""
        lines = self._pool_server().board.lines()
        async with aclosing(lines):
            async for line in lines:
                yield line

    def _pool_server(self) -> ServerOfPerson:
        if self._made is None:
            gateway, token = PoolGateway(self._address(), self.gateway_ca), self._token()
            self._made = ServerOfPerson(
                JobServers(gateway, self._profiles()),
                token,
                ForwardedConnections(gateway, token),
                id_=self._state_id,
            )
        return self._made

    def _credential(self) -> LoginCredential | None:
        if self.login_credential and self._kept is None:
            gateway = PoolGateway(self._address(), self.gateway_ca)
            self._kept = LoginCredential(
                gateway, self._token(), service=self.login_credential, hub=self.hub_name
            )
        return self._kept

    async def _end_credential(self, credential: LoginCredential) -> None:
        others = any(each.active for each in self.user.spawners.values() if each is not self)
        try:
            await credential.end(remove=not others)
        except HubError as error:
            self.log.warning("%s: the credential stays in the pool: %s", self._log_name, error)

    def _remember(self, _id: str) -> None:
        """A hub that ends while the server starts knows of it when it is back."""
        self.orm_spawner.state = self.get_state()
        object_session(self.orm_spawner).commit()

    def _order(self) -> ServerOrder:
        options, environment = chosen(self.user_options), self.get_env()
        return ServerOrder(
            mark=mark_of(self.hub_name, self.user.name, self.name),
            profile=options.profile or self._profiles()[0].name,
            size=options.size,
            image=options.image,
            command=[*self.cmd, *self.get_args()],
            environment={name: value for name, value in environment.items() if name not in _SECRET},
            secrets={name: value for name, value in environment.items() if name in _SECRET},
            tokens=[*self.job_tokens, *([credential.needed] if (credential := self._credential()) else [])],
            key=uuid.uuid4().hex,
        )

    def _profiles(self) -> list[ServerProfile]:
        return msgspec.convert(self.profiles, list[ServerProfile])

    def _address(self) -> str:
        if self.gateway:
            return str(self.gateway)
        try:
            port = Path(self.home, "gateway", "port").read_text().strip()
        except OSError as error:
            raise GatewayUnreachableError(
                f"c.KettleSpawner.gateway is not set, and {self.home} has no pool whose gateway runs"
            ) from error
        return f"http://127.0.0.1:{port}"

    def _token(self) -> TokenSource:
        if self._source is None:
            self._source = self._chosen_source()
        return self._source

    def _chosen_source(self) -> TokenSource:
        match self.token_from or ("command" if self.token_command else "login" if self.gateway else "own"):
            case "command":
                return CommandToken(self.token_command, user=self.user.name)
            case "own":
                return OwnAccountToken(Path(self.home), user=self.user.name)
            case _:
                return LoginToken(
                    self.user.get_auth_state,
                    partial(renew, self.user.authenticator, self.user),
                    user=self.user.name,
                    name=self.token_name,
                    renewing=self._renewing.setdefault(self.user, asyncio.Lock()),
                )


class _ShownError(HTTPError):
    """What JupyterHub shows of an error on its page; it logs no traceback of it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence.replace("%", "%%"))
        self.jupyterhub_message: Final = sentence
