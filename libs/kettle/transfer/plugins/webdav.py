"""
`dav://` and `davs://` URLs: WebDAV, by HTTP and HTTPS; collections that are missing are made.

A token that the job's environment names (`BEARER_TOKEN_FILE`, or `BEARER_TOKEN` itself) is shown to `davs` servers.
"""

import http.client
import os
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from kettle.transfer.plugins import http as web
from kettle.transfer.plugins.command_line import run

METHODS: Final = ("dav", "davs")
_PLAIN: Final = {"dav": "http", "davs": "https"}
_NO_PARENT: Final = frozenset({http.client.CONFLICT, http.client.NOT_FOUND})
_THERE: Final = frozenset({http.client.METHOD_NOT_ALLOWED, http.client.MOVED_PERMANENTLY})


def main(arguments: Sequence[str]) -> int:
    """Be the plugin; its exit code."""
    return run(arguments, METHODS, fetch, send, remove=remove)


def fetch(url: str, path: str) -> int:
    """Fetch a file; an interrupted transfer is continued."""
    there = address(url)
    return web.fetch(there, path, credentials(there, os.environ))


def send(url: str, path: str) -> int:
    """Send a file; the collections above it are made if the server misses them."""
    there = address(url)
    headers = credentials(there, os.environ)
    try:
        return web.send(there, path, headers)
    except web.HttpError as error:
        if error.status not in _NO_PARENT:
            raise
    _make_collection(there.rpartition("/")[0], headers)
    return web.send(there, path, headers)


def remove(url: str) -> None:
    """Have a file removed; a collection stays, as a server would remove it with all that is in it."""
    if not url.endswith("/"):
        there = address(url)
        web.remove(there, credentials(there, os.environ))


def credentials(address: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """What the job shows to prove who it is; nothing where others could read it.  Raises OSError."""
    if urlsplit(address).scheme != "https":
        return {}
    token = environ.get("BEARER_TOKEN", "")
    if not token and (name := environ.get("BEARER_TOKEN_FILE")):
        token = Path(name).read_text(encoding="utf-8")
    return {"Authorization": f"Bearer {token.strip()}"} if token.strip() else {}


def address(url: str) -> str:
    """The place that a URL names, as one of the web."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme=_PLAIN[parts.scheme]))


def _make_collection(address: str, headers: Mapping[str, str]) -> None:
    """Make a collection, and those above it first if the server misses them too.  Raises HttpError."""
    parts = urlsplit(address)
    names = parts.path.strip("/").split("/")
    places = [
        urlunsplit(parts._replace(path="/" + "/".join(names[: depth + 1]))) for depth in range(len(names))
    ]
    made = len(places)
    status = http.client.CONFLICT
    while status and made:
        made -= 1
        status = _ask_for_collection(places[made], headers)
    for place in places[made + 1 :]:
        status = status or _ask_for_collection(place, headers)
    if status:
        raise web.HttpError(f"the server makes no collection {parts.path}: it answers {status:d}", status)


def _ask_for_collection(address: str, headers: Mapping[str, str]) -> int:
    """0 if it is there now, else the status that says that it lacks the one above."""
    request = urllib.request.Request(web.spelled(f"{address}/"), headers=dict(headers), method="MKCOL")  # noqa: S310 - run for http and https
    try:
        with closing(web.opened(request)):
            return 0
    except web.BrokenError as broken:
        raise web.HttpError(f"MKCOL {urlsplit(address).path}: {broken.why}", broken.status) from broken
    except web.HttpError as error:
        if error.status in _THERE:
            return 0
        if error.status in _NO_PARENT:
            return error.status
        raise


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
