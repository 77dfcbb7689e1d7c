"""Infrastructure Manager: a machine is an infrastructure of one virtual machine, on whatever cloud it finds."""

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import msgspec

from kettle_services.provisioner.domain import im_documents as documents
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import machine_script
from kettle_services.provisioner.providers.settings import ProviderSettings, options_of, secret_in
from kettle_services.provisioner.providers.web import NoAnswerError, Said, Web
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

_T = TypeVar("_T")
_AGAIN_S: Final = 1.0
_CONSOLE: Final = 16_384


class ImSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One account of an Infrastructure Manager."""

    OPTIONS: ClassVar[type[msgspec.Struct]] = documents.ImOptions

    url: str
    """Of its REST interface."""
    user: str
    password_file: str
    clouds_file: str
    """Credentials of clouds, one a line, as its clients have them: `id = one; type = OpenStack; …`."""
    witness_file: str
    """
    A file that the provisioner writes: the name of an empty infrastructure of ours, by which an answer to a wrong password is told
    from one that has nothing to list.
    """
    ca_file: str = ""
    power_off: str = "shutdown -P"
    """The command with which machines switch themselves off; it takes `now`, or `+` and minutes."""

    async def open(self, deployment: str) -> "Im":
        """The provider."""
        secret_in(self.password_file, "password_file")
        secret_in(self.clouds_file, "clouds_file")
        return Im(self, deployment, Web(self.url, ca_file=self.ca_file, patience=self.patience))


class _Radl(msgspec.Struct, frozen=True):
    radl: str


class _State(msgspec.Struct, frozen=True):
    state: documents.StateSaid


class _Message(msgspec.Struct, frozen=True):
    contmsg: str


class Im:
    """Infrastructures of one deployment."""

    def __init__(self, settings: ImSettings, deployment: str, web: Web) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._web: Final = web
        self._owners: Final[dict[str, tuple[str, str] | None]] = {}
        """Of infrastructures whose RADL was read: it does not change."""
        self._making_witness: Final = asyncio.Lock()

    def _headers(self) -> dict[str, str]:
        settings = self._settings
        password = secret_in(settings.password_file, "password_file")
        clouds = secret_in(settings.clouds_file, "clouds_file")
        said = documents.authorization(settings.user, password, clouds)
        return {"Authorization": said, "Accept": "application/json", "Content-Type": "text/plain"}

    async def check(self, offer: Offer) -> list[str]:
        """What a dry run says."""
        try:
            asked = self._radl(offer, "check", "exit 0\n")
        except ProviderError as error:
            return [str(error)]
        await self._known()
        said = await self._question("POST", "/infrastructures?dry_run=true", asked)
        if said.status == HTTPStatus.BAD_REQUEST:
            return [f"offer {offer.name}: {self._words(said)}"]
        self._good(said)
        return []

    def _radl(self, offer: Offer, lease: str, script: str) -> str:
        if not offer.template:
            raise ProviderError(
                ErrorClass.IMAGE, f"offer {offer.name}: its template has to be the URL of an image"
            )
        options = options_of(offer, documents.ImOptions)
        try:
            return documents.radl(offer, options, deployment=self._deployment, lease=lease, script=script)
        except ValueError as error:
            raise ProviderError(ErrorClass.REQUEST, f"offer {offer.name}: {error}") from None

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Ask for one infrastructure.  Two requests would make two, so it is never sent again."""
        settings = self._settings
        script = machine_script(bootstrap, settings.program, settings.before, settings.power_off)
        asked = self._radl(order.offer, order.lease, script)
        try:
            await self._known()
            said = await self._web.ask(
                "POST", "/infrastructures?async=true", headers=self._headers(), body=asked.encode()
            )
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from None
        except NoAnswerError as error:
            raise InDoubtError(str(error)) from None
        if said.status == HTTPStatus.OK:
            return _made(said)
        words = self._words(said, bootstrap.token)
        known = documents.error_of(said.status)
        if known is None:
            raise InDoubtError(words)
        raise ProviderError(known, words)

    async def find(self) -> Found:
        """All infrastructures with our mark.  The list is believed if our witness is in it."""
        listed = await self._listed()
        found = await asyncio.gather(*(self._seen(number) for number in listed))
        machines = [each for each in found if each is not None and each.deployment == self._deployment]
        return Found(machines=machines, complete=True)

    async def _listed(self) -> list[str]:
        witness = await self._known()
        said = _read(self._good(await self._question("GET", "/infrastructures")), documents.Uris)
        listed = [each.number for each in said.uris]
        if witness not in listed:
            raise UnavailableError("the list of infrastructures lacks one that is there")
        return [each for each in listed if each != witness]

    async def _known(self) -> str:
        """
        Our witness, which is there.

        Raises:
            ProviderError: it is somebody else's: our password is not the one with which it was made.
        """
        async with self._making_witness:
            path = Path(self._settings.witness_file)
            if path.is_file() and (number := path.read_text().strip()):
                said = await self._question("GET", f"/infrastructures/{number}/radl")
                if said.status != HTTPStatus.NOT_FOUND:
                    self._good(said)
                    return number
            said = self._good(await self._question("POST", "/infrastructures", documents.WITNESS))
            number = _read(said, documents.Uri).number
            path.write_text(f"{number}\n")
            return number

    async def _seen(self, number: str) -> MachineFound | None:
        """An infrastructure; None: there is none of this name, or it is none of Kettle's."""
        ours = await self._owner(number)
        if ours is None:
            return None
        said = await self._question("GET", f"/infrastructures/{number}/state")
        if said.status == HTTPStatus.NOT_FOUND:
            return None
        state = _read(self._good(said), _State).state
        return documents.machine(
            number, ours, state, await self.console(number) if state.state == "failed" else ""
        )

    async def _owner(self, number: str) -> tuple[str, str] | None:
        if number not in self._owners:
            said = await self._question("GET", f"/infrastructures/{number}/radl")
            if said.status == HTTPStatus.NOT_FOUND:
                return None
            self._owners[number] = documents.owner(_read(self._good(said), _Radl).radl)
        return self._owners[number]

    async def get(self, handle: Handle) -> MachineFound:
        """One infrastructure: gone if there is none of this name, while our witness is there."""
        found = await self._seen(handle)
        if found is not None and found.deployment == self._deployment:
            return found
        await self._known()
        return MachineFound(handle=handle, state=MachineState.GONE)

    async def delete(self, handle: Handle) -> None:
        """Delete an infrastructure, if it is ours; it is asked again while its machine is still being added."""
        if (await self.get(handle)).state is MachineState.GONE:
            return
        try:
            async with asyncio.timeout(self._settings.patience):
                while True:
                    said = await self._question("DELETE", f"/infrastructures/{handle}?async=true")
                    if said.status != HTTPStatus.CONFLICT:
                        break
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise UnavailableError(
                f"infrastructure {handle} is still being made, and cannot be deleted yet"
            ) from None
        if said.status != HTTPStatus.NOT_FOUND:
            self._good(said)

    async def room(self) -> Room:
        """It is not said."""
        return Room()

    async def console(self, handle: Handle) -> str:
        """What the Infrastructure Manager says of its contextualisation."""
        said = await self._question("GET", f"/infrastructures/{handle}/contmsg")
        if said.status == HTTPStatus.NOT_FOUND:
            return ""
        return _read(self._good(said), _Message).contmsg[-_CONSOLE:]

    async def close(self) -> None:
        """Give up connections."""
        await self._web.close()

    async def _question(self, method: str, path: str, body: str | None = None) -> Said:
        encoded = None if body is None else body.encode()
        return await self._web.question(method, path, headers=self._headers(), body=encoded)

    def _good(self, said: Said) -> Said:
        if said.status < HTTPStatus.BAD_REQUEST:
            return said
        match documents.error_of(said.status):
            case None | ErrorClass.TRANSIENT:
                raise UnavailableError(self._words(said))
            case error:
                raise ProviderError(error, self._words(said))

    def _words(self, said: Said, secret: str = "") -> str:
        try:
            text = documents.message(msgspec.json.decode(said.body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = said.text
        password = secret_in(self._settings.password_file, "password_file")
        return cleaned(f"{said.status}: {text}", [secret, password])


def _made(said: Said) -> Handle:
    try:
        return _read(said, documents.Uri).number
    except UnavailableError as error:
        raise InDoubtError(str(error)) from None


def _read(said: Said, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(said.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnavailableError(f"an answer that cannot be read: {error}") from None
