"""
The claims of jobs of several nodes: all of them together, or none.

A job is given its claims in one frame, when all have been granted. Until then each is recorded as a claim without a job,
so that it is renewed, and given back by the next schedd if this one is killed. What is not complete in time, or cannot be,
is given back at once, and the jobs wait for a growing time: so two jobs that each hold a part of what both need do not wait
for each other, and do not collide again and again.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from kettle.retry.backoff import Backoff
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.claims.request_outcomes import Undecided
from kettle_services.schedd.claims.requester import granted_on
from kettle_services.schedd.domain.claims.states import ClaimStimulus
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import ClaimsDecided, RequestClaims
from kettle_wire.events import ClaimGranted

_log: Final = logging.getLogger(__name__)
_ROOM_S: Final = 1.0
"""Between two looks whether a slot is free whose job has to make room."""
_AGAIN: Final = Backoff(first=1.0, longest=60.0)
"""How long the jobs of an autocluster wait after one of them did not get all of its claims."""

_Key = tuple[str, int]
"""Submitter and autocluster."""


class _Granted(NamedTuple):
    """A claim on record, and the match for which it was asked."""

    match: MatchedSlot
    event: ClaimGranted


class _IncompleteError(Exception):
    """A slot was not granted, so the others are of no use."""


class GangClaims:
    """Asks for claims that belong together, and gives back those that belonged together."""

    def __init__(
        self,
        recorder: QueueRecorder,
        claims: ClaimLifecycle,
        shadows: ShadowDispatch,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
    ) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._requester = claims.requester
        self._requests = claims.requests
        self._ends = claims.ends
        self._renew_soon = claims.renewer.renew_soon
        self._assigning = claims.assigning
        self._states = claims.states
        self._shadows = shadows
        self._tasks = tasks
        self._deadline = settings.gang_deadline
        self._terms = claims.terms
        self._failures: Counter[_Key] = Counter()
        self._forming: set[asyncio.Task[None]] = set()

    def request_matched(self, matches: Iterable[MatchedSlot]) -> None:
        """
        Ask for the claims of as many jobs as there are complete sets of slots for among these matches, and as wait.
        """
        slots: dict[tuple[_Key, int], list[MatchedSlot]] = {}
        for match in matches:
            jobs_alike = (match.submitter, match.autocluster)
            slots.setdefault((jobs_alike, match.nodes), []).extend([match] * match.count)
        for (key, nodes), places in slots.items():
            asked = self._requester.asked.jobs
            room = self._requester.limits.room_for(self._queue.demand.next_job(*key), asked)
            jobs = min(len(places) // nodes, self._queue.demand.count(*key) - asked[key], room)
            for first in range(0, jobs * nodes, nodes):
                asked[key] += 1
                task = self._tasks.create_task(self._form(key, places[first : first + nodes]), name="gang")
                self._forming.add(task)
                task.add_done_callback(self._forming.discard)
            if jobs <= 0:
                self._requester.wake()

    def give_back(self, claims: Iterable[str], reason: str) -> None:
        """Record that claims are over that were held together."""
        for claim in claims:
            self._ends.give_back(claim, reason)

    def close(self) -> None:
        """Form no gangs any more; what was granted is on record, and the next schedd gives it back."""
        for task in self._forming:
            task.cancel()

    async def _form(self, key: _Key, places: list[MatchedSlot]) -> None:
        """Get all claims of one job, and give it to it; else give all back, and wait."""
        granted: list[_Granted] = []
        try:
            reason = await self._ask_for_all(key, places, granted)
            job = self._queue.demand.next_job(*key)
            if not reason and job is None:
                reason = "no job is left for the claims"
            if not reason and any(each.event.claim not in self._queue.claims for each in granted):
                reason = "a machine has ended its claim before the others were granted"
            if not reason and job is not None:
                del self._failures[key]
                first, *others = [each.event for each in granted]
                events = self._assigning.assignment_events(job, first, others)
                for each in granted:
                    self._states.feed(each.event.claim, ClaimStimulus.ASSIGNED)
                self._recorder.record(events)
                await self._recorder.shard.committed()
                self._shadows.hand_over(job)
                return
            self.give_back([each.event.claim for each in granted], reason)
            self._requester.refusals.add_refusal(key, f"{len(places)} slots together", reason)
            if job is not None:
                self._failures[key] += 1
                extra = {"submitter": key[0], "nodes": len(places), "granted": len(granted), "cause": reason}
                _log.info("not all nodes of a job got a slot", extra=extra)
                await asyncio.sleep(_AGAIN.delay(self._failures[key] - 1, random.random()))  # noqa: S311 - no secret
        finally:
            self._requester.asked.leave_job(key)
            self._requester.wake()

    async def _ask_for_all(self, key: _Key, places: list[MatchedSlot], granted: list[_Granted]) -> str:
        """Ask all machines at once and record what they grant; why that is not all, or nothing if it is."""
        job, most = self._queue.demand.next_job(*key), self._deadline
        if job is None:
            return "no job is left for the claims"
        ad = self._queue.ad(job)
        lease = self._terms.of(ad)
        on_slot = {match.slot: (match, places.count(match)) for match in places}
        try:
            async with asyncio.timeout(min(most, lease / 2)):
                reason = await self._ask_together(list(on_slot.values()), ad, lease, granted)
        except TimeoutError:
            reason = f"not all {len(places)} slots were granted within {most:g} s"
        order = list(on_slot)
        granted.sort(key=lambda each: order.index(each.match.slot))
        return reason

    async def _ask_together(
        self, slots: list[tuple[MatchedSlot, int]], ad: Ad, lease: float, granted: list[_Granted]
    ) -> str:
        reasons: list[str] = []
        try:
            async with asyncio.TaskGroup() as asking:
                for match, count in slots:
                    claims = self._requests.new_ids(match.startd, count)
                    request = self._requests.request(match, ad, claims, lease)
                    asking.create_task(self._ask(match, request, granted))
        except* _IncompleteError as incomplete:
            reasons = [str(each) for each in incomplete.exceptions]
        return "; ".join(reasons)

    async def _ask(self, match: MatchedSlot, request: RequestClaims, granted: list[_Granted]) -> None:
        """
        Get the claims on one slot; raises _IncompleteError as soon as it is certain that one is not granted.
        """
        claims, limits = [key.claim for key in request.claims], self._requester.asked.limits
        limits.count(match.submitter, match.limits, len(claims))
        try:
            decided = await self._requests.ask(match.startd, request)
            while isinstance(decided, ClaimsDecided) and decided.waiting:
                await asyncio.sleep(min(_ROOM_S, request.lease / 4))
                decided = await self._requests.ask(match.startd, request)
        except asyncio.CancelledError:
            # It may have granted them, or grant them still.
            self._requests.give_up(match.startd, claims, ClaimStimulus.NOT_ANSWERED, request.lease)
            raise
        finally:
            limits.count(match.submitter, match.limits, -len(claims))
        self._requests.conclude(match.startd, request, decided)
        if isinstance(decided, Undecided):
            raise _IncompleteError(decided.reason)
        for grant in decided.granted:
            event = granted_on(match, grant, request.lease)
            self._states.feed(grant.claim, ClaimStimulus.GRANTED)
            self._recorder.record([(f"claim/{grant.claim}", event)])
            granted.append(_Granted(match, event))
        self._renew_soon(match.startd)
        if len(decided.granted) < len(claims):
            raise _IncompleteError(decided.reason)
