"""
What of the headers of a request reaches the job, and what of the headers of its answer reaches the person. Pure.

A job gets no credential of the pool, and nothing that it could take for the gateway's word and somebody else has said.
"""

import re
from collections.abc import Iterable, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

import msgspec

Headers = Sequence[tuple[str, str]]

OWN_COOKIES: Final = "kettle"
"""How the names of the gateway's cookies begin, behind what browsers check."""
_CHECKED: Final = ("__host-", "__secure-")
_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers of one connection (RFC 9110, 7.6.1)."""
_SAID_BY_US: Final = frozenset({
    "forwarded", "via", "x-real-ip", "x-remote-user", "remote-user", "x-csrf-token", "expect", "content-length", "host",
})  # fmt: skip
"""What only the gateway says to a job, or what it says afresh."""
_NOT_FOR_JOBS: Final = ("x-forwarded-", "x-kettle-", "x-auth-request-", "proxy-")
_NOT_OF_JOBS: Final = frozenset({
    "alt-svc", "clear-site-data", "content-length", "nel", "public-key-pins", "report-to", "reporting-endpoints",
    "service-worker-allowed", "set-cookie", "strict-transport-security",
})  # fmt: skip
"""What speaks for a whole host, of which a job has one path, or what is said afresh."""
_NAME: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-]+")
_PLACES: Final = frozenset({"location", "content-location"})
_MOST_COOKIES: Final = 50


class Visit(msgspec.Struct, frozen=True):
    """Under which address a person reaches a service."""

    person: str
    address: str
    """From where, as far as it is known."""
    scheme: str
    host: str
    """As the browser knows it, with its port."""
    prefix: str
    """The whole path before the service's own, of a proxy in front too."""
    strips: bool
    """Whether the job gets its paths without the prefix."""


def to_job(headers: Iterable[tuple[str, str]], visit: Visit, *, bearer: bool) -> list[tuple[str, str]]:
    """The headers that the job gets; `bearer`: the header Authorization is for the gateway."""
    pairs = list(headers)
    dropped = _HOP | _SAID_BY_US | _named_by_connection(pairs)
    sent: list[tuple[str, str]] = [("Host", visit.host)]
    cookies: list[str] = []
    for name, value in pairs:
        lower = name.lower()
        if lower in dropped or lower.startswith(_NOT_FOR_JOBS) or not _NAME.fullmatch(name):
            continue  # a name with an underscore can pass for one of ours where names become variables
        if lower == "cookie":
            cookies += [each for each in map(str.strip, value.split(";")) if each and not _is_own(each)]
        elif lower != "authorization" or not (bearer or value.lower().startswith("bearer ")):
            sent.append((name, value))
    if cookies:
        sent.append(("Cookie", "; ".join(cookies)))
    return [
        *sent,
        ("X-Forwarded-For", visit.address),
        ("X-Forwarded-Host", visit.host),
        ("X-Forwarded-Prefix", visit.prefix),
        ("X-Forwarded-Proto", visit.scheme),
        ("X-Forwarded-User", visit.person),
    ]


def from_job(headers: Iterable[tuple[str, str]], visit: Visit) -> list[tuple[str, str]]:
    """The headers that the person gets of what a job has answered."""
    pairs = list(headers)
    dropped = _HOP | _NOT_OF_JOBS | _named_by_connection(pairs)
    sent: list[tuple[str, str]] = []
    cookies = 0
    for name, value in pairs:
        lower = name.lower()
        if lower == "set-cookie" and cookies < _MOST_COOKIES:
            cookies += 1
            sent += [("Set-Cookie", kept) for kept in _of_this_path(value, visit)]
        elif lower in dropped or not _NAME.fullmatch(name):
            continue
        elif lower in _PLACES:
            sent.append((name, place(value, visit)))
        else:
            sent.append((name, value))
    return sent


def place(said: str, visit: Visit) -> str:
    """
    Where a job's answer leads to, under the address that the person has; what leads elsewhere stays as it is.
    """
    parts = urlsplit(said)
    if parts.netloc:
        if parts.netloc.lower() != visit.host.lower() or parts.scheme not in {"", "http", "https"}:
            return said
        # A job does not know by which scheme the person came.
        said = said[said.index(parts.netloc) + len(parts.netloc) :] or "/"
        if not said.startswith("/"):
            said = f"/{said}"
    if not said.startswith("/") or not visit.strips or _is_under(said, visit.prefix):
        return said
    return visit.prefix + said


def _is_under(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}/", f"{prefix}?"))


def _of_this_path(said: str, visit: Visit) -> list[str]:
    """
    A cookie of a job, for its own path only; none if it would be taken for one of the gateway's or of the whole host.
    """
    cookie = SimpleCookie()
    try:
        cookie.load(said)
    except CookieError:
        return []
    kept: list[str] = []
    for name, morsel in cookie.items():
        if name.lower().startswith("__host-") or _is_own(name):
            continue
        morsel["domain"] = ""
        path = str(morsel["path"])
        if not path.startswith("/"):
            path = "/"
        if not _is_under(path, visit.prefix):
            morsel["path"] = visit.prefix + (path if visit.strips else "/")
        kept.append(morsel.OutputString())
    return kept


def _is_own(cookie: str) -> bool:
    name = cookie.partition("=")[0].strip().lower()
    for checked in _CHECKED:
        name = name.removeprefix(checked)
    return name.startswith(OWN_COOKIES)


def _named_by_connection(headers: Headers) -> frozenset[str]:
    """Those that the header Connection says are of this connection only."""
    return frozenset(
        each.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for each in value.split(",")
    )
