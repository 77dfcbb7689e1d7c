"""
Asks startds for claims, on the negotiator's advice or without a match, and gives what is granted to the jobs whose turn it is.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kettle_services.schedd.claims.assignment import AssignmentEvents
from kettle_services.schedd.claims.refusals import Refusals
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.claims.request_outcomes import PendingSwap, Undecided, refused
from kettle_services.schedd.claims.requests import ClaimRequests
from kettle_services.schedd.domain.claims.asked import AskedClaims
from kettle_services.schedd.domain.claims.claim import LeaseTerms
from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.states import ClaimStimulus
from kettle_services.schedd.domain.queue.nodes import is_parallel
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import ClaimsDecided, GrantedClaim, RequestClaims
from kettle_wire.events import ClaimGranted
from kettle_wire.jobs import JobId

_ROOM_S: Final = 1.0
"""Between two looks whether a slot is free whose job has to make room for a better one."""


class ClaimRequester:
    """
    Asks for as many claims as there are jobs for them, each of which is spoken for from then on.

    `renew_soon`: called with a startd that waits for the first renewal of what it has granted; `may_go`: whether a job with an ad
    may run on the machine of a startd.
    """

    def __init__(
        self,
        recorder: QueueRecorder,
        states: ClaimStates,
        requests: ClaimRequests,
        releases: ClaimReleases,
        assigning: AssignmentEvents,
        shadows: ShadowDispatch,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
        terms: LeaseTerms,
        *,
        renew_soon: Callable[[str], None],
        may_go: Callable[[Ad, str], bool],
    ) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._states = states
        self._requests = requests
        self._releases = releases
        self._assigning = assigning
        self._shadows = shadows
        self._tasks = tasks
        self._patience = settings.request_claim_timeout
        self._renew_soon = renew_soon
        self._may_go = may_go
        self._terms = terms
        self.limits: Final = QueueLimits(recorder.queue, settings)
        self.asked: Final = AskedClaims()
        self.refusals: Final = Refusals()
        self.cycles: dict[str, int] = {}
        """Submitter -> the last cycle whose matches came."""
        self._wakers: list[Callable[[], None]] = []

    def on_refused(self, waker: Callable[[], None]) -> None:
        """Call `waker` when jobs for which claims were asked may have others again."""
        self._wakers.append(waker)

    def wake(self) -> None:
        """There may be something to ask for that nobody asks for yet."""
        for waker in self._wakers:
            waker()

    def count(self, submitter: str) -> int:
        """How many claims a submitter has anywhere, with those that are being asked for."""
        return self._queue.claim_use.limits.claims(submitter) + self.asked.limits.claims(submitter)

    def request_matched(self, match: MatchedSlot, refused: Callable[[str], None] | None = None) -> None:
        """
        Ask for as many claims on the slot as there are jobs that nobody asks a claim for yet.

        `refused` is called with the reason if not all of them are granted.
        """
        key = (match.submitter, match.autocluster)
        job = self._queue.demand.next_job(*key)
        room = self.limits.room_for(job, self.asked.jobs)
        count = min(match.count, self._queue.demand.count(*key) - self.asked.jobs[key], room)
        crowded = match.limits and self.limits.crowded(match.submitter, self.asked.limits)
        if count <= 0 or job is None or crowded:
            self.wake()
            return
        self.asked.enter(match, count)
        ad, claims = self._queue.ad(job), self._requests.new_ids(match.startd, count)
        request = self._requests.request(match, ad, claims, self._terms.of(ad))
        self._tasks.create_task(self._request(match, request, refused), name=f"claims on {match.slot}")

    async def request_swap(self, job: JobId, claims: list[str]) -> None:
        """
        Ask the startd of some claims to preempt them for a job.

        Raises RefusedError: `refused` if it does not, `unknown` if it does not answer. When it has accepted, their
        attempts are being ended there, and the job is assigned when they have ended.
        """
        granted = self._queue.claims[claims[0]].granted
        match = MatchedSlot(
            submitter=self._queue.submitter(job),
            autocluster=self._queue.autocluster(job),
            count=1,
            slot=granted.slot,
            startd=granted.startd,
            capability="",
            limits=granted.limits,
        )
        ad = self._queue.ad(job)
        if why := self._no_swap(job, ad, match, granted):
            raise refused(why)
        self.asked.enter(match, 1)
        new = self._requests.new_ids(granted.startd, 1)
        request = self._requests.request(match, ad, new, self._terms.of(ad), instead_of=claims)
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks.create_task(
            self._request(match, request, swap=PendingSwap(job, answered)), name=f"swap {job}"
        )
        await answered

    def _no_swap(self, job: JobId, ad: Ad, match: MatchedSlot, granted: ClaimGranted) -> str:
        """Why a job cannot have the place of others; empty: it can be asked for."""
        key = (match.submitter, match.autocluster)
        if self._queue.demand.count(*key) <= self.asked.jobs[key]:
            return "all jobs like it are about to run already"
        limited = granted.limits or self._queue.clusters[job.cluster].limited
        if match.autocluster != granted.autocluster and limited:
            return "only jobs alike make room where concurrency limits are used, which the negotiator counts"
        if is_parallel(self._queue, job):
            return f"job {job} is of the parallel universe, and needs all of its slots at once"
        return "" if self._may_go(ad, granted.startd) else f"job {job} may not run in that pool"

    async def _request(
        self,
        match: MatchedSlot,
        request: RequestClaims,
        refused: Callable[[str], None] | None = None,
        *,
        swap: PendingSwap | None = None,
    ) -> None:
        wanted = len(request.claims)
        try:
            decided = await self._requests.ask(match.startd, request)
            if swap is not None:
                swap.answer(decided)
            until = time.monotonic() + self._patience
            while isinstance(decided, ClaimsDecided) and decided.waiting:
                decided = await self._ask_again(match, request, decided, until)
        finally:
            self.asked.leave(match, wanted)
        self._requests.conclude(match.startd, request, decided)
        if isinstance(decided, Undecided) or len(decided.granted) < wanted:
            self.wake()
            self.refusals.add_refusal((match.submitter, match.autocluster), match.slot, decided.reason)
            if refused is not None:
                refused(decided.reason)
        if isinstance(decided, ClaimsDecided):
            first = swap.job if swap is not None else None
            await self._record_granted(match, decided.granted, lease=request.lease, first=first)

    async def _ask_again(
        self, match: MatchedSlot, request: RequestClaims, decided: ClaimsDecided, until: float
    ) -> ClaimsDecided | Undecided:
        """
        Ask again after a while: the claims wait for a job that is being preempted. If their jobs have left meanwhile,
        they are given back.

        They are also given back when they have waited long enough, because meanwhile their jobs are not offered for
        other slots.
        """
        await asyncio.sleep(min(_ROOM_S, request.lease / 4))
        key = (match.submitter, match.autocluster)
        spare = self.asked.jobs[key] - self._queue.demand.count(*key)
        why = "no job is left for the claim" if spare >= len(decided.waiting) else ""
        if not why and time.monotonic() >= until:
            why = f"nobody has made room within {self._patience:g} s"
        if not why:
            return await self._requests.ask(match.startd, request)
        await self._release(match.startd, decided.waiting, why)
        return msgspec.structs.replace(decided, waiting=[], reason=why)

    async def _record_granted(
        self, match: MatchedSlot, granted: Iterable[GrantedClaim], *, lease: float, first: JobId | None
    ) -> None:
        """Record claims with their jobs: `first` if it may still run, then those whose turn it is."""
        unused: list[str] = []
        jobs: list[JobId] = []
        for grant in granted:
            job = self._queue.demand.next_job(match.submitter, match.autocluster)
            if (
                first is not None
                and (entry := self._queue.jobs.get(first)) is not None
                and entry.job.runnable
            ):
                job = first
            if job is None:
                unused.append(grant.claim)
                continue
            event = granted_on(match, grant, lease)
            assigned = self._assigning.assignment_events(job, event)
            self._states.feed(grant.claim, ClaimStimulus.ASSIGNED)
            self._recorder.record([(f"claim/{grant.claim}", event), *assigned])
            jobs.append(job)
        if jobs:
            await self._recorder.shard.committed()
            self._renew_soon(match.startd)
            for job in jobs:
                self._shadows.hand_over(job)
        if unused:
            await self._release(match.startd, unused, "no job is left for the claim")

    async def _release(self, startd: str, claims: list[str], why: str) -> None:
        """Give back claims that are not on record."""
        for claim in claims:
            self._states.feed(claim, ClaimStimulus.NOT_NEEDED)
        await self._releases.release(startd, claims, why)


def granted_on(match: MatchedSlot, grant: GrantedClaim, lease: float) -> ClaimGranted:
    """What is recorded of a claim that was granted for a match."""
    return ClaimGranted(
        claim=grant.claim,
        startd=match.startd,
        slot=grant.slot,
        slot_ad=grant.ad,
        submitter=match.submitter,
        autocluster=match.autocluster,
        lease=lease,
        limits=match.limits,
    )
