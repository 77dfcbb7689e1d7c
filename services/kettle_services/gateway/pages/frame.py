"""What is around every page: who looks, at which moment, and the addresses of the other pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from kettle_services.gateway.pages.notices import Notice
from kettle_services.gateway.pages.wording import ago, apart, clock, stamp
from kettle_services.gateway.rest.job_tables import frames_tag
from kettle_wire.rest.problem import FieldProblem

Value = str | int | bool | datetime | Sequence[str] | Sequence[int] | None


class NavigationLink(msgspec.Struct, frozen=True):
    """A page in the navigation."""

    title: str
    path: str
    here: bool


class NavigationGroup(msgspec.Struct, frozen=True):
    """Pages about the same thing."""

    title: str
    links: list[NavigationLink]


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a template knows besides its view."""

    title: str
    path: str
    """Of this page, without the prefix."""
    query: Mapping[str, str]
    """Of this page."""
    prefix: str = ""
    """Under which a proxy has the pages."""
    pool: str = ""
    person: str = ""
    """Who looks; empty on pages for everybody."""
    may_write: bool = False
    csrf: str = ""
    """Goes with every form; empty where the credential is a header, which no other site can send."""
    theme: str = ""
    """`light` or `dark`; empty: what the browser prefers."""
    now: datetime
    as_of: datetime | None = None
    """The moment that is shown; None: the present."""
    has_past: bool = False
    """Whether this page can show another moment."""
    is_live: bool = False
    """Whether a part of this page is sent again when something has changed."""
    frames: Mapping[str, int] = {}
    navigation: Sequence[NavigationGroup] = ()
    notice: Notice | None = None
    """What the form that led here has done."""
    assets: Mapping[str, str] = {}
    """Addresses of vendored and own files by their names."""

    @property
    def moment(self) -> datetime:
        """What times are counted from: the one that is shown."""
        return self.as_of if self.as_of is not None and self.has_past else self.now

    def url(self, path: str, **query: Value) -> str:
        """The address of a page of this pool; what shows the past leads to the past."""
        if self.as_of is not None:
            query = {"as_of": self.as_of, **query}
        return self._address(path, query)

    def here(self, **changes: Value) -> str:
        """A link to this page with other parameters, from the beginning of its list; None takes one away."""
        return self._address(self.path, {**self.query, "page": None, **changes})

    def mistakes(self, errors: Sequence[FieldProblem]) -> Mapping[str, str]:
        """What is wrong with which of this page's parameters."""
        found = {each.pointer.removeprefix("/query/").partition("/")[0]: each.detail for each in errors}
        return {name: said for name, said in found.items() if name in self.query}

    @property
    def back(self) -> str:
        """The address of this page below the prefix, for forms that lead back to it."""
        return self._address(self.path, dict(self.query)).removeprefix(self.prefix)

    @property
    def live(self) -> str:
        """Where this page's live part comes from."""
        return self._address(f"/live{self.path}", dict(self.query))

    @property
    def place(self) -> str:
        """A name for where the tables were of which this page is made; empty: it is not of these alone."""
        return frames_tag(self.frames) if self.frames else ""

    def asset(self, name: str) -> str:
        """The address of a file that pages need."""
        return self.prefix + self.assets[name]

    def _address(self, path: str, query: Mapping[str, Value]) -> str:
        said = {name: _text(value) for name, value in query.items() if value is not None}
        there = {name: value for name, value in said.items() if value}
        asked = urlencode(there, safe=",:@/*", quote_via=quote)
        return self.prefix + quote(path, safe="/:@.~") + (f"?{asked}" if asked else "")

    def when(self, moment: datetime | None) -> Markup:
        """A time, absolute and relative."""
        if moment is None:
            return Markup('<span class="none">\N{EN DASH}</span>')
        return Markup('<time datetime="{}">{} <span class="ago">{}</span></time>').format(
            stamp(moment),
            clock(moment, self.moment),
            ago(moment, self.now) if self.moment == self.now else apart(moment, self.moment),
        )

    def csrf_field(self) -> Markup:
        """The hidden field of a form."""
        return (
            Markup('<input type="hidden" name="csrf" value="{}">').format(self.csrf)
            if self.csrf
            else Markup()
        )

    def hidden(self, *without: str) -> Markup:
        """The parameters of this page as hidden fields, for a form that changes the others."""
        left = {name: value for name, value in self.query.items() if name not in {*without, "page"}}
        field = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup().join(field.format(name, value) for name, value in left.items())


def _text(value: Value) -> str:
    match value:
        case bool():
            return "1" if value else ""
        case datetime():
            return stamp(value)
        case str() | int():
            return str(value)
        case None:
            return ""
        case _:
            return ",".join(map(str, value))
