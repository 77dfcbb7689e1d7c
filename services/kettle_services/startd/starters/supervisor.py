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

from kettle.execution.attempt import AttemptId, JobSpec
from kettle.execution.linux import signal_process, start_time
from kettle.execution.protocol import (
    Answer,
    Asked,
    Continue,
    End,
    Hello,
    Over,
    Question,
    Renew,
    Reply,
    Run,
    Said,
    Saved,
    Suspend,
    ToStartd,
)
from kettle_services.startd.domain.state.claim import Attempt, Stop
from kettle_services.startd.starters.attempt import Landlord, Tenant
from kettle_services.startd.starters.connection import Channel
from kettle_services.startd.starters.pool import Starters

_log: Final = logging.getLogger(__name__)

_BIRTHS: Final = 5
"""How often a starter is tried to be forked before the machine gives up."""
_BIRTH_PAUSE_S: Final = 0.2
_MOST_ASKED: Final = 32
"""Questions that one starter has in hand."""
_HARD_PATIENCE_S: Final = 10.0
"""How long a starter may take to end its job beyond the time that the job has."""


class Tenancy:
    """
    Starts starters, listens to them, and notices when they are gone.
    """

    def __init__(self, nursery: Starters, landlord: Landlord) -> None:
        self._nursery = nursery
        self._landlord = landlord
        self._tenants: dict[AttemptId, Tenant] = {}
        self._strangers: set[Channel] = set()
        self._loop = asyncio.get_running_loop()
        self._questions = time.monotonic_ns()
        """A starter may still answer what our predecessor asked."""
        self._empty = asyncio.Event()
        self._empty.set()

    def __contains__(self, attempt: AttemptId) -> bool:
        return attempt in self._tenants

    async def emptied(self) -> None:
        """
        Wait until no attempt is left.
        """
        await self._empty.wait()

    async def settled(self, attempt: AttemptId) -> None:
        """
        Wait until the starter has all that it needs from us: its job runs, or is over.
        """
        tenant = self._tenants.get(attempt)
        if tenant is not None:
            await tenant.settled.wait()

    # -- ways in -----------------------------------------------------------------------------------------------------

    def expect(self, attempt: AttemptId) -> None:
        """
        There is such an attempt; its starter comes later.
        """
        self._tenants[attempt] = Tenant(attempt)
        self._empty.clear()

    def start(self, spec: JobSpec) -> None:
        """
        Fork a starter for an expected attempt.
        """
        tenant = self._tenants.get(spec.id)
        if tenant is not None:
            tenant.spec = spec
            self._bear(tenant)

    def readopt(self, attempt: AttemptId, known: Attempt, *, patience: float) -> None:
        """
        Wait for the starter of a former startd: as long as its process lives, or `patience` seconds if nobody knows it.
        """
        self.expect(attempt)
        tenant = self._tenants[attempt]
        tenant.stop = known.stop
        tenant.suspended = known.stands_still
        if known.pid and self._watch(tenant, known.pid, known.start_time):
            return
        self._loop.call_later(patience if not known.pid else 0.0, self._missing, tenant)

    def arrive(self, sock: socket.socket) -> None:
        """
        A starter came by itself; who it is, its hello says.
        """
        self._strangers.add(Channel(sock, self._greet, self._strangers.discard))

    # -- orders ------------------------------------------------------------------------------------------------------

    def renew(self, attempt: AttemptId, deadline: float) -> None:
        """
        The lease goes on.
        """
        tenant = self._tenants.get(attempt)
        if tenant is not None and tenant.channel is not None:
            tenant.channel.send(Renew(deadline))
        if tenant is not None and tenant.spec is not None:
            tenant.spec = msgspec.structs.replace(tenant.spec, deadline=max(deadline, tenant.spec.deadline))

    def still(self, attempt: AttemptId, *, suspended: bool) -> None:
        """
        Have the job's processes stand still, or go on.
        """
        tenant = self._tenants.get(attempt)
        if tenant is None:
            return
        tenant.suspended = suspended
        if tenant.channel is not None and tenant.met:
            tenant.channel.send(Suspend() if suspended else Continue())

    def saved(self, attempt: AttemptId, number: int) -> None:
        """
        The checkpoint of this number is saved.  Whoever does not hear it says the checkpoint again.
        """
        tenant = self._tenants.get(attempt)
        if tenant is not None and tenant.channel is not None:
            tenant.channel.send(Saved(number))

    def reply(self, attempt: AttemptId, reply: Reply) -> None:
        """
        Tell the starter what the submit side has answered.
        """
        tenant = self._tenants.get(attempt)
        if tenant is not None and tenant.channel is not None:
            tenant.channel.send(reply)

    async def ask(self, attempt: AttemptId, verb: str, body: bytes) -> Answer | None:
        """
        Ask the starter; None: it is not there, or not any more.
        """
        tenant = self._tenants.get(attempt)
        if tenant is None or tenant.channel is None or not tenant.met:
            return None
        if not tenant.visits:
            return Answer(
                0, code="refused", reason="the job was started by an earlier version, which cannot tell"
            )
        if len(tenant.asked) >= _MOST_ASKED or tenant.channel.clogged:
            return Answer(
                0, code="busy", reason="the job's starter has too many questions in hand; try again later"
            )
        self._questions += 1
        number = self._questions
        answer: asyncio.Future[Answer | None] = self._loop.create_future()
        tenant.asked[number] = answer
        tenant.channel.send(Asked(number, verb, body))
        try:
            return await answer
        finally:
            tenant.asked.pop(number, None)

    def end(self, attempt: AttemptId, stop: Stop, *, limit: float) -> None:
        """
        Have the job ended.  A starter that does not do it within `limit` seconds is killed.
        """
        tenant = self._tenants.get(attempt)
        if tenant is None:
            return
        tenant.stop = stop
        if tenant.channel is not None:
            tenant.channel.send(_end(stop))
        patience = 0.0 if stop.hard else limit
        if tenant.enforcement is not None:
            tenant.enforcement.cancel()
        tenant.enforcement = self._loop.call_later(patience + _HARD_PATIENCE_S, self._enforce, tenant)

    def forget(self, attempt: AttemptId) -> None:
        """
        The attempt is over.
        """
        tenant = self._tenants.pop(attempt, None)
        if tenant is not None:
            tenant.settled.set()
            _unanswered(tenant)
            self._unwatch(tenant)
            if tenant.channel is not None:
                self._release(tenant.channel, rests=tenant.rests)
            if tenant.enforcement is not None:
                tenant.enforcement.cancel()
        if not self._tenants:
            self._empty.set()

    def close(self) -> None:
        """
        Let go of all lines: the starters look for the next startd.
        """
        for attempt in list(self._tenants):
            self.forget(attempt)
        for stranger in list(self._strangers):
            stranger.close()

    # -- what happens ------------------------------------------------------------------------------------------------

    def _bear(self, tenant: Tenant) -> None:
        if tenant.id not in self._tenants or tenant.spec is None:
            return
        tenant.births += 1
        sock = self._nursery.starter()
        if sock is None:
            self._stillborn(tenant)
            return
        tenant.channel = Channel(sock, partial(self._hear, tenant), partial(self._lose, tenant))
        tenant.channel.send(Run(tenant.spec))

    def _stillborn(self, tenant: Tenant) -> None:
        """
        No hello: nothing has been done yet, so it can be tried again.
        """
        if tenant.births < _BIRTHS and tenant.stop is None:
            self._loop.call_later(_BIRTH_PAUSE_S * tenant.births, self._bear, tenant)
        else:
            self._landlord.abandoned(tenant.id, ran=False)

    def _greet(self, channel: Channel, message: ToStartd) -> None:
        """
        The first word of a starter that came by itself.
        """
        self._strangers.discard(channel)
        tenant = self._tenants.get(message.id) if isinstance(message, Hello) else None
        if tenant is None:
            # Of an attempt that is over in our journal, or never was: it may end, and say so on disk.
            channel.send(End(1009, "the startd knows no such attempt", hard=True))
            self._strangers.add(channel)
            channel.redirect(self._hear_stranger, self._strangers.discard)
            return
        if tenant.channel is not None:
            tenant.channel.close()
        tenant.channel = channel
        channel.redirect(partial(self._hear, tenant), partial(self._lose, tenant))
        self._hear(tenant, channel, message)

    def _hear_stranger(self, channel: Channel, message: ToStartd) -> None:
        if isinstance(message, Over):
            self._strangers.discard(channel)
            channel.close()  # it may wait for another job
            self._landlord.over(message.report)

    def _release(self, channel: Channel, *, rests: bool) -> None:
        sock = channel.detach()
        if sock is None:
            return
        if rests:
            self._nursery.rest(sock)
        else:
            sock.close()

    def _hear(self, tenant: Tenant, channel: Channel, message: ToStartd) -> None:
        match message:
            case Hello(pid=pid, report=started, checkpoint=checkpoint, visits=visits):
                tenant.visits = visits
                self._meet(tenant, channel, pid)
                for report in (started, checkpoint):
                    if report is not None:
                        self._landlord.said(report)
            case Said(report=report):
                tenant.settled.set()
                self._landlord.said(report)
            case Over(report=stored, rests=rests):
                tenant.rests = rests
                self._landlord.over(stored)
            case Question():
                self._landlord.asked(tenant.id, message)
            case Answer(number=number):
                if (asked := tenant.asked.get(number)) is not None and not asked.done():
                    asked.set_result(message)

    def _meet(self, tenant: Tenant, channel: Channel, pid: int) -> None:
        started = start_time(pid) or 0
        if (tenant.pid, tenant.started) != (pid, started):
            tenant.pid, tenant.started = pid, started
            self._landlord.met(tenant.id, pid, started)
        tenant.met = True
        tenant.spec = None  # it is not needed any more, and may hold large inputs
        self._unwatch(tenant)
        if (
            tenant.suspended is not None
        ):  # said again it changes nothing, and a former startd may not have said it
            channel.send(Suspend() if tenant.suspended else Continue())
        if tenant.stop is not None:
            channel.send(_end(tenant.stop))

    def _lose(self, tenant: Tenant, channel: Channel) -> None:
        """
        The line is broken: the starter is dead, or hung up on its way out.
        """
        tenant.channel = None
        _unanswered(tenant)
        if tenant.id not in self._tenants:
            return
        if not tenant.met:
            self._stillborn(tenant)
        elif not self._watch(tenant, tenant.pid, tenant.started):
            self._missing(tenant)

    def _watch(self, tenant: Tenant, pid: int, started: int) -> bool:
        """
        Be told when the process ends; whether it lives.
        """
        tenant.pid, tenant.started, tenant.met = pid, started, True
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        if start_time(pid) != started:
            os.close(fd)
            return False
        self._unwatch(tenant)
        tenant.watch = fd
        self._loop.add_reader(fd, self._missing, tenant)
        return True

    def _unwatch(self, tenant: Tenant) -> None:
        if tenant.watch >= 0:
            self._loop.remove_reader(tenant.watch)
            os.close(tenant.watch)
            tenant.watch = -1

    def _missing(self, tenant: Tenant) -> None:
        """
        The starter's process is gone, or never came.
        """
        self._unwatch(tenant)
        if tenant.channel is None and self._tenants.get(tenant.id) is tenant:
            self._landlord.abandoned(tenant.id, ran=True)

    def _enforce(self, tenant: Tenant) -> None:
        """
        The starter has not ended its job in time.
        """
        if self._tenants.get(tenant.id) is not tenant:
            return
        _log.warning(
            "starter does not end its job: killed", extra={"pid": tenant.pid, "attempt": tenant.id.name}
        )
        if tenant.pid and signal_process(tenant.pid, 9, started=tenant.started):
            return  # its line, or the watch, tells
        if tenant.channel is None:
            self._missing(tenant)


def _unanswered(tenant: Tenant) -> None:
    for asked in tenant.asked.values():
        if not asked.done():
            asked.set_result(None)


def _end(stop: Stop) -> End:
    return End(stop.code, stop.reason, stop.hard, hold=stop.hold, subcode=stop.subcode)
