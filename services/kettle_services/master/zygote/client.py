"""
The master's side of the zygote: it is started when it is needed, and replaced when it is dead or out of date.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from kettle.execution.system.linux import signal_process, start_time
from kettle.runtime import EXIT_FAILED
from kettle_services.master.domain.new_binary import Installed
from kettle_services.master.installed_version import installed
from kettle_services.master.zygote.identity import PROGRAM, room
from kettle_services.master.zygote.messages import GO, LONGEST, Answer, Ended, Launch, Launched, Refused

if TYPE_CHECKING:
    from kettle_services.master.zygote.made import MadeZygote

_log: Final = logging.getLogger(__name__)
_ONE_THREAD: Final[Mapping[str, str]] = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's library makes its threads when it is loaded; a process with threads cannot be forked, and no service uses them."""

PATIENCE_S: Final = 30.0
"""For an answer; modules may be loaded before it, on a busy machine."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Answer).decode


class Process(Protocol):
    """A child, as `asyncio.subprocess` has it, too."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit status, or minus the number of the signal that killed it; None while it lives."""
        ...

    def kill(self) -> None:
        """SIGKILL, if it lives."""
        ...

    async def wait(self) -> int:
        """Wait for its end; the return code."""
        ...


class ForkedProcess:
    """A child of the zygote."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._started = start_time(pid)
        self.go = -1
        """The open file by which it is told to begin."""
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def returncode(self) -> int | None:
        """None while it lives."""
        return self.ended.result() if self.ended.done() else None

    def kill(self) -> None:
        """SIGKILL, if it lives."""
        if self._started is not None:
            signal_process(self.pid, signal.SIGKILL, started=self._started)

    async def wait(self) -> int:
        """Wait for its end; the return code."""
        return await asyncio.shield(self.ended)

    def begin(self) -> None:
        """
        Have it begin.  By then whatever it may say must find somebody who knows its process id: it may be ready at once.
        """
        with contextlib.suppress(BrokenPipeError):  # killed already
            os.write(self.go, GO)
        os.close(self.go)
        self.go = -1

    def watch(self) -> None:
        """Nobody will say any more what its status was; only that it has ended can be seen."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self.end(EXIT_FAILED)
            return
        if start_time(self.pid) == self._started:
            asyncio.get_running_loop().add_reader(handle, self._seen, handle)
        else:
            os.close(handle)
            self.end(EXIT_FAILED)

    def _seen(self, handle: int) -> None:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)
        self.end(EXIT_FAILED)

    def end(self, status: int) -> None:
        """It has ended."""
        if not self.ended.done():
            self.ended.set_result(status)


class _Line:
    """One zygote and the socket to it."""

    def __init__(
        self, process: "asyncio.subprocess.Process | MadeZygote", sock: socket.socket, mark: Installed | None
    ) -> None:
        self.process = process
        self.mark = mark
        self.answers: dict[int, asyncio.Future[ForkedProcess | None]] = {}
        self._socket = sock
        self._retired = False
        self._children: dict[int, ForkedProcess] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock, self._receive)

    @property
    def broken(self) -> bool:
        """Whether there is no zygote any more."""
        return self._socket.fileno() < 0

    def ask(self, launch: Launch, output: int, go: int) -> asyncio.Future[ForkedProcess | None]:
        """Have a process forked; raises OSError."""
        socket.send_fds(self._socket, [_encode(launch)], [output, go, *launch.fds])
        answer = self.answers[launch.number] = self._loop.create_future()
        return answer

    def retire(self) -> None:
        """End it when its last child has ended: until then it is needed to tell how that was."""
        self._retired = True
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._retired and not self._children:
            self.end()

    def end(self) -> None:
        """End it, after what it has said so far; its children go on."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        while not self.broken:  # it is dead, or will be within the next moment
            self._socket.setblocking(True)
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(LONGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        answer: Answer = _decode(data)
        match answer:
            case Launched(number=number, pid=pid):
                child = self._children[pid] = ForkedProcess(pid)
                self._answer(number, child)
            case Refused(number=number, why=why):
                _log.warning("a service is executed and not forked: %s", why)
                self._answer(number, None)
            case Ended(pid=pid, status=status):
                self._children.pop(pid).end(status)
                self._end_if_idle()

    def _answer(self, number: int, child: ForkedProcess | None) -> None:
        if not (answer := self.answers.pop(number)).done():
            answer.set_result(child)

    def _lost(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for number in list(self.answers):
            self._answer(number, None)
        for child in self._children.values():
            child.watch()
        self._children.clear()


class ServiceZygote:
    """Forks services; where it cannot, its caller executes them."""

    def __init__(
        self,
        modules: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path,
        *,
        fds: Sequence[int],
        patience: float = PATIENCE_S,
        made: "MadeZygote | None" = None,
    ) -> None:
        """
        `modules` are loaded before they are asked for, in this order; `environ` is what all services share, and so are
        `fds`, which stay open under the same numbers.  The first zygote is `made`, if there is one.
        """
        self._modules = tuple(modules)
        self._environ = {**environ, **_ONE_THREAD, **room()}
        self._cwd = cwd
        self._fds = tuple(fds)
        self.patience = patience
        """Seconds for an answer; then it is ended."""
        self._line: _Line | None = None
        self._made = made
        self._number = 0
        self._one = asyncio.Lock()

    @property
    def pid(self) -> int:
        """The zygote's process id; 0 while there is none."""
        return self._line.process.pid if self._line is not None and not self._line.broken else 0

    async def launch(
        self, module: str, environ: Mapping[str, str], cwd: Path, output: int
    ) -> ForkedProcess | None:
        """
        A process that is `python -m module`, in a session of its own, and writes to `output`; it waits for its `begin`.
        None: it cannot be forked.
        """
        variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        go, told = os.pipe()
        forked: ForkedProcess | None = None
        try:
            forked = await self._ask(Launch(self._next(), module, variables, str(cwd), self._fds), output, go)
        except OSError as error:
            _log.warning("no service can be forked: %s", error)
        finally:
            os.close(go)
            if forked is None:
                os.close(told)  # if it was forked all the same, it ends
        if forked is not None:
            forked.go = told
        return forked

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _ask(self, launch: Launch, output: int, go: int) -> ForkedProcess | None:
        line = await self.warm()
        answer = line.ask(launch, output, go)
        try:
            async with asyncio.timeout(self.patience):
                return await asyncio.shield(answer)
        except TimeoutError:
            _log.error("the zygote gives no answer: ending it", extra={"pid": line.process.pid})
            line.end()
            return await answer

    async def warm(self) -> _Line:
        """A zygote that lives and has loaded what is installed now; raises OSError."""
        async with self._one:
            mark = await asyncio.to_thread(installed)
            line = self._line
            if line is not None and not line.broken and mark in {line.mark, None}:
                return line
            if line is not None and line.broken:
                status = await line.process.wait()
                _log.warning("the zygote ended with status %d: its services go on, a new one is made", status)
            elif line is not None:
                _log.warning("another version is installed: a new zygote loads it")
                line.retire()
            self._line = await self._start(mark)
            return self._line

    async def close(self) -> None:
        """End it; its children go on."""
        async with self._one:
            if self._line is not None:
                self._line.end()
                await self._line.process.wait()
                self._line = None

    async def _start(self, mark: Installed | None) -> _Line:
        if self._made is not None:
            made, self._made = self._made, None
            return _Line(made, made.socket, mark)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.setblocking(False)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                PROGRAM,
                str(theirs.fileno()),
                *self._modules,
                stdin=asyncio.subprocess.DEVNULL,
                env=self._environ,
                cwd=self._cwd,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return _Line(process, ours, mark)
