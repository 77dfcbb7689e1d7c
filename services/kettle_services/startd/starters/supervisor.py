"""
The attempts that live on this machine: each between its acceptance and its final report, with or without a line to its
starter.
"""

import asyncio
import logging
import os
import socket
import time
from functools import partial
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import AttemptId, JobSpec
from kettle.execution.attempts.messages import (
    AccessReply,
    AccessRequest,
    AttemptOver,
    CheckpointSaved,
    Continue,
    EndJob,
    Hello,
    Question,
    Renew,
    Reply,
    ReportMessage,
    RunJob,
    Suspend,
    ToStartd,
)
from kettle.execution.system.linux import signal_process, start_time
from kettle_services.startd.domain.state.claim import RunningAttempt, StopOrder
from kettle_services.startd.starters.attempt import AttemptListener, SupervisedAttempt
from kettle_services.startd.starters.connection import StarterConnection
from kettle_services.startd.starters.pool import StarterPool
from kettle_wire.codes import RefusalCode, VacateCode
from kettle_wire.worker_reports import Report, Started

_log: Final = logging.getLogger(__name__)

_BIRTHS: Final = 5
"""How often a starter is tried to be forked before the machine gives up."""
_BIRTH_PAUSE_S: Final = 0.2
_MOST_ASKED: Final = 32
"""Questions that one starter has in hand."""
_HARD_PATIENCE_S: Final = 10.0
"""How long a starter may take to end its job beyond the time that the job has."""


class StarterSupervisor:
    """Starts starters, listens to them, and notices when they are gone."""

    def __init__(self, starter_pool: StarterPool, listener: AttemptListener) -> None:
        self._starter_pool = starter_pool
        self._listener = listener
        self._supervised: dict[AttemptId, SupervisedAttempt] = {}
        self._strangers: set[StarterConnection] = set()
        self._loop = asyncio.get_running_loop()
        self._questions = time.monotonic_ns()
        """A starter may still answer what our predecessor asked."""
        self._empty = asyncio.Event()
        self._empty.set()

    def __contains__(self, attempt: AttemptId) -> bool:
        return attempt in self._supervised

    async def emptied(self) -> None:
        """Wait until no attempt is left."""
        await self._empty.wait()

    async def settled(self, attempt: AttemptId) -> None:
        """Wait until the starter has all that it needs from us: its job runs, or is over."""
        supervised = self._supervised.get(attempt)
        if supervised is not None:
            await supervised.settled.wait()

    def begun(self, attempt: AttemptId) -> Report | None:
        """
        The report that the program of an attempt runs; None: it does not yet, or it is over, or nobody knows.
        """
        supervised = self._supervised.get(attempt)
        return None if supervised is None else supervised.begun

    # -- ways in -----------------------------------------------------------------------------------------------------

    def expect(self, attempt: AttemptId) -> None:
        """There is such an attempt; its starter comes later."""
        self._supervised[attempt] = SupervisedAttempt(attempt)
        self._empty.clear()

    def start(self, spec: JobSpec) -> None:
        """Fork a starter for an expected attempt."""
        supervised = self._supervised.get(spec.id)
        if supervised is not None:
            supervised.spec = spec
            self._fork_starter(supervised)

    def readopt(self, attempt: AttemptId, known: RunningAttempt, *, deadline: float, patience: float) -> None:
        """
        Wait for the starter of a former startd: as long as its process lives, or `patience` seconds if nobody knows it.

        Its lease goes on until `deadline`, seconds since boot, whatever it has heard of that.
        """
        self.expect(attempt)
        supervised = self._supervised[attempt]
        supervised.deadline = deadline
        supervised.stop = known.stop
        supervised.suspended = known.stands_still
        if known.pid and self._watch(supervised, known.pid, known.start_time):
            return
        self._loop.call_later(patience if not known.pid else 0.0, self._missing, supervised)

    def arrive(self, sock: socket.socket) -> None:
        """A starter came by itself; who it is, its hello says."""
        self._strangers.add(StarterConnection(sock, self._greet, self._strangers.discard))

    # -- orders ------------------------------------------------------------------------------------------------------

    def renew_lease(self, attempt: AttemptId, deadline: float) -> None:
        """The lease goes on."""
        supervised = self._supervised.get(attempt)
        if supervised is None:
            return
        supervised.deadline = max(deadline, supervised.deadline)
        if supervised.channel is not None:
            supervised.channel.send(Renew(deadline))

    def set_suspended(self, attempt: AttemptId, *, suspended: bool) -> None:
        """Suspend the job's processes, or continue them."""
        supervised = self._supervised.get(attempt)
        if supervised is None:
            return
        supervised.suspended = suspended
        if supervised.channel is not None and supervised.met:
            supervised.channel.send(Suspend() if suspended else Continue())

    def confirm_checkpoint(self, attempt: AttemptId, number: int) -> None:
        """
        The checkpoint of this number is saved.  A starter that does not hear this reports the checkpoint again.
        """
        supervised = self._supervised.get(attempt)
        if supervised is not None and supervised.channel is not None:
            supervised.channel.send(CheckpointSaved(number))

    def reply(self, attempt: AttemptId, reply: Reply) -> None:
        """Tell the starter what the submit side has answered."""
        supervised = self._supervised.get(attempt)
        if supervised is not None and supervised.channel is not None:
            supervised.channel.send(reply)

    async def ask(self, attempt: AttemptId, verb: str, body: bytes) -> AccessReply | None:
        """Ask the starter; None: it is not there, or not any more."""
        supervised = self._supervised.get(attempt)
        if supervised is None or supervised.channel is None or not supervised.met:
            return None
        if not supervised.visits:
            return AccessReply(
                0,
                code=RefusalCode.REFUSED,
                reason="the job was started by an earlier version, which cannot tell",
            )
        if len(supervised.asked) >= _MOST_ASKED or supervised.channel.clogged:
            return AccessReply(
                0,
                code=RefusalCode.BUSY,
                reason="the job's starter has too many questions in hand; try again later",
            )
        self._questions += 1
        number = self._questions
        answer: asyncio.Future[AccessReply | None] = self._loop.create_future()
        supervised.asked[number] = answer
        supervised.channel.send(AccessRequest(number, verb, body))
        try:
            return await answer
        finally:
            supervised.asked.pop(number, None)

    def stop_attempt(self, attempt: AttemptId, stop: StopOrder, *, limit: float) -> None:
        """Have the job ended.  A starter that does not do it within `limit` seconds is killed."""
        supervised = self._supervised.get(attempt)
        if supervised is None:
            return
        supervised.stop = stop
        if supervised.channel is not None:
            supervised.channel.send(_end(stop))
        patience = 0.0 if stop.hard else limit
        if supervised.enforcement is not None:
            supervised.enforcement.cancel()
        supervised.enforcement = self._loop.call_later(patience + _HARD_PATIENCE_S, self._enforce, supervised)

    def forget(self, attempt: AttemptId) -> None:
        """The attempt is over."""
        supervised = self._supervised.pop(attempt, None)
        if supervised is not None:
            supervised.settled.set()
            _unanswered(supervised)
            self._unwatch(supervised)
            if supervised.channel is not None:
                self._release(supervised.channel, rests=supervised.rests)
            if supervised.enforcement is not None:
                supervised.enforcement.cancel()
        if not self._supervised:
            self._empty.set()

    def close(self) -> None:
        """Let go of all lines: the starters look for the next startd."""
        for attempt in list(self._supervised):
            self.forget(attempt)
        for stranger in list(self._strangers):
            stranger.close()

    # -- what happens ------------------------------------------------------------------------------------------------

    def _fork_starter(self, supervised: SupervisedAttempt) -> None:
        if supervised.id not in self._supervised or supervised.spec is None:
            return
        supervised.births += 1
        sock = self._starter_pool.starter()
        if sock is None:
            self._fork_failed(supervised)
            return
        supervised.channel = StarterConnection(
            sock, partial(self._handle_message, supervised), partial(self._lose, supervised)
        )
        deadline = max(supervised.deadline, supervised.spec.deadline)
        supervised.channel.send(RunJob(msgspec.structs.replace(supervised.spec, deadline=deadline)))

    def _fork_failed(self, supervised: SupervisedAttempt) -> None:
        """No hello: nothing has been done yet, so it can be tried again."""
        if supervised.births < _BIRTHS and supervised.stop is None:
            self._loop.call_later(_BIRTH_PAUSE_S * supervised.births, self._fork_starter, supervised)
        else:
            self._listener.starter_lost(supervised.id, ran=False)

    def _greet(self, channel: StarterConnection, message: ToStartd) -> None:
        """The first word of a starter that came by itself."""
        self._strangers.discard(channel)
        supervised = self._supervised.get(message.id) if isinstance(message, Hello) else None
        if supervised is None:
            # Of an attempt that is over in our journal, or never was: it may end, and say so on disk.
            channel.send(EndJob(VacateCode.ClaimDeactivated, "the startd knows no such attempt", hard=True))
            self._strangers.add(channel)
            channel.redirect(self._hear_stranger, self._strangers.discard)
            return
        if supervised.channel is not None:
            supervised.channel.close()
        supervised.channel = channel
        channel.redirect(partial(self._handle_message, supervised), partial(self._lose, supervised))
        self._handle_message(supervised, channel, message)

    def _hear_stranger(self, channel: StarterConnection, message: ToStartd) -> None:
        if isinstance(message, AttemptOver):
            self._strangers.discard(channel)
            channel.close()  # it may wait for another job
            self._listener.record_exit(message.report)

    def _release(self, channel: StarterConnection, *, rests: bool) -> None:
        sock = channel.detach()
        if sock is None:
            return
        if rests:
            self._starter_pool.rest(sock)
        else:
            sock.close()

    def _handle_message(
        self, supervised: SupervisedAttempt, channel: StarterConnection, message: ToStartd
    ) -> None:
        match message:
            case Hello(pid=pid, report=started, checkpoint=checkpoint, visits=visits):
                supervised.visits = visits
                supervised.begun = started or supervised.begun
                self._meet(supervised, channel, pid)
                for report in (started, checkpoint):
                    if report is not None:
                        self._listener.record_report(report)
            case ReportMessage(report=report):
                supervised.settled.set()
                if isinstance(report.body, Started):
                    supervised.begun = report
                self._listener.record_report(report)
            case AttemptOver(report=stored, rests=rests):
                supervised.rests = rests
                self._listener.record_exit(stored)
            case Question():
                self._listener.forward_question(supervised.id, message)
            case AccessReply(number=number):
                if (asked := supervised.asked.get(number)) is not None and not asked.done():
                    asked.set_result(message)

    def _meet(self, supervised: SupervisedAttempt, channel: StarterConnection, pid: int) -> None:
        started = start_time(pid) or 0
        if (supervised.pid, supervised.started) != (pid, started):
            supervised.pid, supervised.started = pid, started
            self._listener.starter_connected(supervised.id, pid, started)
        supervised.met = True
        supervised.spec = None  # it is not needed any more, and may hold large inputs
        self._unwatch(supervised)
        # Said again it changes nothing, and a former startd may not have said it, or nobody while there was none.
        if supervised.deadline:
            channel.send(Renew(supervised.deadline))
        if supervised.suspended is not None:
            channel.send(Suspend() if supervised.suspended else Continue())
        if supervised.stop is not None:
            channel.send(_end(supervised.stop))

    def _lose(self, supervised: SupervisedAttempt, channel: StarterConnection) -> None:
        """The line is broken: the starter is dead, or hung up on its way out."""
        supervised.channel = None
        _unanswered(supervised)
        if supervised.id not in self._supervised:
            return
        if not supervised.met:
            self._fork_failed(supervised)
        elif not self._watch(supervised, supervised.pid, supervised.started):
            self._missing(supervised)

    def _watch(self, supervised: SupervisedAttempt, pid: int, started: int) -> bool:
        """Be told when the process ends; whether it lives."""
        supervised.pid, supervised.started, supervised.met = pid, started, True
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        if start_time(pid) != started:
            os.close(fd)
            return False
        self._unwatch(supervised)
        supervised.watch = fd
        self._loop.add_reader(fd, self._missing, supervised)
        return True

    def _unwatch(self, supervised: SupervisedAttempt) -> None:
        if supervised.watch >= 0:
            self._loop.remove_reader(supervised.watch)
            os.close(supervised.watch)
            supervised.watch = -1

    def _missing(self, supervised: SupervisedAttempt) -> None:
        """The starter's process is gone, or never came."""
        self._unwatch(supervised)
        if supervised.channel is None and self._supervised.get(supervised.id) is supervised:
            self._listener.starter_lost(supervised.id, ran=True)

    def _enforce(self, supervised: SupervisedAttempt) -> None:
        """The starter has not ended its job in time."""
        if self._supervised.get(supervised.id) is not supervised:
            return
        _log.warning(
            "starter does not end its job: killed",
            extra={"pid": supervised.pid, "attempt": supervised.id.name},
        )
        if supervised.pid and signal_process(supervised.pid, 9, started=supervised.started):
            return  # its line, or the watch, tells
        if supervised.channel is None:
            self._missing(supervised)


def _unanswered(supervised: SupervisedAttempt) -> None:
    for asked in supervised.asked.values():
        if not asked.done():
            asked.set_result(None)


def _end(stop: StopOrder) -> EndJob:
    return EndJob(stop.ending.code, stop.ending.reason, stop.hard, stop.ending.subcode)
