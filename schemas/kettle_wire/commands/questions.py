"""
What a starter asks of the submit side, for its job's programs or for itself: one question and one answer, whatever it is.

A starter has no way to the bus: its startd carries the question to the shadow of the job, and the answer back.
"""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.commands.access import Word
from kettle_wire.commands.chirp import Chirped, Natural, Wish
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.job_tokens import JobToken
from kettle_wire.jobs import JobId, Name


class SignUrls(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="sign_urls"):
    """
    Have addresses of a job's objects signed with its owner's key; `upload`: to write them, not to read them.
    """

    urls: list[str]
    upload: bool = False


class SignedUrls(msgspec.Struct, frozen=True, omit_defaults=True, tag="signed_urls"):
    """In the order of the request; none, and a `reason`, if the job's own lists or keys do not give them."""

    urls: list[str]
    reason: str = ""
    errno: int = 0


STREAM_PIECE: Final = 64 * 1024
"""Bytes of what a job has printed in one message."""

Stream = Literal["Out", "Err"]


class StreamPiece(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="stream_piece"):
    """
    Have what a job has printed where its owner reads it; the answer is `Chirped`, with the number of bytes written.

    The piece with offset 0 truncates the file first.
    """

    stream: Stream
    offset: Natural
    data: Annotated[bytes, msgspec.Meta(max_length=STREAM_PIECE)]


COMMAND: Final = 4 * 1024 * 1024
"""Bytes of what a job's command says, and of what is answered to it; what is longer is said in parts."""


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="command"):
    """
    Have a command of the job's program carried out as one of the job's owner; the answer is `Commanded`.

    `body` is the request of the endpoint, as it travels; `name` is which service of the role, if it is not the queue that
    the job is in.
    """

    role: Literal["schedd", "shadow", "accounting", "collector", "sessions"]
    verb: Name
    name: Name
    body: Annotated[bytes, msgspec.Meta(max_length=COMMAND)]


class Commanded(msgspec.Struct, frozen=True, omit_defaults=True, tag="commanded"):
    """The reply as it travels; or, with a `code`, why there is none."""

    body: bytes = b""
    code: str = ""
    reason: str = ""
    retry_after: int = 0
    """Milliseconds, see `kettle_wire.endpoint.Refusal`."""


class OnNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="on_node"):
    """
    Have a program run beside another node of the same job, which is how launchers of MPI reach it; the answer is `Commanded`, with
    the reply of the verb.

    The job's shadow knows the nodes and has the right to them, so no other job can be named here.
    """

    node: Natural
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[!-~]+$")]
    """Made by the asker; one question of each is asked at a time."""
    verb: Literal["open_session", "exchange", "close_session"]
    command: Annotated[list[Word], msgspec.Meta(max_length=1000)] = []
    """What is to run, of `open_session`; it has no input."""
    after: Natural = 0
    """The number of the last piece of output that has come, of `exchange`."""


class FetchTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="fetch_tokens"):
    """
    Have the tokens that the job was submitted to have (`use_oauth_services`), each time with a whole life.
    """


class JobTokens(msgspec.Struct, frozen=True, tag="job_tokens"):
    """All of them; none, if the job is to run without."""

    tokens: list[JobToken]


class AskTicket(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ask_ticket"):
    """Have what lets the services of the job be published, each time with a whole life."""


class TicketGiven(msgspec.Struct, frozen=True, kw_only=True, tag="ticket_given"):
    """See `kettle_wire.commands.gateway.ServicesAdmitted`."""

    url: str
    ca: str = ""
    ticket: str
    left: float

    def __repr__(self) -> str:
        """Without the secret."""
        return f"TicketGiven({self.url})"


Question = Wish | SignUrls | StreamPiece | Command | OnNode | FetchTokens | AskTicket
Answer = Chirped | SignedUrls | Commanded | JobTokens | TicketGiven


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A startd passes on what is asked for an attempt."""

    key: ClaimKey
    job: JobId
    attempt: int
    question: Question


class Answered(msgspec.Struct, frozen=True):
    """What the shadow says to it."""

    answer: Answer
