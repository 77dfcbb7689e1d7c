"""
Requests of Kettle's own by which a running job publishes ports.

    publish NAME:PORT/KIND    the address at the gateway, when that has it
    unpublish NAME            0
"""

from collections.abc import Callable
from typing import Final, Protocol

from kettle.published.services import Service, ServiceError, parse_service
from kettle_services.starter.chirp.waits import Pause, Talk
from kettle_wire.commands.chirp import Trouble

_LOOK_S: Final = 0.1
_PATIENCE_S: Final = 30.0
"""How long a program waits for the gateway; its service is published whenever that comes."""


class Publishing(Protocol):
    """What a running job publishes, and changes."""

    def publish(self, service: Service) -> None:
        """One more, or the same with another port; raises ServiceError."""
        ...

    def unpublish(self, name: str) -> None:
        """One less; raises ServiceError: there is none of this name."""
        ...

    def address_of(self, service: Service) -> str:
        """Where people find it; empty: the gateway does not have it yet."""
        ...


def publish(text: str, publishing: Publishing, say: Callable[[bytes], object]) -> Talk:
    """Publish, and wait until the gateway has it."""
    try:
        service = parse_service(text)
    except ServiceError:
        say(b"%d\n" % Trouble.INVALID_REQUEST)
        return
    try:
        publishing.publish(service)
    except ServiceError:
        say(b"%d\n" % Trouble.TOO_MANY_OPEN)
        return
    for _ in range(int(_PATIENCE_S / _LOOK_S)):
        if address := publishing.address_of(service).encode():
            say(b"%d\n%b" % (len(address), address))
            return
        yield Pause(_LOOK_S)
    say(b"%d\n" % Trouble.TRY_AGAIN)


def unpublish(name: str, publishing: Publishing) -> Trouble | None:
    """Why it cannot be withdrawn; None: it is."""
    try:
        publishing.unpublish(name)
    except ServiceError:
        return Trouble.DOESNT_EXIST
    return None
