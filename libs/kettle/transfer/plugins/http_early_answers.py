"""
HTTP connections that hear a server out which has said no and does not want the rest of a body.

Such a server answers and hangs up; who goes on sending finds the line broken, and without this would never learn that, say,
the collection above the file is missing.
"""

import http.client
import urllib.request
from collections.abc import Iterable
from typing import Any


class _Candid(http.client.HTTPConnection):
    """If the line breaks while a body is sent, what the server has said before is still there to be read."""

    def endheaders(self, message_body: Any = None, *, encode_chunked: bool = False) -> None:
        """Send headers and body.  If there is no answer either, `getresponse` raises what says so."""
        try:
            super().endheaders(message_body, encode_chunked=encode_chunked)
        except (BrokenPipeError, ConnectionResetError):
            if message_body is None or self.sock is None:
                raise


class _CandidTls(_Candid, http.client.HTTPSConnection):
    """The same behind TLS."""


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Candid, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CandidTls, req)


def handlers() -> Iterable[type[urllib.request.BaseHandler]]:
    """What an opener needs instead of the usual ones."""
    return (_Http, _Https)
