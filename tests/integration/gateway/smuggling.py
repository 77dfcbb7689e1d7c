"""
Requests that two readers may understand in two ways, so that one of them sees a second request where the other sees a body: a corpus.

`{p}` is the path of a service, `{h}` the lines with the host and the token, `{l}` the same with bare line feeds.
"""

from typing import Final

_POST: Final = "POST {p} HTTP/1.1\r\n{h}"
LAST: Final = "GET /last HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n"
"""After each of them, so that the gateway closes the connection."""
_SECOND: Final = "GET /smuggled HTTP/1.1\r\nHost: g\r\n\r\n"
_CHUNKED: Final = _POST + "Transfer-Encoding: chunked\r\n\r\n"
_END: Final = "\r\n0\r\n\r\n" + _SECOND


def _coded(said: str) -> str:
    return f"{_POST}{said}\r\n\r\n0\r\n\r\n{_SECOND}"


def _long(said: str) -> str:
    return f"{_POST}{said}\r\n\r\nabc{_SECOND}"


REFUSED: Final = {
    "lines end with a line feed alone": "POST {p} HTTP/1.1\n{l}Content-Length: 0\n\n" + _SECOND,
    "a line that is ended in its middle": "GET {p}\rx HTTP/1.1\r\n{h}\r\n",
    "the size of a chunk as 0x5": f"{_CHUNKED}0x5\r\nabcde{_END}",
    "with a sign": f"{_CHUNKED}+5\r\nabcde{_END}",
    "with an underscore": f"{_CHUNKED}1_0\r\n0123456789abcdef{_END}",
    "with a space": f"{_CHUNKED}5 \r\nabcde{_END}",
    "below nothing": f"{_CHUNKED}-1\r\nabcde{_END}",
    "larger than any number": f"{_CHUNKED}ffffffffffffffff0\r\nabcde{_END}",
    "with a line feed alone": f"{_CHUNKED}5\nabcde{_END}",
    "with a line feed in what is added": f"{_CHUNKED}5;a=\nb\r\nabcde{_END}",
    "a chunk that is longer than it says": f"{_CHUNKED}5\r\nabcdeXX0\r\n\r\n{_SECOND}",
    "a length behind the chunks": f"{_CHUNKED}0\r\nContent-Length: 50\r\n\r\n{_SECOND}",
    "chunked, and then not": _coded("Transfer-Encoding: chunked, identity"),
    "not chunked, with a length": _long("Transfer-Encoding: identity\r\nContent-Length: 3"),
    "chunked twice": _coded("Transfer-Encoding: chunked, chunked"),
    "chunked in quotes": _coded('Transfer-Encoding: "chunked"'),
    "packed and chunked": _coded("Transfer-Encoding: gzip, chunked"),
    "chunked behind a space that is none": _coded("Transfer-Encoding: \xa0chunked"),
    "no coding at all, with a length": _long("Transfer-Encoding: \r\nContent-Length: 3"),
    "chunked in HTTP/1.0": _coded("Transfer-Encoding: chunked").replace("HTTP/1.1", "HTTP/1.0", 1),
    "a length of nothing": _long("Content-Length: "),
    "a length as 0x3": _long("Content-Length: 0x3"),
    "a length below nothing": _long("Content-Length: -1"),
    "a length with an underscore": _long("Content-Length: 1_0"),
    "a length that is no whole number": _long("Content-Length: 3.0"),
    "a length in other digits": _long("Content-Length: \xb3"),
    "the same length twice": _long("Content-Length: 3\r\nContent-Length: 3"),
    "a length behind a space": _long("Content-Length : 3"),
    "a length with a NUL": _long("Content-Length: 3\x00"),
    "another expectation": _long("Expect: y 100-continue\r\nContent-Length: 3"),
    "HTTP/1.2": "GET {p} HTTP/1.2\r\n{h}\r\n",
    "HTTP/2.0": "GET {p} HTTP/2.0\r\n{h}\r\n",
    "HTTP/1.11": "GET {p} HTTP/1.11\r\n{h}\r\n",
    "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": "GET {p}\r\n\r\n",
    "a version in small letters": "GET {p} http/1.1\r\n{h}\r\n",
    "tabs between the words": "GET\t{p}\tHTTP/1.1\r\n{h}\r\n",
    "no host": "GET {p} HTTP/1.1\r\nAuthorization: Bearer alice\r\n\r\n",
    "two persons": "GET {p} HTTP/1.1\r\n{h}Authorization: Bearer bob\r\n\r\n",
    "a header without a name": "GET {p} HTTP/1.1\r\n{h}: x\r\n\r\n",
    "a header without a colon": "GET {p} HTTP/1.1\r\n{h}X-A\r\n\r\n",
    "a header with a space in its name": "GET {p} HTTP/1.1\r\n{h}X A: b\r\n\r\n",
    "a header with another letter in its name": "GET {p} HTTP/1.1\r\n{h}X-\xe9: b\r\n\r\n",
    "a folded line before all": "GET {p} HTTP/1.1\r\n X: y\r\n{h}\r\n",
    "a line in the path": "GET {p}%0d%0aX-A:%20b HTTP/1.1\r\n{h}\r\n",
}
"""The job sees no byte of these."""

PASSED_ON: Final = {
    "what is added to the size of a chunk": f"{_CHUNKED}5;a=b\r\nabcde{_END}",
    "chunked in large letters": _coded("Transfer-Encoding: CHUNKED"),
    "a coding with an underscore": "POST {p} HTTP/1.1\r\n{h}Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + _SECOND,
    "a length that begins with nothing": _long("Content-Length: 003"),
    "a body where none is usual": f"GET {{p}} HTTP/1.1\r\n{{h}}Content-Length: {len(_SECOND)}\r\n\r\n{_SECOND}",
    "who waits for a word before the body": _long("Expect: 100-continue\r\nContent-Length: 3"),
    "two spaces between the words": "GET  {p} HTTP/1.1\r\n{h}\r\n",
}
"""These are read in one way, and the job sees one request whose body is as long as it says."""
