"""The key of a gateway's addresses: what is signed with it, and whether an address is."""

import hmac
from collections.abc import Mapping

from kettle.prominence.addresses import (
    AS_JOB,
    OBJECTS,
    Area,
    JobToken,
    Permit,
    Place,
    address,
    permit_key,
    signature,
)
from kettle_services.gateway.prominence.application import PREFIX, refused


class Signer:
    """Makes and checks them with one key."""

    def __init__(self, key: bytes, url: str) -> None:
        """`url`: where people and machines reach this gateway."""
        self._key = key
        self._base = f"{url}{PREFIX}{OBJECTS}"

    def url(self, method: str, place: Place, *, expires: float, sha256: str = "") -> str:
        """An address for one method until a time, seconds since the epoch."""
        end = int(expires)
        said = {"of": place.owner, "expires": str(end)}
        if sha256:
            said["sha256"] = sha256
        said["signature"] = signature(self._key, method, place, end, sha256)
        return address(self._base, place, said)

    def permit(self, method: str, area: Area, owner: str, *, within: str = "", expires: float) -> Permit:
        """For all objects of an owner in an area whose names begin so."""
        end = int(expires)
        key = permit_key(self._key, method, Place(area, owner, within), end)
        return Permit(
            base=self._base, method=method, area=area, owner=owner, within=within, expires=end, key=key
        )

    def permitted(self, method: str, place: Place, query: Mapping[str, str], *, now: float) -> str:
        """
        The digest that an object has to have, which may be none; raises RequestRefused: this address permits nothing.
        """
        sha256, text = query.get("sha256", ""), query.get("expires", "")
        end = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
        key, within = self._key, query.get("within")
        if within is not None:
            key = permit_key(key, method, Place(place.area, place.owner, within), end)
        good = signature(key, method, place, end, sha256)
        is_good = hmac.compare_digest(good.encode(), query.get("signature", "").encode("utf-8", "replace"))
        if not is_good or not place.name.startswith(within or ""):
            raise refused("the address is not one that was given for this", 403)
        if now >= end:
            raise refused("the time of this address is over: ask for a new one", 403)
        return sha256

    def job_of(self, text: str, *, now: float) -> tuple[str, str]:
        """
        Whose job shows this token, and what its results are kept under; raises RequestRefused: it is not a job's.
        """
        try:
            token = JobToken.read(text)
        except ValueError as error:
            raise refused(
                "show the token of a job, which is PROMINENCE_TOKEN in its environment", 401
            ) from error
        end, within = token.expires, Place("scratch", token.owner, token.within)
        key = permit_key(self._key, AS_JOB, within, end)
        good = signature(key, AS_JOB, Place("scratch", token.owner, token.identifier), end)
        is_good = hmac.compare_digest(good.encode(), token.signature.encode("utf-8", "replace"))
        if not is_good or not token.identifier.startswith(token.within):
            raise refused("the token is not that of a job", 401)
        if now >= end:
            raise refused("the time of this token is over", 401)
        return token.owner, token.identifier
