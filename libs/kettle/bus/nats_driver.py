"""
nats-py, the driver of the bus, without the web client that it would load for its transport over WebSockets.

To nats-py aiohttp is optional, and our own web pages need it, so it is always installed: loading it would take half as
long again as all else that a service loads, and 10 MiB in each. We speak TCP. A module that wants aiohttp for itself gets it as
ever; `docs/decisions/0070` has the figures.
"""

import sys
from importlib import import_module
from typing import Final

_OPTIONAL: Final = "aiohttp"


def _load() -> None:
    """Load the client where that module is not to be had: so Python itself understands None."""
    if _OPTIONAL in sys.modules:
        return  # it is loaded already, and costs nothing more
    sys.modules[_OPTIONAL] = None  # type: ignore[assignment]  # as above
    try:
        import_module("nats.aio.client")
    finally:
        del sys.modules[_OPTIONAL]


_load()

from nats import errors, micro  # noqa: E402 - after the line above
from nats.aio.client import Client, RawCredentials, Server  # noqa: E402 - after the line above
from nats.aio.msg import Msg  # noqa: E402 - after the line above
from nats.aio.subscription import Subscription  # noqa: E402 - after the line above
from nats.aio.transport import Transport  # noqa: E402 - after the line above
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request  # noqa: E402 - after the line above

__all__ = [
    "ERROR_CODE_HEADER",
    "ERROR_HEADER",
    "Client",
    "Msg",
    "RawCredentials",
    "Request",
    "Server",
    "Subscription",
    "Transport",
    "errors",
    "micro",
]
