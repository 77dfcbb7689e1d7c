"""
HTTP connections that read the answer of a server that has refused a body before the end of it.

Such a server answers and closes the connection; a client that continues to send gets a broken connection, and without
this would never learn that, for example, the collection above the file is missing.
"""

import http.client
import urllib.request
from collections.abc import Iterable
from typing import Any


class _Candid(http.client.HTTPConnection):
    """If the connection breaks while a body is sent, the earlier answer of the server can still be read."""

    def endheaders(self, message_body: Any = None, *, encode_chunked: bool = False) -> None:
        """Send headers and body.  If there is no answer either, `getresponse` raises what says so."""
        try:
            super().endheaders(message_body, encode_chunked=encode_chunked)
        except (BrokenPipeError, ConnectionResetError):
            if message_body is None or self.sock is None:
                raise


class _CandidTls(_Candid, http.client.HTTPSConnection):
    """Such a connection over TLS."""


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Candid, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CandidTls, req)


def handlers() -> Iterable[type[urllib.request.BaseHandler]]:
    """What an opener needs instead of the usual ones."""
    return (_Http, _Https)
