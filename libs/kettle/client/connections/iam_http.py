"""Questions to a pool's iam over HTTP, for programs that have no connection to its bus."""

import ssl
import urllib.error
import urllib.request
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kettle.client.errors import ClientError, PoolUnreachableError

_DEADLINE_S: Final = 10.0
_LARGEST: Final = 1 << 20
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A secret goes to the address that was asked for, and to no other."""

    def redirect_request(self, *_args: Any, **_keywords: Any) -> None:
        """None: what redirects is an answer like others."""


def ask(url: str, *, token: str = "", ca: str = "") -> Answer:
    """
    The answer; `ca` is the path of a certificate of an authority that is trusted besides those of the system.

    Raises:
        PoolUnreachableError: nobody answers.
        ClientError: the address is none to which a secret may be sent.
    """
    place = urlsplit(url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in _LOCAL):
        raise ClientError(f"{url} is no address to which a secret may be sent: it has to begin with https://")
    context = ssl.create_default_context()
    if ca:
        context.load_verify_locations(ca)
    opener = urllib.request.build_opener(_NoRedirect(), urllib.request.HTTPSHandler(context=context))
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - its scheme was looked at
    try:
        with opener.open(request, timeout=_DEADLINE_S) as answer:
            return Answer(answer.status, answer.read(_LARGEST))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read(_LARGEST))
    except OSError as error:
        raise PoolUnreachableError(f"{place.netloc} cannot be asked: {error}") from error
