"""A route of the REST interface as it is declared."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

Method = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
LevelName = Literal["READ", "WRITE", "ADMINISTRATOR"]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""RFC 3339, with a time zone."""

VERSION: Final = "2.0.0"
"""Of the interface: the first number changes when a program that relies on it could break."""
PREFIX: Final = "/v2"
CE_PREFIX: Final = "/ce/v1"
"""Of the interface of compute entrypoints."""


class Route:
    """
    One thing that can be asked over HTTP: method and path, and the structs of what comes and what goes.

    The fields of `parameters` that the path names in braces come from it, the others from the query.
    """

    def __init__(
        self,
        method: Method,
        path: str,
        operation: str,
        *,
        parameters: type[msgspec.Struct],
        reply: type[msgspec.Struct] | None,
        level: LevelName = "READ",
        body: type[msgspec.Struct] | None = None,
        errors: Sequence[int] = (),
        stream: bool = False,
        text_body: bool = False,
        headers: Sequence[str] = (),
        octets: str = "",
        takes: Sequence[str] = (),
        others: Sequence[str] = (),
        creates: bool = False,
        prefix: str = PREFIX,
    ) -> None:
        """
        `level`: what somebody must have to ask.  `errors`: statuses besides those of every route (`EVERYWHERE`).
        `stream`: the answer is a stream of server-sent events whose data are the `reply`.  `text_body`: a body
        of `text/plain` will do, too.  `headers`: those of `HEADERS` that it looks at.
        `octets`: the media type of an answer that is a file and no `reply`.  `takes`: those of a body that is a file and no `body`.
        `others`: media types besides JSON that the answer may have if a parameter asks for them.
        `creates`: the answer may be 201, when there is something new.  `prefix`: of its interface.
        """
        self.method: Final = method
        self.path: Final = prefix + path
        self.operation: Final = operation
        self.parameters: Final = parameters
        self.reply: Final = reply
        self.level: Final = level
        self.body: Final = body
        self.errors: Final = tuple(errors)
        self.stream: Final = stream
        self.text_body: Final = text_body
        self.headers: Final = tuple(headers)
        self.octets: Final = octets
        self.takes: Final = tuple(takes)
        self.others: Final = tuple(others)
        self.creates: Final = creates

    def __repr__(self) -> str:
        return f"Route({self.method} {self.path})"


HEADERS: Final = {
    "Content-Range": "`bytes FIRST-LAST/SIZE`: the body is this part of the file; `bytes */SIZE`: there is none, only tell how much is there.",
    "If-Range": "The ETag of the file of which a part is wanted: if it is another one by now, all of it comes.",
    "If-Match": "The ETag of the job as it was read: it is changed only if it is still like that.",
    "If-None-Match": "The ETag of an earlier answer: if that is still the answer, it is 304.",
    "Idempotency-Key": "Made once for each request; a repeat with the same key does nothing more and has the same answer.",
    "Range": "`bytes=FIRST-LAST`: the answer is 206 with this part.",
    "Repr-Digest": "`sha-256=:BASE64:` of the whole file. A file of more than 8 MiB, or a part of one, needs it.",
    "Want-Repr-Digest": "`sha-256=1`: the answer has the digest of the whole file in Repr-Digest, however large it is.",
    "Last-Event-ID": "The id of the last event that was read: the stream goes on behind it.",
}
"""What the headers mean that a route may look at."""

EVERYWHERE: Final = (400, 401, 403, 429, 503)
"""What any route may answer instead."""
