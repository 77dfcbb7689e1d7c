"""
Hands recorded assignments to shadows and keeps both sides' lists equal.

Handing over is a message that may be lost; the full exchange that each shadow asks for (`sync`) repairs it.
A shadow that has not asked for three intervals has lost its jobs to the next one that does.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle.jobs import traceparent
from kettle.jobs.nodes import HOSTS
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.domain.jobs import deferral
from kettle_services.schedd.domain.jobs.matched_ad import matched
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.shadows.start_delay import StartDelay
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.attempt_reports import Attempt, ShadowOrders, ShadowSync
from kettle_wire.commands.shadow import LOOK_AFTER, Assignment, LookAfter, NodeAssignment, Still, Stop
from kettle_wire.jobs import JobId
from kettle_wire.telemetry.traces import ASSIGN

_log: Final = logging.getLogger(__name__)

MESSAGE_BYTES: Final = 3 * 1024 * 1024
"""Assignments in one message: well below what the bus takes, however large the job ads are."""

_size = msgspec.msgpack.Encoder().encode


def fitting(assignments: Sequence[Assignment]) -> list[Assignment]:
    """As many from the front as fit into one message, and at least one."""
    size, count = 0, 0
    for assignment in assignments:
        size += len(_size(assignment))
        if size > MESSAGE_BYTES and count:
            break
        count += 1
    return list(assignments[:count])


class ShadowOutbox:
    """The messages that one shadow still has to get."""

    def __init__(self) -> None:
        self.start: list[Assignment] = []
        self.stop: list[Stop] = []
        self.still: list[Still] = []
        self.filled = asyncio.Event()


class ShadowDispatch:
    """The shadows of this schedd."""

    def __init__(
        self,
        bus: Bus,
        queue: Queue,
        secrets: ClaimSecrets,
        seal: AttributeSeal,
        tasks: asyncio.TaskGroup,
        telemetry: Telemetry,
        *,
        interval: float,
        longest_delay: float = 0.0,
    ) -> None:
        """`longest_delay`: seconds that a job may have the next one of its owner wait for its start."""
        self._pace = StartDelay(longest=longest_delay, start=self.hand_over)
        self._bus = bus
        self._queue = queue
        self._secrets = secrets
        self._seal = seal
        self._tasks = tasks
        self._telemetry = telemetry
        self._interval = interval
        self._seen: dict[str, float] = {}
        self._supervisor: dict[JobId, str] = {}
        self._vacating: dict[JobId, Stop] = {}
        """
        What policies want ended, and with what subcode.

        It is not recorded before it has happened: the next schedd decides again.
        """
        self._on_their_way: defaultdict[str, set[Attempt]] = defaultdict(set)
        """
        Shadow -> what was handed to it since it last said what it has: it may not have known of it then.
        """
        self._outboxes: dict[str, ShadowOutbox] = {}
        self._deliveries: list[asyncio.Task[None]] = []

    def assignment(self, job: JobId) -> Assignment:
        """The order to run the newest attempt of a job."""
        state = self._queue.jobs[job].job
        granted = self._queue.claims[state.claim].granted
        now = time.time()
        ad = self._seal.opened(self._queue.ad(job), self._queue.owner(job))
        if state.attempt.gang is not None:
            ad |= {HOSTS: " ".join(self._host(claim) for claim in state.attempt.claims)}
        settled = deferral.settled(ad, now)
        mine = matched(settled, granted.slot_ad, now)
        return Assignment(
            job=job,
            attempt=state.attempt.number,
            key=self._secrets.key(state.claim),
            startd=granted.startd,
            slot=granted.slot,
            ad=mine,
            trace=traceparent(self._queue.schedd, job),
            nodes=[self._node(claim, settled, mine, now) for claim in state.attempt.claims[1:]],
        )

    def _node(self, claim: str, settled: Ad, first: Ad, now: float) -> NodeAssignment:
        granted = self._queue.claims[claim].granted
        ad = matched(settled, granted.slot_ad, now)
        return NodeAssignment(
            key=self._secrets.key(claim),
            startd=granted.startd,
            slot=granted.slot,
            differs={name: value for name, value in ad.items() if first.get(name) != value},
        )

    def _host(self, claim: str) -> str:
        granted = self._queue.claims[claim].granted
        machine = granted.slot_ad.get("Machine")
        return machine if isinstance(machine, str) else granted.startd

    def hand_over(self, job: JobId, shadow: str = "") -> Assignment | None:
        """
        Give a committed assignment to a shadow: to the one that asks, or to any that lives; None if it is over.
        """
        if (entry := self._queue.jobs.get(job)) is None or entry.job.claim not in self._queue.claims:
            return None
        if self._pace.must_wait(owner := self._queue.owner(job), job):
            return None
        assignment = self.assignment(job)
        self._pace.record_start(owner, assignment.ad)
        parent = {"traceparent": assignment.trace}
        with self._telemetry.span(ASSIGN.name, parent=parent, job=str(job), attempt=assignment.attempt):
            return self._give(assignment, shadow)

    def _give(self, assignment: Assignment, shadow: str) -> Assignment:
        job = assignment.job
        told = shadow or self.any_alive()
        if told:  # else the first shadow that syncs gets it
            self._supervisor[job] = told
            self._on_their_way[told].add(Attempt(job, assignment.attempt))
        if told and not shadow:
            outbox = self._outbox(told)
            outbox.start.append(assignment)
            outbox.filled.set()
        return assignment

    def order_vacate(self, job: JobId, why: Ending) -> None:
        """Have the live attempt of a running job ended; what was wanted first counts."""
        attempt = self._queue.jobs[job].job.attempt.number
        ordered = self._vacating.get(job)
        if ordered is None or ordered.attempt != attempt:
            self._vacating[job] = Stop(job=job, attempt=attempt, ending=why)
        self.deliver_orders(job)

    def deliver_orders(self, job: JobId) -> None:
        """
        Have the live attempt of a held, removed or vacated job ended, or do what else was ordered of it.
        """
        if (shadow := self._supervisor.get(job)) is None:
            return
        outbox = self._outbox(shadow)
        if (order := self._stop_order(job)) is not None:
            outbox.stop.append(order)
            outbox.filled.set()
        elif (still := self._still_order(job)) is not None:
            outbox.still.append(still)
            outbox.filled.set()

    def push(self, shadow: str, assignments: Iterable[Assignment]) -> None:
        """Hand assignments over in messages of their own."""
        outbox = self._outbox(shadow)
        outbox.start.extend(assignments)
        outbox.filled.set()

    def drop_attempt(self, job: JobId) -> None:
        """The attempt is over."""
        self._supervisor.pop(job, None)
        self._vacating.pop(job, None)

    def sync(self, request: ShadowSync, live: Iterable[JobId]) -> ShadowOrders:
        """
        The difference between what a shadow looks after and what is recorded. `live`: jobs with a live attempt.

        What was handed to it since it asked the last time is not sent twice, unless it has just begun; if it is lost, it is
        missing from its next list, too.
        """
        self._seen[request.shadow] = time.monotonic()
        on_their_way = self._on_their_way.pop(request.shadow, set())
        if not request.attempts:
            on_their_way.clear()
        listed = {a.job: a.attempt for a in request.attempts}
        start: list[Assignment] = []
        stop: list[Stop] = []
        still: list[Still] = []
        current: set[Attempt] = set()
        for job in live:
            attempt = self._queue.jobs[job].job.attempt.number
            current.add(this := Attempt(job, attempt))
            has_it = listed.get(job) == attempt or this in on_their_way
            if has_it or not self._kept_elsewhere(job, request.shadow):
                self._supervisor[job] = request.shadow
                if not has_it and not self._pace.must_wait(self._queue.owner(job), job):
                    start.append(self.assignment(job))
                if (order := self._stop_order(job)) is not None:
                    stop.append(order)
                elif (wanted := self._still_order(job)) is not None:
                    still.append(wanted)
        forget = [a for a in request.attempts if a not in current]
        over = [a for a in request.strays if a not in current]
        drop = [job for job in request.kept if self._is_over(job)]
        first = fitting(start)
        return ShadowOrders(
            start=first,
            stop=stop,
            still=still,
            forget=forget,
            over=over,
            drop=drop,
            spooled=[job for job in request.spooled if job not in self._queue.jobs],
            spools=[cluster for cluster in request.spools if cluster not in self._queue.clusters],
            more=len(first) < len(start),
            sync_interval=self._interval,
        )

    def _is_over(self, job: JobId) -> bool:
        known = self._queue.jobs.get(job)
        return known is None or known.job.status in {"completed", "removed"}

    def _stop_order(self, job: JobId) -> Stop | None:
        order = self._wanted_end(job)
        dead = self._queue.live.lost
        lost = [claim for claim in self._queue.jobs[job].job.attempt.claims if claim in dead] if dead else []
        return msgspec.structs.replace(order, lost=lost) if order is not None and lost else order

    def _wanted_end(self, job: JobId) -> Stop | None:
        state = self._queue.jobs[job].job
        hard = None
        match state.status:
            case "held":
                ending = Ending(code=VacateCode.ScheddVacate, reason="the job was held")
            case "removed":
                ending = Ending(code=VacateCode.JobRemoved, reason="the job was removed")
            case "idle":
                ending = Ending(code=VacateCode.ScheddVacate, reason="the job was held and released")
            case _ if state.attempt.orders.vacating:
                ending = Ending(code=VacateCode.UserVacateJob, reason=state.attempt.orders.reason)
                hard = state.attempt.orders.fast
            case _:
                order = self._vacating.get(job)
                return order if order is not None and order.attempt == state.attempt.number else None
        return Stop(job=job, attempt=state.attempt.number, ending=ending, hard=hard)

    def _still_order(self, job: JobId) -> Still | None:
        state = self._queue.jobs[job].job
        if not state.attempt.orders.count:
            return None
        return Still(
            job=job,
            attempt=state.attempt.number,
            suspended=state.attempt.orders.still,
            number=state.attempt.orders.count,
        )

    def _alive(self, shadow: str) -> bool:
        seen = self._seen.get(shadow)
        return seen is not None and time.monotonic() - seen < 3 * self._interval

    def any_alive(self) -> str:
        """A shadow that sent a message recently; empty if there is none."""
        return next((shadow for shadow in self._seen if self._alive(shadow)), "")

    def _kept_elsewhere(self, job: JobId, shadow: str) -> bool:
        supervisor = self._supervisor.get(job, shadow)
        return supervisor != shadow and self._alive(supervisor)

    def _outbox(self, shadow: str) -> ShadowOutbox:
        outbox = self._outboxes.get(shadow)
        if outbox is None:
            outbox = self._outboxes[shadow] = ShadowOutbox()
            self._deliveries.append(
                self._tasks.create_task(self._deliver(shadow, outbox), name=f"shadow {shadow}")
            )
        return outbox

    def close(self) -> None:
        """Send nothing more to the shadows."""
        self._pace.close()
        for delivery in self._deliveries:
            delivery.cancel()

    async def _deliver(self, shadow: str, outbox: ShadowOutbox) -> None:
        while True:
            await outbox.filled.wait()
            start = fitting(outbox.start)
            outbox.start = outbox.start[len(start) :]
            stop, outbox.stop = outbox.stop, []
            still, outbox.still = outbox.still, []
            if not outbox.start:
                outbox.filled.clear()
            try:
                await self._bus.call(LOOK_AFTER, shadow, LookAfter(start=start, stop=stop, still=still))
            except BusError as error:
                _log.warning("shadow not reached; it will ask", extra={"shadow": shadow, "cause": str(error)})
                self._on_their_way[shadow].difference_update(
                    Attempt(each.job, each.attempt) for each in start
                )
