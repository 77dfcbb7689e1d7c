"""
What comes over HTTP, before anybody looks at what it asks: from where, how often, and with which credential.
"""

import asyncio
import base64
import binascii
import time
from typing import Final

from aiohttp import web
from multidict import MultiMapping

from kettle.http.rate_limits import Buckets, network
from kettle.http.requests import bearer_token, client_address, has_secret_in_address
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.settings import IamSettings

LARGEST: Final = 64 * 1024
"""Bytes of a request."""
_BODY_S: Final = 10.0
"""For the body of a request to come."""


class Asked:
    """A request, who sends it, and as whom."""

    def __init__(self, request: web.Request, address: str) -> None:
        self.request: Final = request
        self.address: Final = address
        self.identity = ""
        """Set as soon as it is said, whether it is true or not."""


class Limits:
    """How often somebody may ask, and how often he may be wrong."""

    def __init__(self, settings: IamSettings) -> None:
        self._requests = Buckets(rate=settings.requests_per_second, burst=settings.request_burst)
        self._failures = Buckets(rate=settings.failures_per_second, burst=settings.failure_burst)
        self._proxies = frozenset(settings.proxies)

    def address(self, request: web.Request) -> str:
        """Who asks; what a proxy says counts only if it is one of ours."""
        return client_address(request, self._proxies)

    def admit(self, address: str) -> None:
        """Raise Denied if there come too many requests from an address."""
        _require(self._requests.take(network(address), now=time.monotonic()), "requests")

    def failed(self, address: str, identity: str) -> Denied | None:
        """
        A wrong credential from an address for an identity; what to answer instead if there were too many.

        Only wrong ones are counted and refused, so that nobody keeps others out by trying.
        """
        now = time.monotonic()
        waits = max(
            self._failures.take(f"address {network(address)}", now=now),
            self._failures.take(f"identity {identity}", now=now) if identity else 0.0,
        )
        return _too_many(waits, "wrong credentials") if waits else None


def _require(waits: float, what: str) -> None:
    if waits:
        raise _too_many(waits, what)


def _too_many(waits: float, what: str) -> Denied:
    return Denied(
        Code.REQUEST_TOO_MANY,
        f"there are too many {what} from here; try again in {waits:.0f} s",
        status=429,
        retry_after=max(1, round(waits + 0.5)),
    )


def require_no_secret_in_address(request: web.Request) -> None:
    """Raise Denied for a token or a secret in the address."""
    if has_secret_in_address(request):
        raise Denied(
            Code.TOKEN_IN_QUERY,
            "a token must not be in an address, where it is logged; send it in the header Authorization or in the body, and have this "
            "one revoked",
            status=400,
        )


def bearer(request: web.Request) -> str:
    """The token of the header Authorization; raises Denied if there is none."""
    token = bearer_token(request)
    if not token:
        raise Denied(Code.TOKEN_ABSENT, "show a token in the header Authorization: Bearer TOKEN", status=401)
    return token


async def form(request: web.Request) -> MultiMapping[str]:
    """The parameters of the body; raises Denied for another body, or for a parameter that comes twice."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise Denied(
            Code.REQUEST_MALFORMED, "the body has to be application/x-www-form-urlencoded", status=400
        )
    try:
        async with asyncio.timeout(_BODY_S):
            given = await request.post()
    except TimeoutError as error:
        raise Denied(
            Code.REQUEST_MALFORMED, f"the body did not come within {_BODY_S:g} s", status=408
        ) from error
    except (LookupError, ValueError) as error:  # it names a character set that there is not, or has another
        raise Denied(
            Code.REQUEST_MALFORMED, "the body is not in the character set that it names", status=400
        ) from error
    texts = [(name, value) for name, value in given.items() if isinstance(value, str)]
    for name in {name for name, _ in texts} - {"audience", "resource"}:
        if sum(each == name for each, _ in texts) > 1:
            raise Denied(Code.REQUEST_MALFORMED, f"the parameter {name} comes twice", status=400)
    from multidict import MultiDict

    return MultiDict(texts)


def client_credentials(request: web.Request, parameters: MultiMapping[str]) -> tuple[str, str] | None:
    """The id and the secret of a client, by header or body (RFC 6749 section 2.3.1); None: it shows none."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            client, colon, secret = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, ValueError) as error:
            raise Denied(Code.CLIENT_UNKNOWN, "the header Authorization is not Basic", status=401) from error
        if not colon:
            raise Denied(Code.CLIENT_UNKNOWN, "the header Authorization is not Basic", status=401)
        return _unquoted(client), _unquoted(secret)
    if "client_secret" in parameters:
        return parameters.get("client_id", ""), parameters["client_secret"]
    return None


def _unquoted(text: str) -> str:
    from urllib.parse import unquote_plus

    return unquote_plus(text)


def words(parameters: MultiMapping[str], name: str) -> list[str]:
    """A parameter that is a list with spaces between."""
    return parameters.get(name, "").split()
