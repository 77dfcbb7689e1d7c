"""Asking a provider over HTTP once: what was not sent, and what was and got no answer, are told apart."""

import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec

from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import ProviderError, UnavailableError
from kettle_wire.leases import ErrorClass

_UNSENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


class Said(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def retry_after(self) -> str | None:
        """The header of that name."""
        return self.headers.get("Retry-After")

    @property
    def text(self) -> str:
        """Its words."""
        return self.body.decode(errors="replace")


class NoAnswerError(Exception):
    """It was asked, and how that ended is not known."""


class Web:
    """One service."""

    def __init__(self, url: str, *, ca_file: str = "", patience: float, at_once: int = 16) -> None:
        """
        With `ca_file` the service's certificate has to come from it.  Raises ProviderError.
        """
        self._url: Final = url.rstrip("/")
        try:
            secure = ssl.create_default_context(cafile=ca_file) if ca_file else True
        except (OSError, ssl.SSLError) as error:
            raise ProviderError(ErrorClass.CONFIG, f"ca_file {ca_file} cannot be used: {error}") from None
        timeout = aiohttp.ClientTimeout(total=patience, sock_connect=patience)
        self._session: Final = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=secure, limit=at_once),
            timeout=timeout,
            headers={"User-Agent": "kettle"},
        )

    async def ask(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Said:
        """
        The answer, whatever its status.

        Raises:
            UnavailableError: nothing was sent.
            NoAnswerError: it was sent.
        """
        try:
            async with self._session.request(
                method, self._url + path, headers=headers, data=body, allow_redirects=False
            ) as answer:
                return Said(answer.status, await answer.read(), answer.headers)
        except _UNSENT as error:
            raise UnavailableError(cleaned(f"{self._url}: {error}")) from None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise NoAnswerError(cleaned(f"{self._url}: {str(error) or type(error).__name__}")) from None

    async def question(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Said:
        """The answer to what may be asked again.  Raises UnavailableError."""
        try:
            return await self.ask(method, path, headers=headers, body=body)
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None

    async def close(self) -> None:
        """Give up connections."""
        await self._session.close()
