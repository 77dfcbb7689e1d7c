"""condor_token_request."""

import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError, CommandRefusedError, PoolUnreachableError
from kettle.client.token_requests import OpenRequest, TokenRequestHttp
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.tokens import DAEMON, DAEMON_HELP, LIMITS, PLACE, TokenWords, identity
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

if TYPE_CHECKING:
    import ssl

OPTIONS: Final = LIMITS | PLACE | DAEMON | {"identity": Option(takes=1)}
HELP: Final = {
    "condor_token_request": f"""\
usage: condor_token_request [options]

Asks for a token, of yours or of anybody's, prints the number of the request, and waits until somebody has approved it, for an
hour at most.  Tell the number to an administrator, who says: condor_token_request_approve -reqid NUMBER

Who has no credential for the pool names its iam: -pool https://HOST/, or COLLECTOR_HOST.  Its certificate has to come from an
authority that this machine knows, or, if AUTH_SSL_CLIENT_CAFILE names a file, from one of those in it.

  -identity USER@DOMAIN  whose token it is to be; by default condor, who the daemons of the pool are
  -authz LEVEL           limit it to a level; may be given several times
  -lifetime SECONDS      how long it is valid; the pool may say less
  -token NAME            write it into this file of the token directory, SEC_TOKEN_DIRECTORY
  -file FILE             write it into this file
{DAEMON_HELP}""",
}
_PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0)
"""Between two questions, at first and later."""


def run(name: str, words: list[str]) -> int:
    """Ask, and wait."""
    wanted, whose = TokenWords(), ""
    for given in understood(words, OPTIONS):
        if given.name == "identity":
            whose = identity(given.values[0])
        elif not wanted.read(name, given):
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
    wanted.require_place(name)
    client = f"{socket.gethostname()}-{secrets.randbelow(1000)}"
    knobs = CondorConfig(os.environ)
    place = wanted.pool or (knobs.get("COLLECTOR_HOST") or "").strip()
    ask, collect = _over_http(knobs, place) if _is_url(place) else _over_bus(knobs, wanted.pool)
    try:
        request = ask(client, whose, wanted.levels, wanted.lifetime or 0)
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to request a new token: {refusal}") from None
    sys.stderr.write(
        f"Token request enqueued.  Ask an administrator to please approve request {request.request}.\n"
    )
    sys.stderr.flush()
    wanted.put(name, _waited(request, collect))
    return 0


_Ask = Callable[[str, str, list[str], int], OpenRequest]
_Collect = Callable[[OpenRequest], str]


def _is_url(place: str) -> bool:
    return place.startswith(("https://", "http://"))


def _over_http(knobs: CondorConfig, url: str) -> tuple[_Ask, _Collect]:
    from kettle.client.iam_http import IamAddress, IamHttp

    http = TokenRequestHttp(IamHttp(IamAddress.of(url), _trusted(knobs.get("AUTH_SSL_CLIENT_CAFILE"))))
    return (
        lambda client, whose, levels, lifetime: http.request(
            client=client, identity=whose, levels=levels, lifetime=lifetime
        ),
        http.collect,
    )


def _trusted(file: str | None) -> "ssl.SSLContext | None":
    if not file:
        return None
    import ssl  # only who asks over HTTP needs it

    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise ToolError(
            f"AUTH_SSL_CLIENT_CAFILE: {file} holds no certificates that can be used: {error}"
        ) from None


def _over_bus(knobs: CondorConfig, pool: str) -> tuple[_Ask, _Collect]:
    bus = client_of(knobs, pool=pool)
    return (
        lambda client, whose, levels, lifetime: bus.run(
            lambda asked: asked.token_requests.request(
                client=client, identity=whose, levels=levels, lifetime=lifetime
            )
        ),
        lambda request: bus.run(lambda asked: asked.token_requests.collect(request)),
    )


def _waited(request: OpenRequest, collect: _Collect) -> str:
    pauses = iter(_PAUSES_S)
    pause = next(pauses)
    until = time.monotonic() + max(0.0, request.expires - time.time())
    while time.monotonic() < until:
        try:
            if token := collect(request):
                return token
        except PoolUnreachableError:  # it is asked again: the request waits there
            pass
        except ClientError as error:
            raise ToolError(f"Failed to get a status update for token request: {error}") from None
        time.sleep(pause)
        pause = next(pauses, pause)
    raise ToolError(
        f"Failed to get a status update for token request: nobody approved {request.request} in time"
    )
