"""What people ask the gateway over the bus: where its pages are, and a way in for their browsers."""

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat


class QueryAddress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a browser or a program finds the gateway."""


class GatewayAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is."""

    url: str
    """Empty: it serves no pages, and no REST interface."""


class MakeLoginLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make an address by which a browser signs in as the caller, once and within a minute."""


class LoginLink(msgspec.Struct, frozen=True, kw_only=True):
    """Where a browser signs in; nobody else is to see it."""

    url: str
    expires: float
    """Seconds since the epoch."""


QUERY_ADDRESS = Endpoint(
    "gateway", "query_address", QueryAddress, GatewayAddress, callers=(Caller.USER,), repeat=Repeat.QUERY
)
MAKE_LOGIN_LINK = Endpoint(
    "gateway", "make_login_link", MakeLoginLink, LoginLink, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
"""Not for who has come by token: the session would outlive that."""
