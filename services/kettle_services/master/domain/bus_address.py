"""Where the master's own NATS server listens, and by which name it is reached there."""

from typing import Final

_ANYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not used
_LAST_PORT: Final = 65535


def is_place(text: str) -> bool:
    """Whether a text is a host and a port."""
    host, colon, port = text.rpartition(":")
    return bool(colon and host) and port.isdecimal() and 0 < int(port) <= _LAST_PORT


def place_of(text: str) -> tuple[str, int]:
    """Host and port of such a text; an address of IPv6 may have brackets."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def name_of(host: str, own: str) -> str:
    """The name by which clients connect to it: `own`, if it listens on all addresses."""
    return own if host in _ANYWHERE else host
