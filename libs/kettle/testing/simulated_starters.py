"""
Starters that run nothing: they say what a starter says, and after the time that a job would have taken it is over.

A startd cannot tell them from real ones but by their process id, which is 0. So whole pools of machines fit into one
process, and everything but the jobs themselves is real.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Final

from kettle.execution.attempts import messages
from kettle.execution.attempts.job_spec import JobSpec, StoredReport
from kettle.execution.attempts.stored_reports import store
from kettle.execution.job_environment.job_ad import JobAd
from kettle_wire.attempts import AttemptResult, ExitRecord, Usage
from kettle_wire.worker_reports import Body, FinalReport, Report, Started

SECONDS: Final = "SimulatedSeconds"
"""The attribute of a job that says for how many simulated seconds it runs; without it, it is over at once."""


class SimulatedStarters:
    """Where simulated starters come from; `pace` is how many simulated seconds pass in one."""

    def __init__(self, *, pace: float = 1.0) -> None:
        self._pace = pace
        self._starters: set[_Starter] = set()

    def starter(self) -> socket.socket:
        """A starter that waits for its job."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._starters.add(_Starter(theirs, self._pace, self._starters.discard))
        return ours

    def rest(self, sock: socket.socket) -> None:
        """Nothing is gained by keeping one."""
        sock.close()

    def listen(self, arrived: Callable[[socket.socket], None]) -> None:
        """None comes by itself: they end with this process, as their startd does."""

    async def keep(self) -> None:
        """There is nothing to look after."""

    def close(self) -> None:
        """They end."""
        for starter in list(self._starters):
            starter.close()


class _Starter:
    """One job, from the order to its final report."""

    def __init__(self, sock: socket.socket, pace: float, gone: Callable[["_Starter"], None]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._pace = pace
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._frames = messages.MessageReader()
        self._spec: JobSpec | None = None
        self._sequence = 0
        self._began = 0.0
        self._left = 0.0
        """Seconds that the job still has to run, as of `_since`."""
        self._since = 0.0
        self._end: asyncio.TimerHandle | None = None
        self._loop.add_reader(sock, self._read)

    def close(self) -> None:
        """Hang up."""
        if self._end is not None:
            self._end.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._gone(self)

    def _read(self) -> None:
        data = messages.receive(self._socket)
        if data is None:
            return
        if not data:
            self.close()
            return
        for body in self._frames.feed(data):
            self._hear(messages.decode_to_starter(body))

    def _hear(self, message: messages.ToStarter) -> None:
        match message:
            case messages.RunJob(spec=spec) if self._spec is None:
                self._run(spec)
            case messages.EndJob():
                self._over(AttemptResult(ending=message.ending, usage=self._usage()))
            case messages.Suspend():
                self._stand()
            case messages.Continue():
                self._go()
            case _:
                pass  # leases are long, and nobody looks into a job that is not there

    def _run(self, spec: JobSpec) -> None:
        self._spec = spec
        self._sequence = spec.sequence
        self._began = self._loop.time()
        self._left = (JobAd(spec.ad).number(SECONDS) or 0.0) / self._pace
        self._say(messages.Hello(spec.id, 0))
        self._say(messages.ReportMessage(self._report(Started(pid=0, at=time.time()))))
        self._go()

    def _stand(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self._left -= self._loop.time() - self._since

    def _go(self) -> None:
        if self._end is None:
            self._since = self._loop.time()
            self._end = self._loop.call_later(max(0.0, self._left), self._exit)

    def _exit(self) -> None:
        self._over(AttemptResult(exit=ExitRecord(code=0, at=time.time()), usage=self._usage()))

    def _over(self, result: AttemptResult) -> None:
        if self._spec is None:
            return
        if self._end is not None:
            self._end.cancel()
        stored = StoredReport(
            schedd=self._spec.schedd,
            secret=self._spec.key.secret,
            report=self._report(FinalReport(result=result)),
        )
        store(f"{self._spec.state}/reports", stored)
        self._say(messages.AttemptOver(stored))

    def _usage(self) -> Usage:
        return Usage(wall=round(self._loop.time() - self._began, 6))

    def _report(self, body: Body) -> Report:
        assert self._spec is not None
        self._sequence += 1
        spec = self._spec
        return Report(
            claim=spec.key.claim,
            attempt=spec.attempt,
            sequence=self._sequence,
            job=spec.job,
            body=body,
            trace=spec.trace,
        )

    def _say(self, message: messages.ToStartd) -> None:
        self._socket.sendall(messages.frame(message))  # some hundred bytes, of which a socket always has room
