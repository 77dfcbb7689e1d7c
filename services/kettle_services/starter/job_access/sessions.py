"""
Programs that people run beside the job.

A program's output waits in its pipe, or terminal, until it is requested: only the last piece is kept here, for a
repeat. Its process is a child of the starter and a member of the job's group: it ends with the job in any case.
"""

import fcntl
import os
import select
import signal
import struct
import termios
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

import msgspec

from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import SpawnedProgram, SpawnError
from kettle.execution.sandbox.directory import acting_as
from kettle.execution.system.linux import boottime, descendants_of
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.commands.access import (
    LONGEST_LOOK,
    Closed,
    Exchange,
    Exchanged,
    Opened,
    OpenSession,
    Output,
    Terminal,
)

_MOST: Final = 16
"""Sessions of one job at once."""
_IDLE_S: Final = 30.0
"""A session without requests for that long is ended; clients ask again every few seconds."""
_BIRTH_S: Final = 5.0
"""How long a program may take to be executed: the job may stop the process that is to become it."""
_ABOVE: Final = 10
_END_OF_INPUT: Final = b"\x04"

Reply = Callable[[int, Exchanged | Opened], object]
Refuse = Callable[[int, str], object]
Start = Callable[[Program], SpawnedProgram]


class SessionError(Exception):
    """What was asked for cannot be done; the message says why."""


class NotStartedError(SessionError):
    """The job's program does not run yet."""


class Sessions:
    """All sessions of one job; `reply` answers a question that had to wait, or `refuse` does."""

    def __init__(self, reply: Reply, refuse: Refuse) -> None:
        self._reply = reply
        self._refuse = refuse
        self._sessions: dict[str, Session] = {}

    @property
    def due(self) -> float:
        """When a session has waited long enough, on `boottime`."""
        return min((session.due for session in self._sessions.values()), default=float("inf"))

    def known(self, name: str) -> "Session | None":
        """A session; None if there is none of this name."""
        return self._sessions.get(name)

    def open(
        self, number: int, request: OpenSession, program: Program, tree: ProcessTree, start: Start
    ) -> Opened | None:
        """
        Start a program; its session reports when it runs, and returns None until then.

        Raises:
            SessionError: there are too many.
            OSError: there can be no streams, or no process, for one more.
        """
        if len(self._sessions) >= _MOST:
            raise SessionError(f"the job has {_MOST} sessions already; end one of them")
        session = Session(request, program, tree, start, self._reply)
        self._sessions[request.session] = session
        return session.opened(number)

    def exchange(self, number: int, request: Exchange) -> Exchanged | None:
        """The answer to a question; None if it has to wait."""
        session = self._sessions.get(request.session)
        if session is None:
            raise SessionError("there is no such session: it was not heard of for too long, or was closed")
        return session.exchange(number, request)

    def close(self, name: str) -> Closed:
        """End a session."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.end()
        return Closed()

    def end(self) -> None:
        """End all of them."""
        for name in list(self._sessions):
            self.close(name)

    def register(self, poll: select.poll) -> None:
        """Have a poll watch what is waited for."""
        for session in self._sessions.values():
            session.register(poll)

    def go_on(self, ready: set[int]) -> None:
        """Answer what can be answered now; end sessions that nobody asks about any more."""
        for name, session in list(self._sessions.items()):
            try:
                session.go_on(ready)
            except SpawnError as error:
                for number in session.waiting:
                    self._refuse(number, str(error))
                self.close(name)
            else:
                if session.abandoned:
                    self.close(name)


class _Waiting(msgspec.Struct, frozen=True):
    """A question that is answered when something happens, or at `until`."""

    number: int
    request: Exchange
    until: float


class Session:
    """One program and the ends of its streams."""

    def __init__(
        self, request: OpenSession, program: Program, tree: ProcessTree, start: Start, reply: Reply
    ) -> None:
        self._reply = reply
        self._tree = tree
        self._terminal = request.terminal is not None
        self._asked: _Waiting | None = None
        self._fed: _Waiting | None = None
        self._taken = 0
        self._last = Exchanged()
        self._heard = boottime()
        self._born_by = self._heard + _BIRTH_S
        self.waiting: list[int] = []
        """Questions that are answered when the program runs."""
        self._input_ended = False
        with ExitStack() as undo, ExitStack() as theirs:
            if request.terminal is not None:
                program = self._with_terminal(program, request.terminal, undo, theirs)
            else:
                program = self._with_pipes(program, undo, theirs)
            self._birth: SpawnedProgram | None = start(program)
            undo.callback(self._birth.abandon)
            self.pid = self._birth.pid
            self._handle = os.pidfd_open(self.pid)
            undo.pop_all()
        tree.visitors[self.pid] = None

    def _with_terminal(
        self, program: Program, terminal: Terminal, undo: ExitStack, theirs: ExitStack
    ) -> Program:
        ours, slave = (_raised(fd) for fd in os.openpty())
        undo.callback(os.close, ours)
        theirs.callback(os.close, slave)
        if program.account is not None:
            os.fchown(slave, program.account.uid, program.account.gid)
        self._input, self._outputs = ours, {ours: 1}
        os.set_blocking(ours, False)
        self._resize(terminal)
        return msgspec.structs.replace(program, terminal=os.ttyname(slave))

    def _with_pipes(self, program: Program, undo: ExitStack, theirs: ExitStack) -> Program:
        with acting_as(program.account):  # whose they are: a program may want to open them by their names
            ends = [[_raised(fd) for fd in os.pipe()] for _ in range(3)]
        (stdin, self._input), (out, stdout), (err, stderr) = ends
        self._outputs = {out: 1, err: 2}
        for fd in (self._input, out, err):
            os.set_blocking(fd, False)
            undo.callback(os.close, fd)
        for fd in (stdin, stdout, stderr):
            theirs.callback(os.close, fd)
        return msgspec.structs.replace(program, streams=(stdin, stdout, stderr))

    def opened(self, number: int) -> Opened | None:
        """The answer to a question that opens it; None if it has to wait."""
        self._heard = boottime()
        if self._birth is None:
            return Opened(pid=self.pid)
        self.waiting.append(number)
        return None

    # -- what is asked -----------------------------------------------------------------------------------------------

    def exchange(self, number: int, request: Exchange) -> Exchanged | None:
        """See `Sessions`."""
        self._heard = boottime()
        if request.terminal is not None and self._terminal and self._outputs:
            self._resize(request.terminal)
        waiting = _Waiting(number, request, self._heard + request.wait)
        if request.after is None:
            return self._feed(waiting)
        if self._asked is not None:  # it was asked again
            self._reply(self._asked.number, self._piece())
            self._asked = None
        return self._tell(waiting)

    def _feed(self, waiting: _Waiting) -> Exchanged | None:
        """Take input; what the program does not take now waits for its turn with the question."""
        request = waiting.request
        if self._fed is not None:  # it was asked again
            self._reply(self._fed.number, Exchanged(taken=self._taken))
            self._fed = None
        if request.at > self._taken:
            raise SessionError("a part of the input is missing")
        rest = request.data[self._taken - request.at :]
        with suppress(BlockingIOError):
            while rest and self._input >= 0:
                try:
                    count = os.write(self._input, rest)
                except (BrokenPipeError, OSError) as error:
                    if isinstance(error, BlockingIOError):
                        raise
                    count = len(rest)  # it reads no more, and that is its own affair
                self._taken += count
                rest = rest[count:]
        if self._input < 0:
            self._taken += len(rest)
            rest = b""
        if rest and boottime() < waiting.until:
            self._fed = waiting
            return None
        if request.ends and not rest:
            self._end_input()
        return Exchanged(taken=self._taken)

    def _tell(self, waiting: _Waiting) -> Exchanged | None:
        if waiting.request.after != self._last.number:
            return self._piece()  # it did not come
        if output := self._read():
            self._last = Exchanged(number=self._last.number + 1, output=output)
        elif self.ended:
            self._hang_up()
            self._last = self._verdict()
        elif boottime() < waiting.until:
            self._asked = waiting
            return None
        else:
            return Exchanged(taken=self._taken, number=self._last.number)
        return self._piece()

    def _piece(self) -> Exchanged:
        return msgspec.structs.replace(self._last, taken=self._taken)

    def _verdict(self) -> Exchanged:
        status = self._tree.visitors.get(self.pid)
        code = os.waitstatus_to_exitcode(status or 0)
        return Exchanged(
            number=self._last.number + 1,
            over=True,
            exit_code=code if code >= 0 else None,
            exit_signal=-code if code < 0 else None,
        )

    # -- what happens ------------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When it has waited long enough."""
        waits = [waiting.until for waiting in (self._asked, self._fed) if waiting is not None]
        return min([self._heard + _IDLE_S, *waits, *([self._born_by] if self._birth is not None else [])])

    @property
    def ended(self) -> bool:
        """Whether the program has."""
        return self._tree.visitors.get(self.pid) is not None

    @property
    def abandoned(self) -> bool:
        """Whether nobody asks about it any more."""
        return boottime() >= self._heard + _IDLE_S

    def register(self, poll: select.poll) -> None:
        """
        Output is looked for when somebody asks for it, room for input when there is some; the end always.
        """
        for fd in (self._handle, self._birth.told if self._birth is not None else -1):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        events = dict.fromkeys(self._outputs, select.POLLIN) if self._asked is not None else {}
        if self._fed is not None and self._input >= 0:
            events[self._input] = events.get(self._input, 0) | select.POLLOUT
        for fd, mask in events.items():
            poll.register(fd, mask)

    def go_on(self, ready: set[int]) -> None:
        """
        See `Sessions`.

        Raises:
            BirthError: the program could not be started.
        """
        if self._birth is not None:
            self._grow(self._birth, ready)
        if self._handle in ready:
            self._tree.reap()
            if self.ended:
                os.close(self._handle)
                self._handle = -1
        now = boottime()
        if (fed := self._fed) is not None and (self._input in ready or self.ended or now >= fed.until):
            self._fed = None
            if (reply := self._feed(fed)) is not None:
                self._reply(fed.number, reply)
        if (asked := self._asked) is not None and (
            not ready.isdisjoint(self._outputs) or self.ended or now >= asked.until
        ):
            self._asked = None
            if (reply := self._tell(asked)) is not None:
                self._reply(asked.number, reply)

    def _grow(self, birth: SpawnedProgram, ready: set[int]) -> None:
        if birth.told in ready:
            birth.finish()
            self._birth = None
            for number in self.waiting:
                self._reply(number, Opened(pid=self.pid))
            self.waiting.clear()
        elif boottime() >= self._born_by:
            raise SpawnError("the program did not begin in time: the job, or who suspended it, stopped it")

    def end(self) -> None:
        """End the program, and all its processes as far as they can be distinguished from the job's."""
        self._hang_up()
        if self._birth is not None:
            self._birth.abandon()
            self._birth = None
        tree = [pid for pid in descendants_of(os.getpid()) if pid != self._tree.pid and _is_in(pid, self.pid)]
        for pid in {*tree, *(descendants_of(self.pid) if not self.ended else ())}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._tree.reap()
        self._tree.visitors.pop(self.pid, None)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    # -- its streams -------------------------------------------------------------------------------------------------

    def _read(self) -> list[Output]:
        found: list[Output] = []
        room = LONGEST_LOOK
        for fd, descriptor in list(self._outputs.items()):
            while room > 0:
                try:
                    data = os.read(fd, room)
                except BlockingIOError:
                    break
                except OSError:  # a terminal without a program
                    data = b""
                if not data:
                    self._close(fd)
                    break
                room -= len(data)
                found.append(Output(descriptor, data))
        return found

    def _end_input(self) -> None:
        if self._input_ended:
            return  # it was asked again
        self._input_ended = True
        if self._terminal:
            with suppress(OSError):
                os.write(self._input, _END_OF_INPUT)
        elif self._input >= 0:
            os.close(self._input)
            self._input = -1

    def _close(self, fd: int) -> None:
        os.close(fd)
        del self._outputs[fd]
        if fd == self._input:
            self._input = -1

    def _hang_up(self) -> None:
        for fd in list(self._outputs):
            self._close(fd)
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def _resize(self, terminal: Terminal) -> None:
        size = struct.pack("HHHH", terminal.rows, terminal.columns, 0, 0)
        with suppress(OSError):
            fcntl.ioctl(next(iter(self._outputs)), termios.TIOCSWINSZ, size)


def _is_in(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session
    except ProcessLookupError:
        return False


def _raised(fd: int) -> int:
    """A descriptor above the numbers that a program gets; no other program gets it."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(fd)
    return high
