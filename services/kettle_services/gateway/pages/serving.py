"""The pages as routes of the web application: what happens around each request, the same for all of them."""

import re
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle_services.gateway.pages import notices
from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame, NavigationGroup, NavigationLink
from kettle_services.gateway.pages.live import LiveParts, SharedSubject, Watch, part_event
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.page import Form, Handler, Led, Page, Shown
from kettle_services.gateway.pages.rendering import Templates
from kettle_services.gateway.pages.watched_part import MadePart
from kettle_services.gateway.pages.wording import stamp
from kettle_services.gateway.rest.application import Admitted, Asked, Front
from kettle_services.gateway.rest.parameters import fields_of, parameters_of
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import NotModified, refused_field
from kettle_services.gateway.sessions.browser_sessions import HELD
from kettle_services.gateway.sessions.login_view import LoginView
from kettle_wire.rest.problem import Problem

_GROUPS: Final = ("Jobs", "Pool", "Administration")
_HEADERS: Final = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding, Authorization, Cookie",
}
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_NO_ZONE: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)Z?)?")
_TIMES: Final = frozenset({"as_of", "since", "until", "at"})
_A_YEAR: Final = 365 * 86400
_PERSON: Final = web.RequestKey("kettle-person", Person)
"""Who asks, for a page that says why it cannot be shown."""

_Answers = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """Shows pages, carries out forms, and says refusals to people."""

    def __init__(
        self, navigation: Sequence[Page], *, pool: str, prefix: str = "", proxies: Collection[str] = ()
    ) -> None:
        """
        `navigation`: the pages that have a place in it; `pool`: the name of the pool; `prefix`: under which the one proxy in front
        has the pages, unless one of `proxies` says it itself.
        """
        self._templates = Templates()
        self._assets = Assets()
        self._pool = pool
        self._prefix = prefix
        self._proxies = proxies
        linked = [(page.link, page) for page in navigation if page.link is not None]
        linked.sort(key=lambda each: (_GROUPS.index(each[0].group), each[0].place))
        self._navigation = [
            (group, [page for _, page in pages])
            for group, pages in groupby(linked, lambda each: each[0].group)
        ]

    def add_to(
        self,
        application: web.Application,
        front: Front,
        handlers: Mapping[Page | Form, Handler],
        live: LiveParts,
        watches: Mapping[Page, Callable[[Asked], Watch]] = MappingProxyType({}),
    ) -> None:
        """Serve these; `watches`: what tells pages of changes that are not about jobs."""
        router = application.router
        router.add_get("/assets/{name}", self._assets.serve)
        router.add_get("/favicon.ico", self._favicon)
        for declared, handler in handlers.items():
            if isinstance(declared, Form):
                router.add_post(declared.path, self._form(front, declared, handler))
                continue
            router.add_get(declared.path, self._page(front, declared, handler))
            if declared.live:
                router.add_get(
                    f"/live{declared.path}", self._live(front, declared, handler, live, watches.get(declared))
                )

    def _page(self, front: Front, page: Page, handler: Handler) -> _Answers:
        level = Level[page.level]

        async def answer(request: web.Request) -> web.StreamResponse:
            admitted = await front.admit(request, level)
            request[_PERSON] = admitted.person
            if (better := _plainer(request)) is not None:
                return self._led(request, better)
            asked = Asked(admitted.person, parameters_of(page, request), None, request)
            _require_past(getattr(asked.parameters, "as_of", None))
            return await self._answered(front, page, handler, asked, admitted)

        return answer

    def _form(self, front: Front, form: Form, handler: Handler) -> _Answers:
        level = Level[form.level]

        async def answer(request: web.Request) -> web.StreamResponse:
            admitted = await front.admit(request, level)
            request[_PERSON] = admitted.person
            fields = await fields_of(form.fields, request)
            asked = Asked(admitted.person, parameters_of(form, request), fields, request)
            return await self._answered(front, form, handler, asked, admitted)

        return answer

    async def _answered(
        self, front: Front, declared: Page | Form, handler: Handler, asked: Asked, admitted: Admitted
    ) -> web.StreamResponse:
        request = asked.request
        try:
            answer = await handler(asked)
        except NotModified as known:
            return web.Response(status=304, headers={**_HEADERS, "ETag": known.etag})
        match answer:
            case Led(path=path, query=query, notice=notice):
                response: web.StreamResponse = self._led(
                    request, path + (f"?{urlencode(query)}" if query else ""), status=303
                )
                if notice is not None:
                    self._carry(request, response, notices.packed(notice), notices.LASTS_S)
            case Shown():
                frame = self.frame(request, declared, asked, front, answer)
                notice = notices.unpacked(request.cookies.get(notices.COOKIE, ""))
                frame = msgspec.structs.replace(frame, notice=notice)
                html = self._templates.render(answer.template or declared.template, frame, answer.view)
                response = _html(request, html, answer.status)
                if notices.COOKIE in request.cookies:
                    self._carry(request, response, "", 0)
                for name, value in answer.cookies.items():
                    response.set_cookie(
                        name, value, max_age=_A_YEAR, path=frame.prefix or "/", httponly=True, samesite="Lax"
                    )
            case _:
                response = answer
        if not response.prepared:
            response.headers.update(admitted.headers)
        return response

    def _carry(self, request: web.Request, response: web.StreamResponse, text: str, lasts: int) -> None:
        path = self.prefix_of(request) or "/"
        response.set_cookie(notices.COOKIE, text, max_age=lasts, path=path, httponly=True, samesite="Strict")

    def _live(
        self,
        front: Front,
        page: Page,
        handler: Handler,
        live: LiveParts,
        watch: Callable[[Asked], Watch] | None,
    ) -> _Answers:
        level = Level[page.level]

        async def answer(request: web.Request) -> web.StreamResponse:
            admitted = await front.admit(request, level)
            parameters = parameters_of(page, request)
            asked = Asked(admitted.person, parameters, None, request, admission=admitted.admission)

            shared = page.subject(asked) if page.subject is not None else None
            public = shared is not None and shared.public
            last: tuple[Shown, MadePart] | None = None

            def rights() -> tuple[bool, ...]:
                front.require(asked.person, level)
                return tuple(front.may(asked.person, each) for each in Level)

            async def make() -> MadePart:
                nonlocal last
                before, last = last, None  # after a refusal the reader needs it again
                shown = await handler(asked)
                assert isinstance(shown, Shown), "a page with a live part has nothing else"
                if before is None or shown is not before[0]:
                    frame = self.frame(request, page, asked, front, shown)
                    if public:  # others are shown it, too
                        person = asked.person.name if asked.person.name in shown.owners else ""
                        frame = msgspec.structs.replace(frame, person=person, csrf="")
                    text = self._templates.render(page.live, frame, shown.view)
                    before = shown, MadePart(part_event(text, place=frame.place), shown.owners)
                last = before
                return before[1]

            told: SharedSubject | Watch | None = watch(asked) if watch is not None else None
            if shared is not None:
                told = SharedSubject(shared, self._key(request, asked, shared, rights()))
            return await live.send(asked, make, rights, told)

        return answer

    def _key(self, request: web.Request, asked: Asked, shared: LiveSubject, rights: Hashable) -> Hashable:
        """What is the same for all who are shown the same part of a page."""
        own = "" if shared.public else (asked.person.name, request[HELD].csrf if HELD in request else "")
        chosen = request.cookies.get(shared.choices, "") if shared.choices else ""
        return request.rel_url.raw_path_qs, self.prefix_of(request), chosen, rights, own

    def frame(
        self, request: web.Request, declared: Page | Form, asked: Asked, front: Front, shown: Shown
    ) -> Frame:
        """What is around a page."""
        person = asked.person
        path = shown.path or request.path.removeprefix("/live")
        return self._frame(
            request,
            title=shown.title or declared.title,
            path=path,
            person=person,
            may_write=front.may(person, Level.WRITE),
            visible=lambda page: front.may(person, Level[page.level]),
            as_of=getattr(asked.parameters, "as_of", None),
            has_past=isinstance(declared, Page) and declared.has_past,
            is_live=isinstance(declared, Page) and bool(declared.live),
            frames=shown.frames,
        )

    def _frame(
        self,
        request: web.Request,
        *,
        title: str,
        path: str,
        person: Person | None = None,
        visible: Callable[[Page], bool] = lambda _page: True,
        **more: Any,
    ) -> Frame:
        return Frame(
            title=title,
            path=path,
            query=dict(request.query),
            prefix=self.prefix_of(request),
            pool=self._pool,
            person=person.name if person else "",
            csrf=request[HELD].csrf if HELD in request else "",
            theme=_theme(request),
            now=datetime.now(UTC),
            navigation=[
                NavigationGroup(
                    group,
                    [
                        NavigationLink(page.title, page.path, here=_is_under(path, page.path))
                        for page in pages
                        if visible(page)
                    ],
                )
                for group, pages in self._navigation
            ],
            assets=self._assets.addresses,
            **more,
        )

    def prefix_of(self, request: web.Request) -> str:
        """What a proxy of ours says, else what is set."""
        said = request.headers.get("X-Forwarded-Prefix", "").rstrip("/")
        if said and request.remote in self._proxies and _PREFIX.fullmatch(said):
            return said
        return self._prefix

    def _led(self, request: web.Request, address: str, *, status: int = 302) -> web.Response:
        return web.Response(
            status=status, headers={**_HEADERS, "Location": self.prefix_of(request) + address}
        )

    def problem(self, request: web.Request, problem: Problem) -> web.Response | None:
        """A refusal as a page, for somebody who asked with a browser."""
        if "text/html" not in request.headers.get("Accept", ""):
            return None
        frame = self._frame(
            request,
            title=problem.title,
            path=request.path,
            person=request.get(_PERSON),
            as_of=_moment_of(request),
            has_past=True,
        )
        return _html(request, self._templates.render("problem.html", frame, problem), problem.status)

    def login(self, request: web.Request, view: LoginView, status: int) -> web.Response:
        """Where somebody signs in."""
        frame = self._frame(request, title=view.title, path="/login", visible=lambda _page: False)
        response = _html(request, self._templates.render("login.html", frame, view), status)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _favicon(self, request: web.Request) -> web.Response:
        return self._led(request, self._assets.addresses["kettle.svg"])


def _html(request: web.Request, text: str, status: int) -> web.Response:
    """A page, compressed where its own address or another page of ours has led to it."""
    response = web.Response(text=text, status=status, content_type="text/html", headers=_HEADERS)
    # Another origin that may choose what the page repeats could learn from its size what else is in it: the token of forms.
    own = request.headers.get("Sec-Fetch-Site") in {"same-origin", "none"}
    if own and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response


def _plainer(request: web.Request) -> str | None:
    """
    An address without the fields of a form that were left empty, with each name once, and with the zone of times that have none, UTC;
    None: it is like that already.
    """
    said = {
        name: ",".join(
            _zoned(value) if name in _TIMES else value for value in request.query.getall(name) if value
        )
        for name in request.query
    }
    plain = [(name, value) for name, value in said.items() if value]
    if plain == list(request.query.items()):
        return None
    return request.rel_url.raw_path + (f"?{urlencode(plain, safe=',:@/*')}" if plain else "")


def _zoned(text: str) -> str:
    """A time as the interface takes it, of one as people write it."""
    found = _NO_ZONE.fullmatch(text)
    if found is None:
        return text
    clock = found[2] or "00:00"
    return f"{found[1]}T{clock}{'' if clock.count(':') == 2 else ':00'}Z"


def _require_past(moment: datetime | None) -> None:
    """Raises RequestRefused: nothing is known of it yet."""
    now = datetime.now(UTC)
    if moment is not None and moment > now:
        raise refused_field(
            "/query/as_of",
            f"as_of is {stamp(moment)}, which is not over yet: it is {stamp(now.replace(microsecond=0))}",
        )


def _moment_of(request: web.Request) -> datetime | None:
    """The moment that an address has; None: none, or one that no page shows."""
    try:
        moment = msgspec.convert(request.query.get("as_of"), datetime | None)
    except msgspec.ValidationError:
        return None
    shown = moment is not None and moment.tzinfo is not None and moment <= datetime.now(UTC)
    return moment if shown else None


def _theme(request: web.Request) -> str:
    theme = request.cookies.get("kettle_theme", "")
    return theme if theme in {"light", "dark"} else ""


def _is_under(path: str, page: str) -> bool:
    return path == page or (page != "/" and path.startswith(f"{page}/"))
