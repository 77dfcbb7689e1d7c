"""
What a job prints while it runs, sent to where its owner wants to read it (`StreamOut`, `StreamErr`).

It is a copy: the files are among the job's results at its end, as they are without it.
"""

import os
import stat
import sys
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.attempts.messages import Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, acting_as
from kettle.execution.sandbox.output_files import STDERR, STDOUT
from kettle.execution.system.linux import boottime
from kettle_wire.commands.chirp import Chirped, Trouble
from kettle_wire.commands.questions import STREAM_PIECE, Question, Stream, StreamPiece

LOOK_S: Final = 1.0
"""How often it is looked at what the job has printed."""
_ANSWER_S: Final = 30.0
"""After that time an answer is not expected any more: the startd may have been restarted."""
_REST_S: Final = 2.0
_LATER: Final = frozenset({Trouble.TRY_AGAIN, Trouble.OFFLINE, Trouble.BUSY, Trouble.TOO_MANY_OPEN})
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class _Copy(msgspec.Struct):
    stream: Stream
    file: str
    sent: int = 0
    begun: bool = False
    """Whether the owner's file is there: as soon as the job begins, be it empty."""


class Streams:
    """The standard output and error of one job: one piece at a time is on its way."""

    def __init__(self, job: JobAd, sandbox: Sandbox, ask: Callable[[Question], int]) -> None:
        self._sandbox = sandbox
        self._ask = ask
        self._copies = _wanted(job)
        self._asked: tuple[int, _Copy] | None = None
        self._look_at = boottime() if self._copies else float("inf")

    @property
    def due(self) -> float:
        """When there is something to do that no descriptor tells, on `boottime`."""
        return self._look_at

    def finish(self, wait: Callable[[int], None]) -> None:
        """
        The job was ended, and this is all that its owner sees of it: send the rest, if that does not take long.

        `wait`: listens for so many milliseconds, or until there is something.
        """
        until = boottime() + _REST_S
        if self._asked is None and self._copies:
            self._look_at = boottime()
        while self._behind and (left := until - boottime()) > 0:
            wait(int(left * 1000) + 1)

    @property
    def _behind(self) -> bool:
        return self._asked is not None or any(self._new(copy) for copy in list(self._copies))

    def go_on(self) -> None:
        """Send what is new, if it is time."""
        now = boottime()
        if now < self._look_at:
            return
        self._asked = None
        self._look_at = now + LOOK_S
        for copy in self._copies:
            data = self._new(copy)
            if data or not copy.begun:
                number = self._ask(StreamPiece(stream=copy.stream, offset=copy.sent, data=data))
                self._asked = number, copy
                self._look_at = now + _ANSWER_S
                return
        if not self._copies:
            self._look_at = float("inf")

    def hear(self, reply: Reply) -> None:
        """An answer; if it is not to the newest piece, it does not count."""
        if self._asked is None or reply.number != self._asked[0]:
            return
        copy, self._asked = self._asked[1], None
        self._look_at = boottime() + LOOK_S
        match reply.answer:
            case Chirped(result=result) if result >= 0:
                copy.begun = True
                copy.sent += result
                self._look_at = boottime() if self._new(copy) else self._look_at
                self._copies.sort(key=lambda each: each is copy)  # the other one's turn
            case Chirped(result=result) if result not in _LATER:
                self._copies.remove(copy)  # the end of the job reports to its owner why it cannot be written
            case Unanswered(why="refused"):
                self._copies.remove(copy)
            case _:
                pass

    def _new(self, copy: _Copy) -> bytes:
        """What was printed since the last piece.  The file is the job's, who may have put anything there."""
        try:
            with acting_as(self._sandbox.account):
                fd = os.open(f"{self._sandbox.path}/{copy.file}", _FLAGS)
            try:
                return os.pread(fd, STREAM_PIECE, copy.sent) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
            finally:
                os.close(fd)
        except FileNotFoundError:
            return b""  # not yet
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)
            self._copies.remove(copy)
            return b""


def _wanted(job: JobAd) -> list[_Copy]:
    """Output and error that go to one file are in one."""
    if not job.transfers:
        return []  # they are there already
    out, err = job.stream("Out"), job.stream("Err")
    copies: list[_Copy] = []
    if out is not None and job.flag("StreamOut", default=False):
        copies.append(_Copy("Out", STDOUT))
    if err is not None and err != out and job.flag("StreamErr", default=False):
        copies.append(_Copy("Err", STDERR))
    return copies
