"""
`http://` and `https://` URLs: GET and PUT, piece by piece; a fetch that breaks goes on where it was.

Proxies are those of the job's environment (`http_proxy`, `https_proxy`, `no_proxy`).
"""

import codecs
import email.message
import email.utils
import http.client
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO, Final

import msgspec

from kettle import VERSION
from kettle.retry.backoff import Backoff
from kettle.transfer.plugin import Move
from kettle.transfer.plugins.command_line import run
from kettle.transfer.plugins.http_early_answers import handlers
from kettle.transfer.recording import Recording, error_of_status
from kettle.transfer.url_cache import copied
from kettle_wire.moved_files import (
    CONTACT,
    RESOLUTION,
    TRANSFER,
    ErrorType,
    Source,
)

METHODS: Final = ("http", "https")
TRIES: Final = 6
"""In a row without a new byte."""
BACKOFF: Final = Backoff(first=0.5, longest=30.0, spread=0.0)
"""Between two tries."""
CACHE_TRIES: Final = 2
"""Of a cache of the site, where the origin is another place to ask."""
SILENCE_S: Final = 60.0
"""How long a server may say nothing."""
_PIECE: Final = 1 << 20
_LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_PARTIAL, _UNCHANGED, _UNSATISFIABLE = 206, 304, 416
_GONE: Final = frozenset({404, 410})
_RANGE: Final = re.compile(r"bytes (?P<start>[0-9]+)-(?P<end>[0-9]+)/(?P<size>[0-9]+|\*)")
_NAMES: Final = ("ETag", "Last-Modified")
"""What a server may say of the state that a file is in."""
_SETTLED_S: Final = 60
"""
A file that changed so shortly before it was fetched may change again without another date (RFC 9110, 8.8.2.2).
"""

Headers = Mapping[str, str]
NONE: Final[Headers] = MappingProxyType({})

codecs.lookup(
    "idna"
)  # for names of hosts: when the first one is looked up, we may not be able to read our files any more


class HttpError(ValueError):
    """
    A server's answer that another try would not change; `status` is its number, 0 if there is none, `kind` HTCondor's word for it.
    """

    def __init__(self, why: str, status: int = 0, kind: ErrorType = "") -> None:
        super().__init__(why)
        self.status = status
        self.kind: ErrorType = kind or error_of_status(status)


class BrokenError(Exception):
    """One attempt failed; `why` is for people, `status` is set if a server has answered."""

    def __init__(self, why: str, status: int = 0, kind: ErrorType = "") -> None:
        super().__init__(why)
        self.why = why
        self.status = status
        self.kind: ErrorType = kind or error_of_status(status)


def main(arguments: Sequence[str]) -> int:
    """Be the plugin; its exit code."""
    return run(arguments, METHODS, fetch, send, refresh=Sources().refresh, deliver=deliver, remove=remove)


def fetch(url: str, path: str, headers: Headers = NONE) -> int:
    """Fetch a file."""
    with Path(path).open("wb") as sink:
        _complete(Download(url, sink, headers), sink, Recording(url))
        return sink.tell()


class Place(msgspec.Struct, frozen=True):
    """Where a file may come from."""

    url: str
    """By which it is asked for there."""
    server: str
    """URL of who serves it."""
    source: Source = "origin"
    proxy: str = ""
    """The proxy that the site wants; empty: that of the job's environment, if any."""
    tries: int = TRIES


class Sources:
    """Where the files of one transfer come from: a cache that cannot be reached once is not asked again."""

    def __init__(self) -> None:
        self._silent: set[str] = set()

    def refresh(self, move: Move, recording: Recording) -> tuple[int, str]:
        """
        Take the file that was fetched before if the server says that it is the same, or fetch it; its size, and what names
        its state if it may be kept.
        """
        places = self._places(move)
        cached = move.cached
        if cached is not None and _unchanged(places[-1], cached.tag):
            size = copied(cached, move.path)
            if size is not None:
                recording.served(move.url, "machine", hit=True)
                recording.compared("sha256", same=True)
                return size, ""
        for place in places[:-1]:
            try:
                return _fetched(place, move.path, recording)
            except HttpError as error:
                if error.kind in {CONTACT, RESOLUTION}:
                    self._silent.add(place.server)
        return _fetched(places[-1], move.path, recording)

    def _places(self, move: Move) -> list[Place]:
        """In the order in which they are tried."""
        origin, rule = Place(move.url, move.url), move.rule
        if rule is None or not rule.cache or (rule.fallback and rule.cache in self._silent):
            return [origin]
        if rule.form == "proxy":
            cache = Place(move.url, rule.cache, "cache", rule.cache, CACHE_TRIES)
        else:
            cache = Place(rule.address(move.url), rule.cache, "cache", tries=CACHE_TRIES)
        return [cache, origin] if rule.fallback else [cache]


def _fetched(place: Place, path: str, recording: Recording) -> tuple[int, str]:
    """Raises HttpError."""
    with Path(path).open("wb") as sink:
        download = Download(place.url, sink, NONE, proxy=place.proxy)
        _complete(download, sink, recording, place)
        recording.served(place.server, place.source, hit=download.hit)
        if download.sized:
            recording.compared("size", same=True)
        return sink.tell(), download.lasting if place.source == "origin" else ""


def _unchanged(place: Place, tag: str) -> bool:
    """Whether the server says so; what it does not say, the fetch that follows finds out."""
    asked = "If-None-Match" if tag.startswith('"') else "If-Modified-Since"
    request = urllib.request.Request(spelled(place.url), headers={asked: tag})  # noqa: S310 - run for http and https
    try:
        opened(request, place.proxy).close()
    except HttpError as error:
        return error.status == _UNCHANGED
    except BrokenError:
        return False
    return False


def _complete(download: "Download", sink: BinaryIO, recording: Recording, place: Place | None = None) -> None:
    """What is there after a break is kept as long as the server says that the file is still the same."""
    there = place or Place(download.url, download.url)
    tries = 0
    while True:
        before = sink.tell()
        try:
            download.go_on()
            return
        except HttpError as error:
            recording.failed(there.server, there.source, error.kind, str(error))
            raise
        except BrokenError as broken:
            recording.failed(there.server, there.source, broken.kind, broken.why)
            tries = 1 if sink.tell() > before else tries + 1
            if tries >= there.tries:
                raise HttpError(
                    f"{broken.why}, after {there.tries} tries", broken.status, broken.kind
                ) from broken
        if tries > 1:
            time.sleep(BACKOFF.length(tries - 2))


def send(url: str, path: str, headers: Headers = NONE) -> int:
    """Send a file as the body of a PUT; again from its beginning if it breaks."""
    return deliver(Move(url, path), Recording(url, upload=True), headers)


def deliver(move: Move, recording: Recording, headers: Headers = NONE) -> int:
    """As `send`, with notes."""
    url, path = move.url, move.path
    for tries in range(1, TRIES + 1):
        with Path(path).open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            said = {"Content-Length": str(size), "Content-Type": "application/octet-stream", **headers}
            request = urllib.request.Request(spelled(url), data=source, headers=said, method="PUT")  # noqa: S310 - run for http and https
            try:
                with closing(opened(request)):
                    return size
            except BrokenError as broken:
                recording.failed(url, "origin", broken.kind, broken.why)
                if tries == TRIES:
                    raise HttpError(
                        f"{broken.why}, after {TRIES} tries", broken.status, broken.kind
                    ) from broken
        time.sleep(BACKOFF.length(tries - 1))
    raise AssertionError("the last try returns or raises")


def remove(url: str, headers: Headers = NONE) -> None:
    """Have a file removed; one that is not there is removed already.  Directories are the server's affair."""
    if url.endswith("/"):
        return
    for tries in range(1, TRIES + 1):
        try:
            request = urllib.request.Request(spelled(url), headers=dict(headers), method="DELETE")  # noqa: S310 - run for http and https
            opened(request).close()
        except HttpError as error:
            if error.status not in _GONE:
                raise
        except BrokenError as broken:
            if tries == TRIES:
                raise HttpError(f"{broken.why}, after {TRIES} tries") from broken
            time.sleep(BACKOFF.length(tries - 1))
            continue
        return


class Download:
    """A file that arrives in one or several answers."""

    def __init__(self, url: str, sink: BinaryIO, headers: Headers = NONE, *, proxy: str = "") -> None:
        self.url: Final = url
        self._proxy = proxy
        self.hit: bool | None = None
        """Whether a cache that the answer came through had it; None: none says so."""
        self._headers = headers
        self._sink = sink
        self._tag = ""
        """What names the state of the file that was begun: only with it may a later answer continue an earlier one."""
        self._said: dict[str, str] = {}
        """All that names this state, by the answer with which it was begun."""
        self._size: int | None = None
        """Of the whole file, if the server has said so."""
        self.lasting = ""
        """The state of the file, if it can be asked for later."""

    @property
    def sized(self) -> bool:
        """Whether the server has said how long the file is."""
        return self._size is not None

    def go_on(self) -> None:
        """One try.  Raises BrokenError or HttpError."""
        have = self._sink.tell()
        if not self._tag:
            have, self._size = self._begin_anew(), None
        headers = dict(self._headers)
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": self._tag}
        try:
            request = urllib.request.Request(spelled(self.url), headers=headers)  # noqa: S310 - as above
            answered = opened(request, self._proxy)
        except BrokenError as broken:
            if broken.status == _UNSATISFIABLE:
                self._tag = ""  # it is not what it was
            raise
        with closing(answered) as answer:
            if answer.status == _PARTIAL:
                self._refuse_part(answer, have)
            else:
                if have:
                    have = self._begin_anew()
                self._size = answer.length
            self._note(answer.headers, begins=not have)
            self._take(answer)
        if self._size is not None and self._sink.tell() != self._size:
            if self._sink.tell() > self._size:
                self._tag = ""
            raise BrokenError(f"of {self._size} bytes the server has sent {self._sink.tell()}")

    def _note(self, headers: email.message.Message, *, begins: bool) -> None:
        """What an answer says of the file; its state is that of the answer which begins it."""
        if begins:
            self._said = {name: said for name in _NAMES if (said := headers[name])}
            self._tag = self.lasting = _lasting_name(headers)
        if "no-store" in (headers["Cache-Control"] or "").lower():
            self.lasting = ""
        self.hit = said_hit(headers)

    def _refuse_part(self, answer: http.client.HTTPResponse, have: int) -> None:
        """
        Raises BrokenError unless the part is the next one of the same file; then the download starts from the
        beginning.
        """
        found = _RANGE.fullmatch(str(answer.headers["Content-Range"]))
        if found is None or int(found["start"]) != have or int(found["end"]) < have:
            self._tag = ""
            raise BrokenError(f"the server continues elsewhere than at byte {have}")
        size = int(found["size"]) if found["size"] != "*" else self._size
        if size is None or self._size not in {None, size} or int(found["end"]) >= size:
            self._tag = ""
            raise BrokenError(
                f"the server's part from byte {have} is of another file, or of one without a size"
            )
        if have and not self._continues(answer.headers):
            self._tag = ""
            raise BrokenError(f"the server's part from byte {have} is of another state of the file")
        self._size = size

    def _continues(self, part: email.message.Message) -> bool:
        """
        Whether what a part says of its state is what the beginning has said: a server or a proxy may take no notice of
        If-Range.  One that says nothing has been asked for this state, and is trusted.
        """
        if self._tag.startswith('"') and part["ETag"]:
            return bool(part["ETag"] == self._tag)
        return all(part[name] in {None, self._said.get(name)} for name in _NAMES)

    def _begin_anew(self) -> int:
        self._sink.seek(0)
        self._sink.truncate()
        return 0

    def _take(self, answer: http.client.HTTPResponse) -> None:
        try:
            while piece := answer.read(_PIECE):
                self._sink.write(piece)
        except http.client.IncompleteRead as error:
            self._sink.write(error.partial)
            raise BrokenError("the server ended before the file did") from error
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            raise BrokenError(_why(error), kind=TRANSFER) from error
        if answer.length:
            raise BrokenError("the server ended before the file did")


def said_hit(headers: email.message.Message) -> bool | None:
    """
    Whether a cache says that it had the file (RFC 9211, or squid's `X-Cache`); None: none says anything.
    """
    if status := headers["Cache-Status"]:
        return any("hit" in each.lower().split(";")[1:] for each in status.replace(" ", "").split(","))
    said = (headers["X-Cache"] or "").strip().lower()
    return "hit" in said.split()[0] if said else None


def _lasting_name(headers: email.message.Message) -> str:
    """
    What names the state of a file for good, byte by byte: a strong tag, or a date after which it can no longer have changed
    within the same second (RFC 9110, 13.1.5); empty: nothing does.
    """
    tag, changed = headers["ETag"] or "", headers["Last-Modified"] or ""
    if tag.startswith('"'):
        return tag
    date, changed_at = (email.utils.parsedate_tz(each) for each in (headers["Date"] or "", changed))
    if date is None or changed_at is None:
        return ""
    settled = email.utils.mktime_tz(date) - email.utils.mktime_tz(changed_at) >= _SETTLED_S
    return changed if settled else ""


def spelled(url: str) -> str:
    """
    A URL as it is asked for.  Names of files may have any characters, URLs may not; what is spelled already stays.
    """
    return urllib.parse.quote(url, safe="%/:=&?~#+!$,;'@()*[]")


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server elsewhere, without what the job has shown to this one to prove who it is."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to the other address; None: there is none."""
        onward = super().redirect_request(req, fp, code, msg, headers, newurl)
        if onward is not None and _server(onward.full_url) != _server(req.full_url):
            onward.remove_header("Authorization")
        return onward


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


@cache
def _opener(proxy: str) -> urllib.request.OpenerDirector:
    asked = [urllib.request.ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
    return urllib.request.build_opener(Redirects, *handlers(), *asked)


def opened(request: urllib.request.Request, proxy: str = "") -> Any:
    """The answer, if it is one of success; `proxy`: instead of those of the environment."""
    request.add_header("User-Agent", f"kettle/{VERSION}")
    request.add_header("Accept-Encoding", "identity")
    try:
        return _opener(proxy).open(request, timeout=SILENCE_S)
    except urllib.error.HTTPError as error:
        error.close()
        why = f"the server answers {error.code} {error.reason}"
        if error.code in _LATER or error.code == _UNSATISFIABLE:
            raise BrokenError(why, error.code) from error
        raise HttpError(why, error.code) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            why = f"the server's certificate is not to be trusted: {error.reason}"
            raise HttpError(why, kind=CONTACT) from error
        unknown = isinstance(error.reason, socket.gaierror)
        raise BrokenError(_why(error), kind=RESOLUTION if unknown else CONTACT) from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise BrokenError(_why(error), kind=CONTACT) from error


def _why(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return f"the connection failed: {reason.strerror}"
    return f"the connection failed: {reason or type(reason).__name__}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
