"""
From which pages a request may come.

A browser shows its cookie with whatever any page makes it send.  So what came by cookie and changes something has to come from a page of
this origin, by the browser's own words (`Sec-Fetch-Site`, `Origin`), and repeat what only such a page knows.
"""

import hmac
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
_FORMS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class Origins:
    """Tells the origin of our own pages, and whether a request came from one of them."""

    def __init__(self, public_url: str, proxies: Collection[str]) -> None:
        """
        `public_url`: how browsers reach us; empty: as they say. `proxies`: whose words about that count.
        """
        place = urlsplit(public_url)
        self._public = f"{place.scheme}://{place.netloc}".lower() if public_url else ""
        self._proxies = proxies

    def own(self, request: web.Request) -> str:
        """The origin under which a browser knows us."""
        if self._public:
            return self._public
        scheme, host = request.scheme, request.host
        if request.remote in self._proxies:
            scheme = request.headers.get("X-Forwarded-Proto", scheme)
            host = request.headers.get("X-Forwarded-Host", host)
        return f"{scheme}://{host}".lower()

    def require_own_page(self, request: web.Request) -> None:
        """
        Raises RequestRefused: no page of this origin has sent it, by what the browser says.

        A browser that says nothing is too old to be believed, and a program has no need of a cookie.
        """
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        elsewhere = origin is not None and origin.lower() != self.own(request)
        if site == "same-origin" and elsewhere:
            raise _refused(
                f"the browser has this page from another address than {self.own(request)}, which the gateway knows: let the proxy in front "
                "say X-Forwarded-Proto and X-Forwarded-Host, or set public_url of [gateway]"
            )
        if elsewhere or site not in {None, "same-origin"} or (site is None and origin is None):
            raise _refused(
                "a page of another site, or none, has sent this request: open the page of the pool itself and do it there"
            )


async def require_intended(request: web.Request, origins: Origins, csrf: str) -> None:
    """
    Raises RequestRefused: a request that came by cookie may not have been meant by who sent it. `csrf`: what its session knows.
    """
    if request.method in SAFE:
        _require_no_part_of_another_site(request)
        return
    origins.require_own_page(request)
    said = request.headers.get(CSRF_HEADER, "")
    if not said and request.content_type in _FORMS:
        field = (await request.post()).get(CSRF_FIELD, "")
        said = field if isinstance(field, str) else ""
    if not hmac.compare_digest(said.encode("utf-8", "surrogateescape"), csrf.encode()):
        raise _refused(
            f"the request does not repeat the token of this session ({CSRF_HEADER}): load the page again, and try once more; programs show "
            "a token in the header Authorization instead of a cookie"
        )


def _require_no_part_of_another_site(request: web.Request) -> None:
    """
    Raises RequestRefused: a page of another site wants something of ours as a part of it, as a picture, a script or a stream.

    It could not read what it gets; it could tell how large it is and how long it takes, and hold streams open.
    """
    led = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    if not led and request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
        raise _refused("a page of another site cannot use what is here, it can only lead here")


def _refused(sentence: str) -> RequestRefused:
    return RequestRefused(403, ProblemCode.CSRF, sentence)
