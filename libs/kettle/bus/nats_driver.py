"""
The bus's driver, nats-py, without two parts of it that would take longer to load than all the rest.

Its transport over WebSockets loads aiohttp, and we speak TCP.  Its own layer over JetStream, `nats.js`, stands beside
ours (`kettle.bus.jetstream`); of that the client itself needs but the names of three headers.  Whoever wants one of them
for itself gets it as ever.
"""

import sys
from enum import StrEnum
from importlib import import_module
from types import ModuleType, SimpleNamespace


class Header(StrEnum):
    """The headers that the client looks at, as `nats.js` names them."""

    STATUS = "Status"
    DESCRIPTION = "Description"
    CONSUMER_STALLED = "Nats-Consumer-Stalled"


def _load() -> None:
    """Load the client with nothing in the places of the two, unless they are loaded already."""
    stand_in = ModuleType("nats.js")
    stand_in.api = SimpleNamespace(Header=Header)  # type: ignore[attr-defined]  # a module has what one gives it
    absent = {name: it for name, it in (("aiohttp", None), ("nats.js", stand_in)) if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]  # None means: is not to be had
    try:
        import_module("nats.aio.client")
    finally:
        for name in absent:
            del sys.modules[name]
    if "nats.js" in absent:
        # The client asks the package for it; whoever imports the real one replaces this.
        vars(sys.modules["nats"])["js"] = stand_in


_load()

from nats import errors, micro  # noqa: E402 - after the line above
from nats.aio.client import Client, Server, Srv  # noqa: E402 - after the line above
from nats.aio.msg import Msg  # noqa: E402 - after the line above
from nats.aio.subscription import Subscription  # noqa: E402 - after the line above
from nats.aio.transport import TcpTransport  # noqa: E402 - after the line above
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request  # noqa: E402 - after the line above

__all__ = [
    "ERROR_CODE_HEADER",
    "ERROR_HEADER",
    "Client",
    "Header",
    "Msg",
    "Request",
    "Server",
    "Srv",
    "Subscription",
    "TcpTransport",
    "errors",
    "micro",
]
