"""
One request to one service over a connection of its own, without an event loop: for programs that ask once and end.

To load an event loop and the driver of the bus takes several times as long as the question.  This speaks the least of
the protocol of NATS, and deals with nothing out of the ordinary: where there is more than one server, no answer
at once, or a refusal that is not for good, it raises `UnusualError`, and one asks in the ordinary way (`kettle.bus.nats`), which
knows what to do then and what to say.  So it is for requests that may be sent twice: questions, and commands with an id, which are
carried out once however often they come.  `kettle.client.connections.short_transport` does both.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import contextmanager
from io import IOBase
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.bus.credentials import Credential
from kettle.bus.encryption import connected, dial, is_wanted
from kettle.bus.large_requests import HEADERS, Parcel, call_in_parts
from kettle.bus.ports import FROM_JOB, BusError, RefusedError, Rep, Req
from kettle.retry.deadline import Deadline
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.endpoint import Endpoint, Refusal
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

READ_BYTES: Final = 256 * 1024
_SCHEMES: Final = frozenset({"nats", "tls"})
_LINE: Final = 64 * 1024
"""The longest line of the protocol that is read: what the server says of itself."""
_PORT: Final = 4222
_ERROR_CODE: Final = "Nats-Service-Error-Code"
"""The header of a refusal; the driver of the bus, which has a name for it, takes long to load."""
_UNUSUAL: Final = NOT_NOW | {RefusalCode.NOT_PERMITTED}
"""Refusals that may pass, or that have to be put in other words."""
_encode: Final = msgspec.msgpack.Encoder().encode


class UnusualError(BusError):
    """It cannot be asked in this way; nobody knows whether it was."""


class _Info(msgspec.Struct, frozen=True):
    """What a server says of itself as far as it matters here."""

    max_payload: int
    headers: bool = False
    tls_required: bool = False
    nonce: str = ""


class _Hello(msgspec.Struct, frozen=True, omit_defaults=True):
    """What we say to it."""

    verbose: bool
    pedantic: bool
    headers: bool
    no_responders: bool
    lang: str
    version: str
    protocol: int
    name: str
    nkey: str = ""
    jwt: str = ""
    sig: str = ""
    auth_token: str = ""


def ask_once(
    url: str,
    endpoint: Endpoint[Req, Rep],
    name: str,
    request: Req,
    *,
    subjects: Subjects,
    identity: Identity,
    credentials: str = "",
    token: str = "",
    ca: str = "",
    within: float,
) -> Rep:
    """
    The answer of the service `name`, at the latest after `within` seconds. `ca` and `token` are as in `NatsBus.connect`.

    Raises:
        RefusedError: the service refuses it for good.
        UnusualError: whatever is neither.
    """
    try:
        if url.startswith(FROM_JOB):
            from kettle.bus.job_connection import FromJob

            return FromJob(url).ask(endpoint, name, request, within)
        with _connected(url, identity, credentials, token, ca, within) as line:

            async def carry(place: str, data: bytes, headers: Mapping[str, str]) -> Parcel:
                subject = subjects.command(endpoint.role, place, endpoint.verb, identity.token)
                return line.ask(subject, data, headers)

            reply = _run(call_in_parts(carry, name, _encode(request), {}, limit=line.limit))
        return endpoint.decode_reply(reply)
    except RefusedError as error:
        if error.code in _UNUSUAL:
            raise UnusualError(f"{url}: {error}") from error
        raise
    except (OSError, BusError, msgspec.MsgspecError, ValueError) as error:
        raise UnusualError(f"{url}: {error}") from error


def _run(asked: "Coroutine[object, None, bytes]") -> bytes:
    """What a coroutine returns that waits for nothing but what blocks."""
    try:
        asked.send(None)
    except StopIteration as returned:
        value: bytes = returned.value
        return value
    raise UnusualError("it waits for something")


@contextmanager
def _connected(
    url: str, identity: Identity, credentials: str, token: str, ca: str, within: float
) -> "Generator[_Line]":
    host, port = _address(url)
    deadline = Deadline(within)
    # As octets, because a text would have the tables of international names loaded; one that needs them is unusual.
    plain = host.encode("ascii")
    encrypted = is_wanted(url, ca)
    plug, greeting = dial(plain, port, ca, within) if encrypted else (connected(plain, port, within), b"")
    with plug, plug.makefile("rb", buffering=READ_BYTES) as heard:
        line = _Line(plug, heard, deadline)
        line.greet(identity, credentials, token, greeting, encrypted=encrypted)
        yield line


def _address(url: str) -> tuple[str, int]:
    """Host and port of one server that is named without a secret."""
    scheme, mark, place = url.strip().partition("://")
    place = place.rstrip("/")
    host, colon, port = place.rpartition(":")
    if not mark or scheme not in _SCHEMES or any(mark in place for mark in ",@/[") or not colon:
        raise UnusualError("not the address of one server")
    return host, int(port or _PORT)


class _Line:
    """A connection that carries one question at a time."""

    def __init__(self, plug: socket.socket, heard: IOBase, deadline: Deadline) -> None:
        self._plug = plug
        self._deadline = deadline
        self._heard = heard
        self._inbox = ""
        self.limit = 0
        """The most bytes of a message beside its headers."""

    def greet(
        self, identity: Identity, credentials: str, token: str, greeting: bytes, *, encrypted: bool
    ) -> None:
        """
        Say who we are, and where we want the answers; `greeting` is what the server said before it was encrypted.
        """
        verb, said = _parts(greeting) if greeting else self._line()
        if verb != b"INFO":
            raise UnusualError("no server of NATS")
        info = msgspec.json.decode(said, type=_Info)
        if info.tls_required > encrypted or not info.headers or bool(credentials) > bool(info.nonce):
            raise UnusualError("it wants encryption, or knows no headers or keys")
        shown = Credential.read(credentials) if credentials else None
        nkey, jwt, sig = _signed(shown, credentials, info.nonce) if shown else ("", "", "")
        hello = _Hello(
            verbose=False, pedantic=False, headers=True, no_responders=True, lang="python3", version="0",
            protocol=1, name="client", nkey=nkey, jwt=jwt, sig=sig, auth_token=token,
        )  # fmt: skip
        self.limit = max(info.max_payload - HEADERS, 1)
        inbox = shown.inbox_of(identity) if shown else identity.inbox
        self._inbox = f"{inbox}.{os.urandom(11).hex()}"
        greeting = b"CONNECT %b\r\nSUB %b 1\r\n" % (msgspec.json.encode(hello), self._inbox.encode())
        self._plug.sendall(greeting)

    def ask(self, subject: str, data: bytes, headers: Mapping[str, str]) -> Parcel:
        """Send, and wait for the answer."""
        places = f"{subject} {self._inbox}"
        if headers:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            noted = f"NATS/1.0\r\n{head}\r\n".encode()
            first = f"HPUB {places} {len(noted)} {len(noted) + len(data)}\r\n".encode()
            self._plug.sendall(b"".join((first, noted, data, b"\r\n")))
        else:
            self._plug.sendall(b"".join((f"PUB {places} {len(data)}\r\n".encode(), data, b"\r\n")))
        return self._answer()

    def _answer(self) -> Parcel:
        while True:
            verb, said = self._line()
            match verb:
                case b"MSG":
                    return Parcel(self._octets(int(said.split()[-1])))
                case b"HMSG":
                    noted, size = map(int, said.split()[-2:])
                    whole = self._octets(size)
                    headers = _headers(whole[:noted])
                    if _ERROR_CODE in headers:
                        refusal = msgspec.msgpack.decode(whole[noted:], type=Refusal)
                        raise RefusedError(refusal.code, refusal.message, retry_after_ms=refusal.retry_after)
                    return Parcel(whole[noted:], headers)
                case b"PING":
                    self._plug.sendall(b"PONG\r\n")
                case b"PONG" | b"+OK" | b"INFO":
                    pass
                case _:
                    raise UnusualError(f"the server said {verb!r} {said!r}")

    def _line(self) -> tuple[bytes, bytes]:
        self._wait()
        line = self._heard.readline(_LINE)
        if not line.endswith(b"\r\n"):
            raise UnusualError("the server broke off")
        return _parts(line)

    def _octets(self, size: int) -> bytes:
        self._wait()
        data: bytes = self._heard.read(size + 2)
        if len(data) != size + 2:
            raise UnusualError("the server broke off")
        return data[:-2]

    def _wait(self) -> None:
        """No single read takes longer than what is left of the time."""
        if (left := self._deadline.left()) <= 0:
            raise UnusualError("no answer in time")
        self._plug.settimeout(left)


def _parts(line: bytes) -> tuple[bytes, bytes]:
    verb, _, said = line.strip().partition(b" ")
    return verb, said


def _headers(noted: bytes) -> dict[str, str]:
    """The headers of an answer; one that the server itself gives is unusual."""
    first, *lines = noted.decode().strip().split("\r\n")
    headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if first.strip() != "NATS/1.0":
        raise UnusualError("nobody answers")
    return headers


def _signed(shown: Credential, path: str, nonce: str) -> tuple[str, str, str]:
    """
    Public key or the statement about it, one of them empty, and a signature by the seed that the file at `path` holds.
    """
    import base64

    import nkeys as untyped  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

    nkeys: Any = untyped
    try:
        pair = nkeys.from_seed(bytearray(shown.seed.encode()))
    except nkeys.NkeysError as error:
        raise UnusualError(f"{path} holds no seed") from error
    try:
        signature = base64.b64encode(pair.sign(nonce.encode())).decode()
        return "" if shown.jwt else pair.public_key.decode(), shown.jwt, signature
    finally:
        pair.wipe()
