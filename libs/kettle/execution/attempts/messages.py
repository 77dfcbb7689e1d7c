"""
The messages between startd and starter, as length-prefixed msgpack on a Unix stream socket.

The socket is made by the startd and handed to the zygote with the request to fork.  When a startd has ended, its
starters connect to the next one at `SOCKET` in its state directory, and register again.
"""

import socket
import struct
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from kettle.execution.attempts.job_spec import AttemptId, JobSpec, StoredReport
from kettle_wire.attempts import Ending
from kettle_wire.commands import questions
from kettle_wire.worker_reports import Report

SOCKET: Final = "startd.sock"
"""Name of the startd's socket in its state directory."""

_LENGTH: Final = struct.Struct("!I")
_READ_BYTES: Final = 256 * 1024


class RunJob(msgspec.Struct, frozen=True, tag="run"):
    """The request to run a job; it is sent once, as the first message, to a new or an idle starter."""

    spec: JobSpec


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """The lease goes on until `deadline` on `boottime`."""

    deadline: float


class EndJob(msgspec.Struct, frozen=True, tag="end"):
    """
    End the job; the final report says why.

    Flat, as every version has said it: a starter outlives its startd, and hears the next one.
    """

    code: int
    reason: str
    hard: bool = False
    """Without time to end."""
    subcode: int = 0

    @property
    def ending(self) -> Ending:
        """Why."""
        return Ending(code=self.code, subcode=self.subcode, reason=self.reason)


class Suspend(msgspec.Struct, frozen=True, tag="suspend"):
    """Stop all processes of the job with a freeze."""


class Continue(msgspec.Struct, frozen=True, tag="continue"):
    """Have them go on."""


class CheckpointSaved(msgspec.Struct, frozen=True, tag="saved"):
    """The checkpoint of this number is in the spool: go on."""

    number: int


class AccessRequest(msgspec.Struct, frozen=True, tag="asked"):
    """
    A request of somebody who may look into the job: that of an endpoint of `kettle_wire.commands.access`, in its wire
    form.
    """

    number: int
    verb: str
    body: bytes


class AccessReply(msgspec.Struct, frozen=True, tag="answer"):
    """The reply, or with a `code` why there is none."""

    number: int
    body: bytes = b""
    code: str = ""
    reason: str = ""


class Question(msgspec.Struct, frozen=True, tag="question"):
    """
    The starter, or a program of the job, asks this of the submit side, where `shadow` answers.

    If it is sent again with its number while it waits, it is forwarded once.
    """

    number: int
    shadow: str
    asks: questions.Question


class Unanswered(msgspec.Struct, frozen=True, tag="unanswered"):
    """
    Why the shadow has not answered: it is not there; not now, but later perhaps; or no, whenever it is asked.
    """

    why: Literal["offline", "later", "refused"]
    reason: str = ""


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """What the submit side has answered to the question of this number."""

    number: int
    answer: questions.Answer | Unanswered


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A starter is there; `report` repeats what a former startd may not have passed on."""

    id: AttemptId
    pid: int
    report: Report | None = None
    checkpoint: Report | None = None
    """A checkpoint that is not saved yet, as far as the starter knows: its files may be fetched."""
    visits: bool = False
    """It knows what `asked` means; to one that does not, the word would be the end of its job."""


class ReportMessage(msgspec.Struct, frozen=True, tag="said"):
    """The job runs, or uses so much."""

    report: Report


class AttemptOver(msgspec.Struct, frozen=True, tag="over"):
    """The attempt is over and its final report is on disk; nothing of the job is left but outputs."""

    report: StoredReport
    rests: bool = False
    """The starter waits for another job, as long as the connection stays open."""


ToStarter = RunJob | Renew | EndJob | Suspend | Continue | CheckpointSaved | AccessRequest | Reply
ToStartd = Hello | ReportMessage | AttemptOver | AccessReply | Question

_encode: Final = msgspec.msgpack.Encoder().encode
decode_to_starter: Final = msgspec.msgpack.Decoder(ToStarter).decode
decode_to_startd: Final = msgspec.msgpack.Decoder(ToStartd).decode


def frame(message: ToStarter | ToStartd) -> bytes:
    """A message as it travels."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


class MessageReader:
    """Cuts what arrives on a stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are complete with `data`."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[
                :end
            ]  # before it is given away: who takes one and no more finds the next one later
            yield body


def receive(sock: socket.socket) -> bytes | None:
    """What can be read now: None if nothing, empty if the other side has closed the connection."""
    try:
        return sock.recv(_READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
