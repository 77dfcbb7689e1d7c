"""Whether a NATS server lets everybody in."""

import socket
from typing import Final
from urllib.parse import urlsplit

import msgspec

_WITHIN_S: Final = 2.0
_PORT: Final = 4222
_LONGEST: Final = 64 * 1024
_INFO: Final = b"INFO "


class _Info(msgspec.Struct, frozen=True):
    """What a server says of itself as far as it matters here."""

    auth_required: bool = False
    tls_verify: bool = False


def open_servers(url: str) -> list[str]:
    """
    The servers of a bus that ask for no credentials, as HOST:PORT; one that does not answer is none of them.
    """
    found: list[str] = []
    for server in url.split(","):
        address = urlsplit(server.strip() if "://" in server else f"nats://{server.strip()}")
        host, port = address.hostname or "", address.port or _PORT
        if address.scheme == "nats" and _is_open(host, port):
            found.append(f"{host}:{port}")
    return found


def _is_open(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_WITHIN_S) as line, line.makefile("rb") as said:
            first = said.readline(_LONGEST)
        if not first.startswith(_INFO):
            return False
        info = msgspec.json.decode(first[len(_INFO) :], type=_Info)
    except (OSError, msgspec.MsgspecError):
        return False
    return not info.auth_required and not info.tls_verify


def warning(servers: list[str]) -> str:
    """What is said of open servers; empty if there are none."""
    if not servers:
        return ""
    return (
        f"the bus at {', '.join(servers)} asks for no credentials: everybody who reaches it can run jobs as anybody and stop "
        "the pool. Give each service a key of its own (docs/how-to/run-against-your-own-servers.md)"
    )
