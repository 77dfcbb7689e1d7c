"""Requests for tokens as ads."""

from collections.abc import Iterable
from typing import Final

from kettle_wire.ads.types import Ad
from kettle_wire.commands.token_requests import TokenRequestShown

NOBODY: Final = "unauthenticated@unmapped"
"""Who asks without a credential, in HTCondor's words."""


def ads(requests: Iterable[TokenRequestShown]) -> list[Ad]:
    """An ad of each, its attributes in the order of their names."""
    return [_ad(request) for request in requests]


def _ad(request: TokenRequestShown) -> Ad:
    found: Ad = {
        "AuthenticatedIdentity": request.requester or NOBODY,
        "ClientId": request.client,
    }
    if request.levels:
        found["LimitAuthorization"] = ",".join(request.levels)
    if request.address:
        found["PeerLocation"] = request.address
    found |= {"RequestedIdentity": request.identity, "RequestId": request.request}
    if request.lifetime:
        found["TokenLifetime"] = request.lifetime
    return found
