"""
The bus's driver, nats-py, without its transport over WebSockets: we speak TCP.

For that transport it would load aiohttp, which takes longer than all the rest of it.  Whoever wants aiohttp for itself
gets it as ever.
"""

import sys
from importlib import import_module

if "aiohttp" not in sys.modules:
    sys.modules["aiohttp"] = None  # type: ignore[assignment]  # None means: is not to be had
    try:
        import_module("nats.aio.transport")
    finally:
        del sys.modules["aiohttp"]

from nats import errors, micro
from nats.aio.client import Client, Server, Srv
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request

__all__ = [
    "ERROR_CODE_HEADER",
    "ERROR_HEADER",
    "Client",
    "Msg",
    "Request",
    "Server",
    "Srv",
    "Subscription",
    "TcpTransport",
    "errors",
    "micro",
]
