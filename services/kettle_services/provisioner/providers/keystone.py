"""A project of an OpenStack: Keystone says who we are, and where Nova is."""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kettle_services.provisioner.domain import openstack_answers as answers
from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import ProviderError, UnavailableError
from kettle_services.provisioner.providers.settings import ProviderSettings, secret_in
from kettle_services.provisioner.providers.web import Said, Web
from kettle_wire.leases import ErrorClass


class OpenStackAccount(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One region of one project, used as a user of it or by an application credential."""

    auth_url: str
    """Of Keystone, as `https://cloud.example.org:5000/v3`."""
    password_file: str
    """Of the user, or the secret of the application credential."""
    application_credential: str = ""
    """Its id; with it no user and no project is said."""
    user: str = ""
    """Its name."""
    project: str = ""
    """Its name."""
    user_domain: str = "Default"
    """Name of the domain of the user."""
    project_domain: str = "Default"
    """Name of the domain of the project."""
    region: str = ""
    """Empty: the first of the catalog."""
    interface: str = "public"
    """Which endpoints of the catalog are used."""
    ca_file: str = ""
    """What certificates come from; empty: what this machine trusts."""


class Project:
    """Asks Nova with a token, which is made anew when it is not taken any more."""

    def __init__(self, account: OpenStackAccount) -> None:
        self._account: Final = account
        self._identity: Final = self._web(account.auth_url)
        self._compute: Web | None = None
        self._compute_url = ""
        self._token = ""
        self._entering: Final = asyncio.Lock()

    def _web(self, url: str) -> Web:
        return Web(url, ca_file=self._account.ca_file, patience=self._account.patience)

    async def ask(self, method: str, path: str, body: Any = None) -> Said:
        """
        The answer of Nova, whatever its status.

        Raises:
            UnavailableError: nothing was sent.
            NoAnswerError: it was sent.
            ProviderError: Keystone does not know us.
        """
        encoded = None if body is None else msgspec.json.encode(body)
        compute, token = await self._entered("")
        said = await compute.ask(method, path, headers=_headers(token), body=encoded)
        if said.status == HTTPStatus.UNAUTHORIZED:  # the token is over: nothing was done
            compute, token = await self._entered(token)
            said = await compute.ask(method, path, headers=_headers(token), body=encoded)
        return said

    async def _entered(self, over: str) -> tuple[Web, str]:
        """Nova and a token, another one than `over`."""
        async with self._entering:
            if self._compute is None or self._token in {"", over}:
                await self._enter()
            assert self._compute is not None
            return self._compute, self._token

    async def _enter(self) -> None:
        account = self._account
        secret = secret_in(account.password_file, "password_file")
        asked = answers.login(
            user=account.user,
            project=account.project,
            user_domain=account.user_domain,
            project_domain=account.project_domain,
            application_credential=account.application_credential,
            secret=secret,
        )
        said = await self._identity.question(
            "POST",
            "/auth/tokens",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(asked),
        )
        if said.status != HTTPStatus.CREATED:
            words = cleaned(f"Keystone: {said.status}: {words_of(said)}", [secret])
            error = web_answers.error_of(said.status)
            raise UnavailableError(words) if error is ErrorClass.TRANSIENT else ProviderError(error, words)
        self._token = said.headers.get("X-Subject-Token", "")
        await self._go_to(said)

    async def _go_to(self, said: Said) -> None:
        account = self._account
        try:
            catalog = msgspec.json.decode(said.body, type=answers.Login).token
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnavailableError(f"Keystone: an answer that cannot be read: {error}") from None
        url = catalog.url_of("compute", region=account.region, interface=account.interface)
        if url is None:
            where = f" in region {account.region}" if account.region else ""
            raise ProviderError(ErrorClass.CONFIG, f"Keystone: the catalog has no compute service{where}")
        if url != self._compute_url:
            if self._compute is not None:
                await self._compute.close()
            self._compute, self._compute_url = self._web(url), url

    async def close(self) -> None:
        """Give up connections."""
        await self._identity.close()
        if self._compute is not None:
            await self._compute.close()


def _headers(token: str) -> dict[str, str]:
    return {"X-Auth-Token": token, "Content-Type": "application/json", "Accept": "application/json"}


def words_of(said: Said) -> str:
    """The words of an error."""
    try:
        return answers.message(msgspec.json.decode(said.body, type=dict[str, Any]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return said.text
