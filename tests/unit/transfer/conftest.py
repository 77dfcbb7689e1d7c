"""A web server on the loopback interface that can be told to misbehave."""

import threading
import time
from collections.abc import Generator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Web(ThreadingHTTPServer):
    """Serves `files`, keeps what is put there, and ends early after each of `breaks` bytes, once each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.breaks: list[int] = []
        self.collections: set[str] | None = None
        """What may have members, as with WebDAV; None: everything."""
        self.statuses: list[int] = []
        """What is answered first, once each."""
        self.asked: list[tuple[str, str]] = []
        """Method and range of each request."""
        self.ages: dict[str, float] = {}
        """How many seconds before this server was there files have changed; others do not say."""
        self.began = time.time()
        self.elsewhere: dict[str, str] = {}
        """Where files are that this server has not."""
        self.shown: list[str] = []
        """What was shown with each GET to prove who asks."""
        self.portion = 0
        """How much of a rest is sent at most, in an answer that is complete; 0: all of it."""
        self.ignores_if_range = False
        """Whether a rest is sent of whatever is there."""
        self.silent_parts = False
        """Whether an answer with a rest does not say which state of the file it is of."""
        self.sent = 0
        """Bytes of files."""

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    @property
    def web(self) -> Web:
        assert isinstance(self.server, Web)
        return self.server

    def do_GET(self) -> None:
        web, name = self.web, self.path.lstrip("/").partition("?")[0]
        wanted = self.headers.get("Range", "")
        web.asked.append(("GET", wanted))
        web.shown.append(self.headers.get("Authorization", ""))
        if name in web.elsewhere:
            self.send_response(302)
            self.send_header("Location", web.elsewhere[name])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if web.statuses or name not in web.files:
            self.send_error(web.statuses.pop(0) if web.statuses else 404)
            return
        data, tag = web.files[name], web.tags.get(name, f'"{name}"')
        changed = formatdate(web.began - web.ages[name], usegmt=True) if name in web.ages else ""
        if (tag and self.headers.get("If-None-Match") == tag) or (
            changed and self.headers.get("If-Modified-Since") is not None
        ):
            self.send_response(304)
            self.end_headers()
            return
        same = web.ignores_if_range or self.headers.get("If-Range") in {tag, changed}
        start = int(wanted[6:-1]) if wanted and same else 0
        if start and start >= len(data):
            self.send_error(416)
            return
        end = min(len(data), start + web.portion) if start and web.portion else len(data)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        named = not (start and web.silent_parts)
        if tag and named:
            self.send_header("ETag", tag)
        if changed and named:
            self.send_header("Last-Modified", changed)
        self.end_headers()
        most = web.breaks.pop(0) if web.breaks else end - start
        web.sent += len(data[start : start + most])
        self.wfile.write(data[start : start + most])
        self.close_connection = True

    def do_PUT(self) -> None:
        web, length = self.web, int(self.headers["Content-Length"])
        web.asked.append(("PUT", ""))
        above = self.path.strip("/").rpartition("/")[0]
        if web.collections is not None and above not in web.collections:
            self.send_error(409)  # like wsgidav and others: without a look at the body
            self.close_connection = True
            return
        data = self.rfile.read(length)
        if web.statuses:
            self.send_error(web.statuses.pop(0))
            return
        web.files[self.path.lstrip("/")] = data
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_MKCOL(self) -> None:
        web, name = self.web, self.path.strip("/")
        assert web.collections is not None
        web.asked.append(("MKCOL", name))
        if name.rpartition("/")[0] not in web.collections:
            self.send_error(409)
            return
        there = name in web.collections
        web.collections.add(name)
        self.send_response(405 if there else 201)
        self.end_headers()

    def do_DELETE(self) -> None:
        self.web.asked.append(("DELETE", self.path))
        found = self.web.files.pop(self.path.lstrip("/"), None)
        self.send_response(404 if found is None else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base calls it so
        pass


@pytest.fixture
def web() -> Generator[Web]:
    """A server that runs while the test does."""
    yield from _running()


@pytest.fixture
def other_web() -> Generator[Web]:
    """Another one."""
    yield from _running()


def _running() -> Generator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
