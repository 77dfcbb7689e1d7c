"""
One document over HTTPS, from no place that it must not come from.

A document of an issuer names other addresses, so somebody who can change one could make this process ask servers that only it
can reach. Addresses that are not public are therefore refused after the name was resolved and before anything is sent,
except of hosts that the site has named, and no other host is asked because of a redirect.
"""

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import AF_INET, AddressFamily
from typing import Final, Self

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from kettle.auth.tokens.keys.discovery import FetchError

MOST_BYTES: Final = 256 << 10
_MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NAT64: Final = IPv6Network("64:ff9b::/96")
_HEADERS: Final = {"Accept": "application/json", "User-Agent": "kettle"}


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Where documents may come from, and how long they may take."""

    private_hosts: frozenset[str] = frozenset()
    """Names of hosts that may have addresses that are not public: an issuer within the site."""
    plain_loopback: bool = False
    """Whether `http` will do for this machine itself: for trials."""
    seconds: float = 10.0
    """For the whole document, with connecting and redirects."""


class HttpFetcher:
    """Gets documents from the network."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, limits: FetchLimits | None = None, *, tls: ssl.SSLContext | None = None
    ) -> AsyncGenerator[Self]:
        """`tls`: which authorities are trusted, if not those that this machine trusts."""
        limits = limits or FetchLimits()
        connector = aiohttp.TCPConnector(
            resolver=_PublicAddresses(limits), ssl=True if tls is None else tls, use_dns_cache=False
        )
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=limits.seconds),
        ) as session:
            yield cls(session, limits)

    def __init__(self, session: aiohttp.ClientSession, limits: FetchLimits) -> None:
        self._session = session
        self._limits = limits

    async def document(self, url: str) -> bytes:
        """The document; raises FetchError."""
        try:
            place = URL(url)
            for _ in range(_MOST_REDIRECTS + 1):
                self._check(place)
                answer = await self._ask(place)
                if isinstance(answer, bytes):
                    return answer
                place = _same_host(place, answer)
        except TimeoutError:
            raise FetchError(f"{url} did not answer within {self._limits.seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(f"{url} cannot be fetched: {str(error) or type(error).__name__}") from error
        raise FetchError(f"{url} was redirected more than {_MOST_REDIRECTS} times")

    async def form(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """
        The status and the body of the answer to a form, which is sent to no other place than this; raises FetchError.
        """
        try:
            place = URL(url)
            self._check(place)
            async with self._session.post(
                place, data=dict(fields), allow_redirects=False, headers={**_HEADERS, **headers}
            ) as response:
                return response.status, await _limited(place, response)
        except TimeoutError:
            raise FetchError(f"{url} did not answer within {self._limits.seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(f"{url} cannot be asked: {str(error) or type(error).__name__}") from error

    def _check(self, place: URL) -> None:
        host = place.host or ""
        if not host:
            raise FetchError(f"{str(place)!r} is not asked: it is no URL with a host")
        if place.scheme != "https" and not (
            place.scheme == "http" and self._limits.plain_loopback and _is_loopback(host)
        ):
            raise FetchError(f"{place} is not asked: documents of issuers are fetched over https")
        if place.user is not None or place.password is not None:
            raise FetchError(f"{place.with_user(None)} is not asked with the user that its address names")
        address = _literal(host)
        if address is not None:  # the resolver is not asked for these
            check_address(host, address, self._limits)

    async def _ask(self, place: URL) -> bytes | str:
        """The document, or where it is instead."""
        async with self._session.get(place, allow_redirects=False, headers=_HEADERS) as response:
            if response.status in _REDIRECTS:
                return response.headers.get("Location", "")
            if response.status != 200:
                raise FetchError(f"{place} answered with status {response.status}")
            return await _limited(place, response)


async def _limited(place: URL, response: aiohttp.ClientResponse) -> bytes:
    """The body; raises FetchError: it is too large."""
    data = bytearray()
    async for part in response.content.iter_any():
        data += part
        if len(data) > MOST_BYTES:
            raise FetchError(f"{place} has more than {MOST_BYTES >> 10} KiB")
    return bytes(data)


class _PublicAddresses(AbstractResolver):
    """Resolves names, and refuses those of places that must not be asked."""

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: AddressFamily = AF_INET) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            check_address(host, ip_address(each["host"]), self._limits)
        return found

    async def close(self) -> None:
        await self._resolver.close()


def check_address(host: str, address: IPv4Address | IPv6Address, limits: FetchLimits) -> None:
    """Raises FetchError: this address is not one of the public network, and nobody has allowed the host."""
    if host in limits.private_hosts or (limits.plain_loopback and _is_loopback(host)):
        return
    if not is_public(address):
        raise FetchError(
            f"{host} is not asked: its address {address} is not public; if the issuer is within the site, name its host"
            " among those that may have such an address"
        )


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is one of the public network, and no other way to write one that is not."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def _is_loopback(host: str) -> bool:
    address = _literal(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _same_host(place: URL, location: str) -> URL:
    target = place.join(URL(location))
    if not location or target.origin() != place.origin():
        raise FetchError(f"{place} leads to another host ({target.host}), which is not followed")
    return target
