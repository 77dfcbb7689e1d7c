"""
A web server on the loopback interface that can be told to misbehave.
"""

import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Web(ThreadingHTTPServer):
    """
    Serves `files`, keeps what is put there, and ends early after each of `breaks` bytes, once each.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.breaks: list[int] = []
        self.statuses: list[int] = []
        """What is answered first, once each."""
        self.asked: list[tuple[str, str]] = []
        """Method and range of each request."""

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
        if web.statuses or name not in web.files:
            self.send_error(web.statuses.pop(0) if web.statuses else 404)
            return
        data, tag = web.files[name], web.tags.get(name, f'"{name}"')
        start = int(wanted[6:-1]) if wanted and self.headers.get("If-Range") == tag else 0
        if start and start >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        most = web.breaks.pop(0) if web.breaks else len(data)
        self.wfile.write(data[start : start + most])
        self.close_connection = True

    def do_PUT(self) -> None:
        web, length = self.web, int(self.headers["Content-Length"])
        web.asked.append(("PUT", ""))
        data = self.rfile.read(length)
        if web.statuses:
            self.send_error(web.statuses.pop(0))
            return
        web.files[self.path.lstrip("/")] = data
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base calls it so
        pass


@pytest.fixture
def web() -> Generator[Web]:
    """
    A server that runs while the test does.
    """
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
