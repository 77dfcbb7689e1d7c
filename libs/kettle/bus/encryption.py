"""
Connections to NATS that are encrypted, or are not made: who wants TLS never sends anything in the clear.

The client speaks first: a server that is told `handshake_first` then says nothing before it is encrypted. One that is not
says `INFO` in the clear to everybody who connects; then the client connects once more, hears that, and encrypts before it sends
anything. What is said in the clear decides about nothing but that: a server that does not go on to encrypt is refused.

Only who encrypts loads `ssl` (see docs/decisions/0089).
"""

import socket
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    import ssl

_LONGEST: Final = 64 * 1024
_INFO: Final = b"INFO "
_TLS: Final = "tls://"


class _Info(msgspec.Struct, frozen=True):
    """What a server says of itself as far as it matters here."""

    tls_required: bool = False
    tls_available: bool = False


def is_wanted(url: str, ca: str) -> bool:
    """
    Whether connections are to be encrypted: all are if one is, so that no list of servers leads to one in the clear.
    """
    return bool(ca) or any(server.strip().startswith(_TLS) for server in url.split(","))


def encrypts(greeting: bytes) -> bool:
    """Whether this is the greeting of a server of NATS that goes on with TLS."""
    if not greeting.startswith(_INFO):
        return False
    try:
        info = msgspec.json.decode(greeting[len(_INFO) :], type=_Info)
    except msgspec.MsgspecError:
        return False
    return info.tls_required or info.tls_available


def dial(host: bytes, port: int, ca: str, within: float) -> "tuple[ssl.SSLSocket, bytes]":
    """
    A blocking connection that is encrypted, and the greeting if the server gave it before.

    `ca` is the path of the certificate of the authority that the server's certificate must come from; empty: one that
    the system knows. `host` is octets, because a text would have the tables of international names loaded.

    Raises:
        UntrustedError: it is not who it is meant to be, or does not encrypt.
        OSError: it cannot be reached.
    """
    import ssl

    from kettle.pki.contexts import client_context
    from kettle.pki.explanations import UntrustedError, failed, is_plain, plain

    context, where = client_context(ca), f"{host.decode('ascii')}:{port}"
    try:
        return _encrypted(connected(host, port, within), context, host), b""
    except (ssl.SSLError, ConnectionResetError) as error:
        if not is_plain(error):
            raise failed(error, where, ca) from error
    plug = connected(host, port, within)
    try:
        greeting = _line(plug)
        if not encrypts(greeting):
            raise UntrustedError(plain(where))
    except OSError as error:
        plug.close()
        raise UntrustedError(plain(where)) from error
    try:
        return _encrypted(plug, context, host), greeting
    except (ssl.SSLError, ConnectionResetError) as error:
        raise failed(error, where, ca) from error


def connected(host: bytes, port: int, within: float) -> socket.socket:
    """A blocking connection in the clear; no step of its use takes longer than `within` seconds."""
    place: Any = host
    plug = socket.create_connection((place, port), timeout=within)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plug


def _encrypted(plug: socket.socket, context: "ssl.SSLContext", host: bytes) -> "ssl.SSLSocket":
    name: Any = host
    try:
        return context.wrap_socket(plug, server_hostname=name)
    except BaseException:
        plug.close()
        raise


def _line(plug: socket.socket) -> bytes:
    """One line and nothing behind it: that belongs to TLS."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _LONGEST and (octet := plug.recv(1)):
        line += octet
    return bytes(line)
