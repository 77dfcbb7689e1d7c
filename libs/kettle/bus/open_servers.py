"""What NATS servers say of themselves before anybody signs in, and whether they let everybody in."""

from typing import Final
from urllib.parse import urlsplit

import msgspec

from kettle.bus.encryption import connected, dial, is_wanted

_SCHEMES: Final = frozenset({"nats", "tls"})
WITHIN_S: Final = 2.0
"""How long a server may take to greet, and to encrypt before that."""
_PORT: Final = 4222
_LONGEST: Final = 64 * 1024
_INFO: Final = b"INFO "


class Greeting(msgspec.Struct, frozen=True):
    """What a server says of itself."""

    version: str = ""
    jetstream: bool = False
    max_payload: int = 0
    auth_required: bool = False
    tls_verify: bool = False

    @property
    def open(self) -> bool:
        """Whether it asks for no credentials."""
        return not self.auth_required and not self.tls_verify


def open_servers(url: str, ca: str = "", *, within: float = WITHIN_S) -> list[str]:
    """
    The servers of a bus that ask for no credentials, as HOST:PORT; one that does not answer in time is none of them.

    Where connections are encrypted (`ca` is as in `NatsBus.connect`) they are encrypted here, too.
    """
    return [
        name for name, said in greetings(url, ca, within=within).items() if said is not None and said.open
    ]


def greetings(url: str, ca: str = "", *, within: float = WITHIN_S) -> dict[str, Greeting | None]:
    """
    What each server of a bus says first, by HOST:PORT; None: nothing in time, or nothing that a server of NATS
    says.
    """
    found: dict[str, Greeting | None] = {}
    encrypted = is_wanted(url, ca)
    for server in url.split(","):
        address = urlsplit(server.strip() if "://" in server else f"nats://{server.strip()}")
        host, port = address.hostname or "", address.port or _PORT
        if address.scheme in _SCHEMES:
            found[f"{host}:{port}"] = _greeting_of(host, port, ca if encrypted else None, within)
    return found


def _greeting_of(host: str, port: int, ca: str | None, within: float) -> Greeting | None:
    try:
        first = _greeting(host, port, ca, within)
        if not first.startswith(_INFO):
            return None
        return msgspec.json.decode(first[len(_INFO) :], type=Greeting)
    except (OSError, UnicodeError, msgspec.MsgspecError):
        return None


def _greeting(host: str, port: int, ca: str | None, within: float) -> bytes:
    plug, first = (
        (connected(host.encode("ascii"), port, within), b"")
        if ca is None
        else dial(host.encode("ascii"), port, ca, within)
    )
    with plug, plug.makefile("rb") as said:
        return first or said.readline(_LONGEST)


def warning(servers: list[str]) -> str:
    """What is said of open servers; empty if there are none."""
    if not servers:
        return ""
    return (
        f"the bus at {', '.join(servers)} asks for no credentials: everybody who reaches it can run jobs as anybody and stop "
        "the pool. Give each service a key of its own (docs/how-to/run-against-your-own-servers.md)"
    )
