"""The sessions of one's own browsers, and links by which a browser begins one."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.rest.route import Moment, Route

Way = Literal["link", "token", "issuer"]
"""How somebody has signed in: by a one-time link, by a token, or at an issuer."""


class ListBrowserSessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the sessions of one's own browsers, the one that was used last first."""


class BrowserSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session."""

    id: str
    way: Way
    began: Moment
    used: Moment
    """When its last request came."""
    ends: Moment
    """Unless it is used before."""
    address: str
    """From where the person signed in."""
    agent: str
    """What the browser called itself."""
    current: bool
    """Whether this very request came by it."""


class BrowserSessions(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions of a person."""

    sessions: list[BrowserSession]


class EndSessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End sessions of one's own browsers."""

    ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=100)]


class SessionsEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Which were ended; others were over already."""

    ended: list[str]


class NameSessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End sessions of one's own browsers."""


class MakeLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Make an address by which a browser signs in with the credential of this request. It works once, within a minute.
    """


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Where a browser signs in."""

    path: str
    """Behind the address of the gateway; nobody else is to see it."""
    expires: Moment


LIST_BROWSER_SESSIONS = Route(
    "GET", "/browser-sessions", "list_browser_sessions", parameters=ListBrowserSessions, reply=BrowserSessions
)
END_BROWSER_SESSIONS = Route(
    "POST",
    "/browser-sessions:end",
    "end_browser_sessions",
    parameters=NameSessions,
    body=EndSessions,
    reply=SessionsEnded,
    errors=(413, 415, 422),
)
MAKE_LINK = Route("POST", "/browser-sessions:link", "make_login_link", parameters=MakeLink, reply=Link)
