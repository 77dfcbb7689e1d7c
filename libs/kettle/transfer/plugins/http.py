"""
`http://` and `https://` URLs: GET and PUT, piece by piece; a fetch that breaks goes on where it was.

Proxies are those of the job's environment (`http_proxy`, `https_proxy`, `no_proxy`).
"""

import codecs
import http.client
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final

from kettle.transfer.plugins.command import VERSION, run

METHODS: Final = ("http", "https")
TRIES: Final = 6
"""In a row without a new byte."""
PAUSE_S: Final = 0.5
"""Before the second try; doubles with each further one."""
SILENCE_S: Final = 60.0
"""How long a server may say nothing."""
_PIECE: Final = 1 << 20
_LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_PARTIAL, _UNSATISFIABLE = 206, 416

codecs.lookup(
    "idna"
)  # for names of hosts: when the first one is looked up, we may not be able to read our files any more


class HttpError(ValueError):
    """A server's answer that another try would not change."""


class BrokenError(Exception):
    """One try came to nothing; `why` for people, `status` if a server has said so."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


def main(arguments: Sequence[str]) -> int:
    """
    Be the plugin; its exit code.
    """
    return run(arguments, METHODS, fetch, send)


def fetch(url: str, path: str) -> int:
    """
    Fetch a file.  What is there after a break is kept as long as the server says that the file is still the same.
    """
    with Path(path).open("wb") as sink:
        download = Download(url, sink)
        tries, pause = 0, PAUSE_S
        while True:
            before = sink.tell()
            try:
                download.go_on()
                return sink.tell()
            except BrokenError as broken:
                tries = 1 if sink.tell() > before else tries + 1
                if tries >= TRIES:
                    raise HttpError(f"{broken.why}, after {TRIES} tries") from broken
            time.sleep(pause if tries > 1 else 0.0)
            pause = min(2 * pause, 30.0) if tries > 1 else PAUSE_S


def send(url: str, path: str) -> int:
    """
    Send a file as the body of a PUT; again from its beginning if it breaks.
    """
    pause = PAUSE_S
    for tries in range(1, TRIES + 1):
        with Path(path).open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
            request = urllib.request.Request(_spelled(url), data=source, headers=headers, method="PUT")  # noqa: S310 - run for http and https
            try:
                with closing(_open(request)):
                    return size
            except BrokenError as broken:
                if tries == TRIES:
                    raise HttpError(f"{broken.why}, after {TRIES} tries") from broken
        time.sleep(pause)
        pause *= 2
    raise AssertionError("the last try returns or raises")


class Download:
    """
    A file that arrives in one or several answers.
    """

    def __init__(self, url: str, sink: BinaryIO) -> None:
        self._url = url
        self._sink = sink
        self._tag = ""
        """What names this state of the file: only with it may a later answer continue an earlier one."""

    def go_on(self) -> None:
        """
        One try.  Raises BrokenError or HttpError.
        """
        have = self._sink.tell()
        if have and not self._tag:
            have = self._begin_anew()
        headers = {"Range": f"bytes={have}-", "If-Range": self._tag} if have else {}
        try:
            opened = _open(urllib.request.Request(_spelled(self._url), headers=headers))  # noqa: S310 - as above
        except BrokenError as broken:
            if broken.status == _UNSATISFIABLE:
                self._tag = ""  # it is not what it was
            raise
        with closing(opened) as answer:
            if have and answer.status != _PARTIAL:
                have = self._begin_anew()
            if have and not str(answer.headers["Content-Range"]).startswith(f"bytes {have}-"):
                self._tag = ""
                raise BrokenError(f"the server continues elsewhere than at byte {have}")
            tag = answer.headers["ETag"] or ""
            self._tag = tag if tag and not tag.startswith("W/") else answer.headers["Last-Modified"] or ""
            self._take(answer)

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
            raise BrokenError(_why(error)) from error
        if answer.length:
            raise BrokenError("the server ended before the file did")


def _spelled(url: str) -> str:
    """
    Names of files may have any characters, URLs may not; what is spelled already stays.
    """
    return urllib.parse.quote(url, safe="%/:=&?~#+!$,;'@()*[]")


def _open(request: urllib.request.Request) -> Any:
    """
    The answer, if it is one of success.
    """
    request.add_header("User-Agent", f"kettle/{VERSION}")
    request.add_header("Accept-Encoding", "identity")
    try:
        return urllib.request.urlopen(request, timeout=SILENCE_S)  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        error.close()
        why = f"the server answers {error.code} {error.reason}"
        if error.code in _LATER or error.code == _UNSATISFIABLE:
            raise BrokenError(why, error.code) from error
        raise HttpError(why) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise HttpError(f"the server's certificate is not to be trusted: {error.reason}") from error
        raise BrokenError(_why(error)) from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise BrokenError(_why(error)) from error


def _why(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return f"the connection failed: {reason.strerror}"
    return f"the connection failed: {reason or type(reason).__name__}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
