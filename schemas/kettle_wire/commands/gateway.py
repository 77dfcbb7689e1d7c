"""
What is asked of the gateway over the bus: by people where its pages are, and a way in for their browsers; by shadows a way in for the
services of their jobs.
"""

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import JobId, Name, Number
from kettle_wire.sessions import SessionId


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


class AdmitServices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let the services of an attempt be published here; whose it is, the gateway asks its queue."""

    schedd: Name
    job: JobId
    attempt: Number


class ServicesAdmitted(msgspec.Struct, frozen=True, kw_only=True):
    """Where its tunnel goes, and what opens it."""

    url: str
    """Of the gateway, without a path."""
    ca: str = ""
    """Certificates in PEM that its certificate may come from, besides those that machines trust."""
    ticket: str
    left: float
    """Seconds after which it is over."""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"ServicesAdmitted({self.url})"


class AdmitMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Let a job of an interactive session reach the services of its other jobs; the gateway asks the queue whose they are.
    """

    schedd: Name
    job: JobId
    session: SessionId


class MakeAccess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Make what a program of the caller's shows to the gateway to reach services of jobs, for some minutes.
    """


class AccessMade(msgspec.Struct, frozen=True, kw_only=True):
    """What it shows, and to whom; nobody else is to see it."""

    url: str
    ca: str = ""
    """Certificates in PEM that the gateway's certificate may come from, besides those that machines trust."""
    token: str
    expires: float
    """Seconds since the epoch; connections that are open then go on."""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"AccessMade({self.url})"


QUERY_ADDRESS = Endpoint(
    "gateway", "query_address", QueryAddress, GatewayAddress, callers=(Caller.USER,), repeat=Repeat.QUERY
)
MAKE_LOGIN_LINK = Endpoint(
    "gateway", "make_login_link", MakeLoginLink, LoginLink, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
"""Not for who has come by token: the session would outlive that."""
ADMIT_MEMBER = Endpoint(
    "gateway", "admit_member", AdmitMember, AccessMade, callers=(Caller.SESSIONS,), repeat=Repeat.HARMLESS
)
MAKE_ACCESS = Endpoint(
    "gateway", "make_access", MakeAccess, AccessMade, callers=(Caller.USER,), repeat=Repeat.HARMLESS
)
"""Not for who has come by token, and shows that."""
ADMIT_SERVICES = Endpoint(
    "gateway",
    "admit_services",
    AdmitServices,
    ServicesAdmitted,
    callers=(Caller.SHADOW,),
    repeat=Repeat.HARMLESS,
)
