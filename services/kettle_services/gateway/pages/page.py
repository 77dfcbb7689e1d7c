"""What a page is declared with, and what its handler answers."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, Literal

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.notices import Notice
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.route import Moment

Group = Literal["Jobs", "Pool", "Administration"]


class Link(msgspec.Struct, frozen=True):
    """Where a page stands in the navigation."""

    group: Group
    place: int
    """Within the group, the smallest first."""


class FromThePast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    Of a page of the present that takes none: links from the past have the moment, which goes on from there.
    """

    as_of: Moment | None = None


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a page that takes none."""


class Page:
    """One page."""

    def __init__(
        self,
        path: str,
        title: str,
        *,
        template: str,
        parameters: type[msgspec.Struct] = NoParameters,
        level: str = "READ",
        link: Link | None = None,
        live: str = "",
        subject: Callable[[Asked], LiveSubject] | None = None,
        only_now: bool = False,
    ) -> None:
        """
        `parameters`: what path and query have; a field `as_of` says that the page can show the past.  `level`: what somebody must
        have to see it.  `live`: the template of the part that is sent again when something has changed, which is on the page
        in an element with `frame.live`.  `subject`: which jobs that part is about, so that it is made again for these alone, and once for all
        who see the same; None: it is made for each reader whenever anything has changed.  `only_now`: it takes `as_of` only because links from the past have it, and shows the present.
        """
        self.path: Final = path
        self.title: Final = title
        self.template: Final = template
        self.parameters: Final = parameters
        self.level: Final = level
        self.link: Final = link
        self.live: Final = live
        self.subject: Final = subject
        self.has_past: Final = "as_of" in parameters.__struct_fields__ and not only_now

    def __repr__(self) -> str:
        return f"Page({self.path})"


class Form:
    """Something that is done when a form is sent: by POST, with the hidden field `csrf` beside its own."""

    def __init__(
        self,
        path: str,
        title: str,
        *,
        fields: type[msgspec.Struct],
        template: str,
        parameters: type[msgspec.Struct] = NoParameters,
        level: str = "WRITE",
    ) -> None:
        """
        `fields`: what is sent, where a list is a field that comes more than once.  `template`: of the page that is shown where the
        answer leads nowhere else, for example because something has to be said about the fields.
        """
        self.path: Final = path
        self.title: Final = title
        self.fields: Final = fields
        self.template: Final = template
        self.parameters: Final = parameters
        self.level: Final = level

    def __repr__(self) -> str:
        return f"Form({self.path})"


class Shown(msgspec.Struct, frozen=True):
    """
    A page as it is to be seen; who watches it and is answered with the same object as before has the newest.
    """

    view: msgspec.Struct
    title: str = ""
    """Instead of that of the declaration."""
    frames: Mapping[str, int] = {}
    """How far each queue has been read for it."""
    cookies: Mapping[str, str] = {}
    """Choices of the reader to remember."""
    status: int = 200
    template: str = ""
    """Instead of that of the declaration."""
    path: str = ""
    """Of the page that a form is answered with, which is not that of the form."""
    owners: Collection[str] = ()
    """Of what a public part shows: who sees it otherwise than all others."""


class Led(msgspec.Struct, frozen=True):
    """Go on there: what a form answers when all is done."""

    path: str
    """Of a page."""
    query: Mapping[str, str] = {}
    notice: Notice | None = None
    """What is said there."""


Handler = Callable[[Asked], Awaitable[Shown | Led | web.StreamResponse]]
