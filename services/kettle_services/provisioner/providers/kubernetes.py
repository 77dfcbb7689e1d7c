"""Kubernetes: a machine is one pod, which nothing there starts again."""

from http import HTTPStatus
from typing import Annotated, ClassVar, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from kettle_services.provisioner.domain import kubernetes_objects as objects
from kettle_services.provisioner.domain import kubernetes_quotas, web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import worker_script
from kettle_services.provisioner.providers.settings import ProviderSettings, options_of, secret_in
from kettle_services.provisioner.providers.web import NoAnswerError, Said, Web
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

_T = TypeVar("_T")
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PAGE: Final = 500
_BEGINNINGS: Final = 3
"""A list that went stale between two pages (410) is begun again so often."""
_LINES: Final = 200


class KubernetesSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name space of a cluster.  The defaults are those of a provisioner that runs in it."""

    OPTIONS: ClassVar[type[msgspec.Struct]] = objects.KubernetesOptions

    server: str = "https://kubernetes.default.svc"
    """URL of the API server."""
    namespace: Annotated[str, msgspec.Meta(min_length=1, max_length=63)] = "default"
    """Where the pods are made."""
    token_file: str = f"{_ACCOUNT}/token"
    """The token of an account that may create, get, list and delete pods, and get their logs."""
    ca_file: str = f"{_ACCOUNT}/ca.crt"
    """What the server's certificate comes from; empty: what this machine trusts."""
    grace: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 120
    """Seconds that a pod has to end its jobs, from the notice that it will be removed."""

    async def open(self, deployment: str) -> "Kubernetes":
        """The provider."""
        secret_in(self.token_file, "token_file")
        ca_file = self.ca_file if self.server.startswith("https:") else ""
        return Kubernetes(self, deployment, Web(self.server, ca_file=ca_file, patience=self.patience))


class Kubernetes:
    """Pods of one deployment."""

    visibility = 0.0

    def __init__(self, settings: KubernetesSettings, deployment: str, web: Web) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._web: Final = web
        namespace = f"/api/v1/namespaces/{quote(settings.namespace)}"
        self._pods: Final = f"{namespace}/pods"
        self._quotas: Final = f"{namespace}/resourcequotas"

    def _headers(self) -> dict[str, str]:
        """The token is read again: those of accounts are replaced every hour."""
        token = secret_in(self._settings.token_file, "token_file")
        return {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }

    async def check(self, offer: Offer) -> list[str]:
        """What a dry run says."""
        try:
            asked = self._pod(offer, "check", "exit 0\n", offer.life or 3600.0)
        except ProviderError as error:
            return [str(error)]
        said = await self._question("POST", f"{self._pods}?dryRun=All", asked)
        if said.status in {HTTPStatus.CREATED, HTTPStatus.CONFLICT}:
            return []
        match _class_of(said):
            case ErrorClass.REQUEST | ErrorClass.IMAGE | ErrorClass.QUOTA:
                return [f"offer {offer.name}: {_words(said)}"]
            case _:
                raise _refusal(said)

    def _pod(self, offer: Offer, lease: str, script: str, life: float) -> bytes:
        if not offer.template:
            raise ProviderError(
                ErrorClass.IMAGE, f"offer {offer.name}: its template has to be an image of a container"
            )
        options = options_of(offer, objects.KubernetesOptions)
        made = objects.pod(
            offer,
            options,
            deployment=self._deployment,
            lease=lease,
            script=script,
            life=life,
            grace=self._settings.grace,
        )
        return msgspec.json.encode(made)

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Make one pod.  One of its name that is there already is the one that was asked for before."""
        script = worker_script(bootstrap, self._settings.program, self._settings.before)
        asked = self._pod(order.offer, order.lease, script, order.life)
        try:
            said = await self._web.ask("POST", self._pods, headers=self._headers(), body=asked)
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from None
        except NoAnswerError as error:
            raise InDoubtError(str(error)) from None
        if said.status == HTTPStatus.CREATED:
            try:
                return objects.machine(_read(said, objects.Pod)).handle
            except UnavailableError as error:
                raise InDoubtError(str(error)) from None
        if said.status == HTTPStatus.CONFLICT:
            return await self._made_before(order)
        known = _class_of(said)
        if known is None:
            raise InDoubtError(_words(said, bootstrap.token))
        raise ProviderError(
            known, _words(said, bootstrap.token), retry_after=web_answers.seconds_of(said.retry_after)
        )

    async def _made_before(self, order: Order) -> Handle:
        try:
            found = await self._named(objects.pod_name(self._deployment, order.lease))
        except (UnavailableError, ProviderError) as error:
            raise InDoubtError(f"a pod of this name is there, and cannot be looked at: {error}") from None
        if found is None:
            raise InDoubtError("a pod of this name was there, and is not any more")
        return found.handle

    async def _named(self, name: str) -> MachineFound | None:
        said = await self._question("GET", f"{self._pods}/{quote(name, safe='')}")
        if said.status == HTTPStatus.NOT_FOUND:
            return None
        return objects.machine(_read(_good(said), objects.Pod))

    async def find(self) -> Found:
        """All pods with our label, page by page; where a page fails it is not complete."""
        for _ in range(_BEGINNINGS):
            found = await self._pages()
            if found is not None:
                return found
        raise UnavailableError(f"the list of pods went stale {_BEGINNINGS} times before its end")

    async def _pages(self) -> Found | None:
        machines: list[MachineFound] = []
        asked = {"labelSelector": f"{objects.DEPLOYMENT}={self._deployment}", "limit": str(_PAGE)}
        while True:
            try:
                said = await self._question("GET", f"{self._pods}?{urlencode(asked)}")
                if said.status == HTTPStatus.GONE:
                    return None
                page = _read(_good(said), objects.PodList)
            except UnavailableError:
                if not machines:
                    raise
                return Found(machines=machines, complete=False)
            machines += map(objects.machine, page.items)
            if not page.rest:
                return Found(machines=machines, complete=True)
            asked["continue"] = page.rest

    async def get(self, handle: Handle) -> MachineFound:
        """One pod: gone if there is none of its name, or one with another UID."""
        found = await self._named(handle.partition("/")[0])
        if found is None or found.handle != handle or found.deployment != self._deployment:
            return MachineFound(handle=handle, state=MachineState.GONE)
        return found

    async def delete(self, handle: Handle) -> None:
        """Delete a pod, if it is ours and still the one that is meant."""
        if (await self.get(handle)).state is MachineState.GONE:
            return
        name, _, uid = handle.partition("/")
        asked = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        said = await self._question(
            "DELETE", f"{self._pods}/{quote(name, safe='')}", msgspec.json.encode(asked)
        )
        if said.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:  # another one has its name by now
            _good(said)

    async def room(self) -> Room:
        """What the quotas of the namespace leave; who may not read these is told by the first refusal."""
        said = await self._question("GET", self._quotas)
        if said.status == HTTPStatus.FORBIDDEN:
            return Room()
        return kubernetes_quotas.room(_read(_good(said), objects.QuotaList).items)

    async def console(self, handle: Handle) -> str:
        """The last lines of its log."""
        name = quote(handle.partition("/")[0], safe="")
        said = await self._question("GET", f"{self._pods}/{name}/log?tailLines={_LINES}")
        if said.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:  # it has not begun
            return ""
        return _good(said).text

    async def close(self) -> None:
        """Give up connections."""
        await self._web.close()

    async def _question(self, method: str, path: str, body: bytes | None = None) -> Said:
        return await self._web.question(method, path, headers=self._headers(), body=body)


def _status(said: Said) -> objects.Status:
    try:
        return msgspec.json.decode(said.body, type=objects.Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return objects.Status(message=said.text)


def _class_of(said: Said) -> ErrorClass | None:
    return objects.error_of(said.status, _status(said))


def _words(said: Said, secret: str = "") -> str:
    return cleaned(f"{said.status}: {_status(said).message}", [secret])


def _refusal(said: Said) -> Exception:
    match _class_of(said):
        case None | ErrorClass.TRANSIENT:
            return UnavailableError(_words(said))
        case error:
            return ProviderError(error, _words(said), retry_after=web_answers.seconds_of(said.retry_after))


def _good(said: Said) -> Said:
    if said.status >= HTTPStatus.BAD_REQUEST:
        raise _refusal(said)
    return said


def _read(said: Said, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(said.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnavailableError(f"an answer that cannot be read: {error}") from None
