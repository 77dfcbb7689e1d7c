"""
Files of jobs that Kettle's own deciders have started: they wait for their turn in the transfer queue, and share the network.

The queue is the shadow's own: so many jobs at once in each direction, users in turn. What a job reads goes from the centre of the platform
to its host before its program begins, what it writes goes back after its end; its claim is occupied all that time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from kettle_services.shadow.domain.transfer_queue import Turns
from kettle_services.simulator.domain.clock import ENDS, Clock
from kettle_services.simulator.platforms.network import Correction, Network
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.transfers import Transfers
from kettle_wire.jobs import JobId

Then = Callable[[], None]


class _Move(msgspec.Struct):
    """Files of one job that are on their way, or wait for that, in one direction."""

    job: JobId
    place: int
    """Of the job in the workload."""
    host: int
    size: int
    turns: Turns[JobId]
    then: Then
    begun: bool = False


class MovedFiles:
    """All transfers of one simulation."""

    def __init__(
        self,
        platform: Platform,
        workload: Workload,
        place: Callable[[JobId], int],
        *,
        correction: Correction,
        uploads: int,
        downloads: int,
    ) -> None:
        """
        `place` is that of a job in the workload. `uploads` and `downloads`: so many jobs at once move what they read, and what they
        write; 0: all.
        """
        self._place = place
        self._transfers: Final = Transfers(Network(platform.links, correction), platform.ways)
        self._hosts: Mapping[str, int] = {host.name: place for place, host in enumerate(platform.hosts)}
        self._reads, self._writes = workload.reads, workload.writes
        self._uploads: Turns[JobId] = Turns(uploads)
        self._downloads: Turns[JobId] = Turns(downloads)
        self._moves: dict[JobId, _Move] = {}
        self._works: dict[JobId, int] = {}
        """Programs that run, by the number of their run: one that was lost does not end."""
        self._runs = 0
        self._asks_at = -1
        """When the network is asked next."""

    def run(
        self, clock: Clock, job: JobId, user: str, startd: str, work: int, *, begun: Then, ended: Then
    ) -> None:
        """See `Files.run`."""
        host, place = self._hosts[startd], self._place(job)

        def wrote() -> None:
            self._move(clock, job, place, user, host, int(self._writes[place]), self._downloads, ended)

        def worked(number: int) -> None:
            if self._works.get(job) == number:
                del self._works[job]
                wrote()

        def read() -> None:
            begun()
            self._runs += 1
            self._works[job] = self._runs
            clock.at(clock.now + work, partial(worked, self._runs), turn=ENDS)

        self._move(clock, job, place, user, host, int(self._reads[place]), self._uploads, read)

    def lost(self, clock: Clock, job: JobId) -> None:
        """See `Files.lost`."""
        self._works.pop(job, None)
        move = self._moves.pop(job, None)
        if move is None:
            return
        if move.begun:
            self._transfers.cancel(clock.now, move.place)
        self._next(clock, move)
        self._await_network(clock)

    def _move(
        self,
        clock: Clock,
        job: JobId,
        place: int,
        user: str,
        host: int,
        size: int,
        turns: Turns[JobId],
        then: Then,
    ) -> None:
        if not size:
            then()
            return
        self._moves[job] = _Move(job, place, host, size, turns, then)
        if turns.ask(job, user):
            self._begin(clock, job)

    def _begin(self, clock: Clock, job: JobId) -> None:
        """It is its turn."""
        move = self._moves[job]
        move.begun = True
        self._transfers.begin(clock.now, move.place, move.host, move.size)
        self._await_network(clock)

    def _next(self, clock: Clock, move: _Move) -> None:
        """The turn of one is over, and others have theirs."""
        for job in move.turns.done(move.job):
            if job in self._moves:
                self._begin(clock, job)

    def _ask_network(self, clock: Clock) -> None:
        places = {move.place: job for job, move in self._moves.items()}
        over = [self._moves.pop(places[place]) for place in self._transfers.ended(clock.now)]
        for move in over:
            self._next(clock, move)
        self._await_network(clock)
        for move in over:
            move.then()

    def _await_network(self, clock: Clock) -> None:
        """See to it that the network is asked when its next transfer ends."""
        change = self._transfers.next_change(clock.now)
        if change is not None and (self._asks_at <= clock.now or change < self._asks_at):
            self._asks_at = change
            clock.at(change, partial(self._ask_network, clock), turn=ENDS)
