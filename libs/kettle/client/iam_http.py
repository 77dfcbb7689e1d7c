"""
Questions to an iam over HTTP, for who has no credential of the bus yet.

A secret is sent only where nobody else can read it: over HTTPS, or within this machine.
"""

import http.client
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from kettle.client.errors import ClientError, CommandRefusedError, PoolUnreachableError

_DEADLINE_S: Final = 20.0
_LARGEST: Final = 1 << 20
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class _Problem(msgspec.Struct, frozen=True):
    """A refusal."""

    detail: str
    code: str = ""


class IamAddress(msgspec.Struct, frozen=True):
    """Where an iam is."""

    scheme: str
    host: str
    port: int | None
    prefix: str = ""
    """What stands before the path of each question."""

    @classmethod
    def of(cls, url: str) -> "IamAddress":
        """Raises ClientError: no secret may be sent there."""
        try:
            place = urlsplit(url if "://" in url else f"https://{url}")
            scheme, host, port, prefix = place.scheme, place.hostname, place.port, place.path.rstrip("/")
        except ValueError:
            scheme, host, port, prefix = "", None, None, ""
        if not host or not (scheme == "https" or (scheme == "http" and host in _LOCAL)):
            raise ClientError(
                f"{url} is no address to which a secret may be sent: it has to begin with https://"
            )
        return cls(scheme, host, port, prefix)


def trusting(ca: str) -> ssl.SSLContext | None:
    """
    What believes the certificate of an authority, at this path, besides those that the system knows; empty: None.
    """
    if not ca:
        return None
    context = ssl.create_default_context()
    context.load_verify_locations(ca)
    return context


class IamHttp:
    """
    Asks one iam, one question at a time; a redirection is an answer like others, so no secret goes elsewhere.
    """

    def __init__(self, address: IamAddress, context: ssl.SSLContext | None = None) -> None:
        """`context`: which certificates are believed; None: those that the system knows."""
        self.host: Final = address.host
        self._address = address
        self._context = context

    def ask(
        self, method: str, path: str, form: Mapping[str, str], token: str = "", *, document: bytes = b""
    ) -> tuple[int, bytes]:
        """
        The status and the body of an answer; `token` is shown in the header, `document`: JSON that is sent in the place of a form.

        Raises:
            PoolUnreachableError: nobody answers.
        """
        host, port = self._address.host, self._address.port
        connection: http.client.HTTPConnection
        if self._address.scheme == "http":
            connection = http.client.HTTPConnection(host, port, timeout=_DEADLINE_S)
        else:
            context = self._context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=_DEADLINE_S, context=context)
        headers = {"Accept": "application/json"}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if document:
            headers["Content-Type"] = "application/json"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            body = urlencode(form) if form else document or None
            connection.request(method, self._address.prefix + path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_LARGEST)
        except (OSError, http.client.HTTPException) as error:
            raise PoolUnreachableError(f"{host} cannot be asked: {error}") from error
        finally:
            connection.close()

    def get(self, path: str) -> bytes:
        """A document; raises ClientError: there is none."""
        status, body = self.ask("GET", path, {})
        if status != 200:
            raise ClientError(f"{self.host} is no iam of a pool: it has no {path}")
        return body

    def post(self, path: str, form: Mapping[str, str]) -> bytes:
        """
        What it answers to a form.

        Raises:
            CommandRefusedError: it refused.
            ClientError: it did not answer, or not as an iam does.
        """
        status, body = self.ask("POST", path, form)
        if status == 200:
            return body
        try:
            problem = msgspec.json.decode(body, type=_Problem)
        except msgspec.MsgspecError as error:
            raise ClientError(f"{self.host} does not answer as an iam does (status {status})") from error
        raise CommandRefusedError(problem.code, problem.detail)
