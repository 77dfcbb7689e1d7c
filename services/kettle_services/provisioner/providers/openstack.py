"""OpenStack: a machine is a server of Nova, found again by its metadata."""

from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import quote

import msgspec

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.provisioner.domain import openstack_answers as answers
from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import machine_script
from kettle_services.provisioner.providers.keystone import OpenStackAccount, Project, words_of
from kettle_services.provisioner.providers.settings import options_of
from kettle_services.provisioner.providers.web import NoAnswerError, Said
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

_T = TypeVar("_T")
_PAGE: Final = 200
_LINES: Final = 200


class OpenStackSettings(OpenStackAccount, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One region of one project."""

    OPTIONS: ClassVar[type[msgspec.Struct]] = answers.OpenStackOptions

    power_off: str = "shutdown -P"
    """The command with which servers switch themselves off; it takes `now`, or `+` and minutes."""

    async def open(self, deployment: str) -> "OpenStack":
        """The provider."""
        if not self.application_credential and not (self.user and self.project):
            raise ProviderError(ErrorClass.CONFIG, "say user and project, or application_credential")
        return OpenStack(self, deployment)


class _Servers(msgspec.Struct, frozen=True):
    servers: list[dict[str, Any]]


class _Server(msgspec.Struct, frozen=True):
    server: dict[str, Any]


class _Flavours(msgspec.Struct, frozen=True):
    flavors: list[answers.Flavour]


class _Limits(msgspec.Struct, frozen=True):
    limits: dict[str, Any]


class _Output(msgspec.Struct, frozen=True):
    output: str


class OpenStack:
    """Servers of one deployment."""

    visibility = 10.0

    def __init__(self, settings: OpenStackSettings, deployment: str) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._project: Final = Project(settings)
        self._flavours: dict[str, answers.Flavour] = {}
        """By name and by id; a flavour does not change, and new ones are looked for when one is not known."""

    async def check(self, offer: Offer) -> list[str]:
        """What its flavour lacks, and whether there is its image: Nova has no dry run."""
        try:
            options_of(offer, answers.OpenStackOptions)
            flavour = await self._flavour(offer)
        except ProviderError as error:
            if error.error is ErrorClass.REQUEST:
                return [str(error)]
            raise
        sentences = list(answers.shortcomings(offer, flavour))
        said = await self._question("GET", f"/images/{quote(offer.template, safe='')}")
        if said.status == HTTPStatus.NOT_FOUND:
            sentences.append(f"offer {offer.name}: there is no image {offer.template}")
        else:
            _good(said)
        return sentences

    async def _flavour(self, offer: Offer) -> answers.Flavour:
        if offer.flavour not in self._flavours:
            said = _read(_good(await self._question("GET", "/flavors/detail")), _Flavours)
            self._flavours = {each.id: each for each in said.flavors} | {
                each.name: each for each in said.flavors
            }
        if offer.flavour not in self._flavours:
            near = did_you_mean(offer.flavour, self._flavours)
            raise ProviderError(
                ErrorClass.REQUEST, f"offer {offer.name}: there is no flavour {offer.flavour}{near}"
            )
        return self._flavours[offer.flavour]

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Ask for one server.  Nova does not know a request that comes twice, so it is never sent again."""
        options = options_of(order.offer, answers.OpenStackOptions)
        script = machine_script(
            bootstrap, self._settings.program, self._settings.before, self._settings.power_off
        )
        try:
            flavour = await self._flavour(order.offer)
            asked = answers.server(
                order.offer,
                options,
                flavour.id,
                deployment=self._deployment,
                lease=order.lease,
                script=script,
            )
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from None
        try:
            said = await self._project.ask("POST", "/servers", asked)
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from None
        except NoAnswerError as error:
            raise InDoubtError(str(error)) from None
        if said.status == HTTPStatus.ACCEPTED:
            return _made(said)
        words = cleaned(f"{said.status}: {words_of(said)}", [bootstrap.token])
        known = answers.error_of(said.status, words)
        if known is None:
            raise InDoubtError(words)
        raise ProviderError(known, words, retry_after=web_answers.seconds_of(said.retry_after))

    async def find(self) -> Found:
        """All servers of the project that have our mark, page by page; where a page fails it is not complete."""
        machines: list[MachineFound] = []
        path, marker = f"/servers/detail?limit={_PAGE}", ""
        while True:
            try:
                page = _read(_good(await self._question("GET", path + marker)), _Servers).servers
            except UnavailableError:
                if not marker:
                    raise
                return Found(machines=machines, complete=False)
            found = map(answers.machine, page)
            machines += [
                each
                for each in found
                if each.deployment == self._deployment and each.state is not MachineState.GONE
            ]
            if not page:
                return Found(machines=machines, complete=True)
            marker = f"&marker={quote(str(page[-1].get('id')), safe='')}"

    async def get(self, handle: Handle) -> MachineFound:
        """One server: gone if there is none of this id, or if it is deleted."""
        said = await self._question("GET", f"/servers/{quote(handle, safe='')}")
        if said.status != HTTPStatus.NOT_FOUND:
            found = answers.machine(_read(_good(said), _Server).server)
            if found.deployment == self._deployment:
                return found
        return MachineFound(handle=handle, state=MachineState.GONE)

    async def delete(self, handle: Handle) -> None:
        """Delete a server, if it is ours."""
        if (await self.get(handle)).state is MachineState.GONE:
            return
        said = await self._question("DELETE", f"/servers/{quote(handle, safe='')}")
        if said.status != HTTPStatus.NOT_FOUND:
            _good(said)

    async def room(self) -> Room:
        """What the quotas of the project leave."""
        absolute = _read(_good(await self._question("GET", "/limits")), _Limits).limits.get("absolute", {})
        return Room(
            machines=answers.left(absolute, "maxTotalInstances", "totalInstancesUsed"),
            cpus=answers.left(absolute, "maxTotalCores", "totalCoresUsed"),
            memory=answers.left(absolute, "maxTotalRAMSize", "totalRAMUsed"),
        )

    async def console(self, handle: Handle) -> str:
        """The last lines of its console."""
        asked = {"os-getConsoleOutput": {"length": _LINES}}
        said = await self._question("POST", f"/servers/{quote(handle, safe='')}/action", asked)
        if said.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:  # it has none yet
            return ""
        return _read(_good(said), _Output).output

    async def close(self) -> None:
        """Give up connections."""
        await self._project.close()

    async def _question(self, method: str, path: str, body: Any = None) -> Said:
        try:
            return await self._project.ask(method, path, body)
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None


def _made(said: Said) -> Handle:
    try:
        return str(_read(said, _Server).server["id"])
    except (UnavailableError, KeyError) as error:
        raise InDoubtError(f"an answer that cannot be read: {error}") from None


def _good(said: Said) -> Said:
    if said.status < HTTPStatus.BAD_REQUEST:
        return said
    words = cleaned(f"{said.status}: {words_of(said)}")
    match answers.error_of(said.status, words):
        case None | ErrorClass.TRANSIENT:
            raise UnavailableError(words)
        case error:
            raise ProviderError(error, words, retry_after=web_answers.seconds_of(said.retry_after))


def _read(said: Said, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(said.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnavailableError(f"an answer that cannot be read: {error}") from None
