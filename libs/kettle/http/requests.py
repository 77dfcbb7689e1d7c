"""
What can be said about a request before anybody looks at what it asks: from where, and with which credential.
"""

from collections.abc import Collection
from typing import Final

from aiohttp import web

_SECRET: Final = frozenset({
    "access_token", "assertion", "client_assertion", "client_secret", "code", "id_token", "join_token", "password",
    "refresh_token", "subject_token", "actor_token", "token",
})  # fmt: skip
"""Parameters that have no place in an address, because addresses are logged on the way."""


def client_address(request: web.Request, proxies: Collection[str]) -> str:
    """Who asks; what a proxy says counts only if it is one of ours."""
    peer = request.remote or "unknown"
    if peer in proxies:
        # A proxy may add a line of its own below what the client sent.
        said = ",".join(request.headers.getall("X-Forwarded-For", ())).rpartition(",")[2].strip()
        return said or peer
    return peer


def bearer_token(request: web.Request) -> str:
    """The token of the header Authorization; empty if there is none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def has_secret_in_address(request: web.Request) -> bool:
    """Whether a token or a secret stands in the address."""
    return not _SECRET.isdisjoint(request.query)
