"""
Addresses that permit by themselves what they say: to read or to write one object, for some time.

What is signed is the method, the place, the end and the digest of what may be written, so none of them can be changed.
"""

import hmac
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote, urlencode

import msgspec

from kettle_services.gateway.prominence.application import PREFIX, refused

Area = Literal["uploads", "groups", "scratch", "snapshots"]
"""What people have sent for themselves, or for a group; what jobs have sent; what was taken of running jobs."""
AREAS: Final[Mapping[str, Area]] = {
    "uploads": "uploads",
    "groups": "groups",
    "scratch": "scratch",
    "snapshots": "snapshots",
}
"""By how an address calls them."""
OBJECTS: Final = "/objects"


class Place(msgspec.Struct, frozen=True):
    """Where an object is."""

    area: Area
    owner: str
    """A person, or a group."""
    name: str
    """It may have slashes, which mean nothing."""


class Signer:
    """Makes and checks them with one key."""

    def __init__(self, key: bytes, url: str) -> None:
        """`url`: where people and machines reach this gateway."""
        self._key = key
        self._url = url

    def url(self, method: str, place: Place, *, expires: float, sha256: str = "") -> str:
        """An address for one method until a time, seconds since the epoch."""
        end = int(expires)
        said = {"of": place.owner, "expires": str(end)}
        if sha256:
            said["sha256"] = sha256
        said["signature"] = self._signature(method, place, end, sha256)
        return f"{self._url}{PREFIX}{OBJECTS}/{place.area}/{quote(place.name)}?{urlencode(said)}"

    def permitted(self, method: str, place: Place, query: Mapping[str, str], *, now: float) -> str:
        """
        The digest that an object has to have, which may be none; raises RequestRefused: this address permits nothing.
        """
        sha256, text = query.get("sha256", ""), query.get("expires", "")
        end = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
        good = self._signature(method, place, end, sha256)
        if not hmac.compare_digest(good.encode(), query.get("signature", "").encode("utf-8", "replace")):
            raise refused("the address is not one that was given for this", 403)
        if now >= end:
            raise refused("the time of this address is over: ask for a new one", 403)
        return sha256

    def _signature(self, method: str, place: Place, end: int, sha256: str) -> str:
        text = msgspec.json.encode([method, place.area, place.owner, place.name, end, sha256])
        return hmac.digest(self._key, text, "sha256").hex()
