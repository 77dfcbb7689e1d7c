"""
The documents of an issuer that lead to its keys: OpenID Connect Discovery, or RFC 8414.

`Fetcher` is the port through which documents come.
"""

from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from kettle.auth.tokens.checking.public_keys import KeySet, key_set


class FetchError(Exception):
    """A document cannot be had; the text is one sentence."""


class Fetcher(Protocol):
    """Gets documents."""

    async def document(self, url: str) -> bytes:
        """The document; raises FetchError."""
        ...


class _Metadata(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


_decode: Final = msgspec.json.Decoder(_Metadata).decode


def metadata_urls(issuer: str) -> tuple[str, str]:
    """Where an issuer may describe itself: as OpenID Connect has it, and as RFC 8414 has it."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    return (
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}",
    )


async def published_keys(issuer: str, fetcher: Fetcher) -> KeySet:
    """
    The keys that an issuer publishes now.

    Raises FetchError: it cannot be asked, it describes another issuer, or it has no keys that can be used.
    """
    jwks_uri = await _jwks_uri(issuer, fetcher)
    try:
        keys = key_set(await fetcher.document(jwks_uri))
    except ValueError as error:
        raise FetchError(f"{error} (at {jwks_uri})") from None
    if not keys.keys:
        raise FetchError(f"{issuer} publishes no key that can verify a token (at {jwks_uri})")
    return keys


async def _jwks_uri(issuer: str, fetcher: Fetcher) -> str:
    failures: list[FetchError] = []
    for url in metadata_urls(issuer):
        try:
            metadata = _decode(await fetcher.document(url))
        except (msgspec.DecodeError, msgspec.ValidationError):
            failures.append(FetchError(f"{url} is no description of an issuer: it needs issuer and jwks_uri"))
        except FetchError as error:
            failures.append(error)
        else:
            # An issuer that could speak for another one would make its keys good for the other's people.
            if metadata.issuer != issuer:
                raise FetchError(f"{url} describes {metadata.issuer[:200]!a}, and not {issuer}")
            return metadata.jwks_uri
    raise FetchError("; ".join(str(failure) for failure in failures))
