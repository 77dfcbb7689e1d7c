"""
Claims: asked of startds on the negotiator's advice, renewed, reused job after job, given back.

*Slow path: negotiation. Fast path: claim reuse.*
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kettle.bus.ports import Asks, BusError, NoResponderError
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.assignment import AssignmentEvents
from kettle_services.schedd.claims.idle import IdleClaims
from kettle_services.schedd.claims.refusals import Refusals
from kettle_services.schedd.claims.releases import ClaimReleases
from kettle_services.schedd.claims.request_outcomes import PendingSwap, Undecided, refused
from kettle_services.schedd.claims.requests import ClaimRequests
from kettle_services.schedd.domain.claims.claim import ClaimLeases, LeaseTerms
from kettle_services.schedd.domain.claims.renewal_schedule import RenewalSchedule
from kettle_services.schedd.domain.claims.reuse import ClaimReuse
from kettle_services.schedd.domain.jobs.commands import End
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.negotiation.concurrency_limits import LimitsInUse
from kettle_services.schedd.domain.negotiation.flocking import may_flock
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.domain.queue.nodes import is_parallel
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.disconnects import Disconnects
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import (
    ALIVE,
    Alive,
    AliveReply,
    ClaimsDecided,
    GrantedClaim,
    RequestClaims,
)
from kettle_wire.events import ClaimEnded, ClaimGranted
from kettle_wire.flocking import pool_of
from kettle_wire.jobs import JobId

_log: Final = logging.getLogger(__name__)
_ROOM_S: Final = 1.0
"""Between two looks whether a slot is free whose job has to make room for a better one."""
_LONGEST_ANSWER: Final = 30.0
"""Seconds for a startd to answer a renewal."""


class ClaimLifecycle:
    """All claims of this schedd, and the conversations with startds about them."""

    def __init__(
        self,
        bus: Asks,
        recorder: QueueRecorder,
        shadows: ShadowDispatch,
        secrets: ClaimSecrets,
        tasks: asyncio.TaskGroup,
        settings: ScheddSettings,
        named: Callable[[str], str] = lambda _pool: "",
    ) -> None:
        self._bus = bus
        self._recorder = recorder
        self._queue = recorder.queue
        self._shadows = shadows
        self._secrets = secrets
        self._tasks = tasks
        self._settings = settings
        self._leases = ClaimLeases(margin=settings.lease_margin)
        self.terms = LeaseTerms(settings.lease, settings.shortest_job_lease, settings.longest_job_lease)
        self._granted = asyncio.Event()
        """Claims were granted that have to be renewed at once."""
        self._paces = RenewalSchedule(interval=settings.alive_interval, lease=settings.lease)
        self._silence = Disconnects(recorder)
        self.limits: Final = QueueLimits(recorder.queue, settings)
        self.asked: Counter[tuple[str, int]] = Counter()
        """(submitter, autocluster) -> claims that are being asked for and have jobs spoken for."""
        self.asked_limits = LimitsInUse()
        """Concurrency limits that these will use."""
        self.refusals = Refusals()
        self.cycles: dict[str, int] = {}
        """Submitter -> the last cycle whose matches came."""
        self._succession = ClaimReuse(recorder.queue, suits=self._suits, clock=time.time)
        self.returns: Final = ClaimReleases(bus, secrets, tasks, lease=settings.lease)
        self.requests: Final = ClaimRequests(
            bus, recorder, secrets, self.returns, self._leases, settings, named
        )
        self.idle: Final = IdleClaims()
        recorder.on_change(self.idle.on_event)
        self.assigning: Final = AssignmentEvents(recorder.queue, settings, self.idle)
        self._wakers: list[Callable[[], None]] = []
        now = time.monotonic()
        for claim in self._queue.claims.values():
            self._leases.trust(claim.granted.startd, now)

    # -- getting ------------------------------------------------------------------------------------------------------

    def on_refused(self, waker: Callable[[], None]) -> None:
        """Call `waker` when jobs for which claims were asked may have others again."""
        self._wakers.append(waker)

    def request_matched(self, match: MatchedSlot, refused: Callable[[str], None] | None = None) -> None:
        """
        Ask for as many claims on the slot as there are jobs that nobody asks a claim for yet.

        `refused` is called with the reason if not all of them are granted.
        """
        key = (match.submitter, match.autocluster)
        job = self._queue.demand.next_job(*key)
        room = self.limits.room_for(job, self.asked)
        count = min(match.count, self._queue.demand.count(*key) - self.asked[key], room)
        crowded = match.limits and self.limits.crowded(match.submitter, self.asked_limits)
        if count <= 0 or job is None or crowded:
            self.wake()
        else:
            self.asked[key] += count
            self.asked_limits.count(match.submitter, match.limits, count)
            claims = self.requests.new_ids(match.startd, count)
            ad = self._queue.ad(job)
            self.requests.asking.update(claims)
            request = self.requests.request(match, ad, claims, self.terms.of(ad))
            self._tasks.create_task(self._request(match, request, refused), name=f"claims on {match.slot}")

    def count(self, submitter: str) -> int:
        """How many claims a submitter has anywhere, with those that are being asked for."""
        return self._queue.claim_use.limits.claims(submitter) + self.asked_limits.claims(submitter)

    def wake(self) -> None:
        """There may be something to ask for that nobody asks for yet."""
        for waker in self._wakers:
            waker()

    def _suits(self, ad: Ad, granted: ClaimGranted) -> bool:
        """Whether a job would ask for a claim that there is already."""
        return self.terms.suits(ad, granted.lease) and self._may_go(ad, granted.startd)

    def _may_go(self, ad: Ad, startd: str) -> bool:
        pool = pool_of(startd)
        return not pool or may_flock(ad, pool, by_default=self._settings.flock_by_default)

    async def request_swap(self, job: JobId, claims: list[str]) -> None:
        """
        Ask the startd of some claims to preempt them for a job.

        Raises RefusedError: `refused` if it does not, `unknown` if it does not answer. When it has accepted, their
        attempts are being ended there, and the job is assigned when they have ended.
        """
        granted = self._queue.claims[claims[0]].granted
        key = submitter, autocluster = self._queue.submitter(job), self._queue.autocluster(job)
        if self._queue.demand.count(*key) <= self.asked[key]:
            raise refused("all jobs like it are about to run already")
        if autocluster != granted.autocluster and (
            granted.limits or self._queue.clusters[job.cluster].limited
        ):
            raise refused(
                "only jobs alike make room where concurrency limits are used, which the negotiator counts"
            )
        if is_parallel(self._queue, job):
            raise refused(f"job {job} is of the parallel universe, and needs all of its slots at once")
        ad = self._queue.ad(job)
        if not self._may_go(ad, granted.startd):
            raise refused(f"job {job} may not run in that pool")
        [new] = self.requests.new_ids(granted.startd, 1)
        self.asked[key] += 1
        self.asked_limits.count(submitter, granted.limits, 1)
        self.requests.asking.add(new)
        request = RequestClaims(
            schedd=self._queue.schedd,
            slot=granted.slot,
            capability="",
            submitter=submitter,
            job=ad,
            claims=[self._secrets.key(new)],
            lease=self.terms.of(ad),
            instead_of=[self._secrets.key(claim) for claim in claims],
        )
        match = MatchedSlot(
            submitter=submitter,
            autocluster=autocluster,
            count=1,
            slot=granted.slot,
            startd=granted.startd,
            capability="",
            limits=granted.limits,
        )
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks.create_task(
            self._request(match, request, swap=PendingSwap(job, answered)), name=f"swap {job}"
        )
        await answered

    async def _request(
        self,
        match: MatchedSlot,
        request: RequestClaims,
        refused: Callable[[str], None] | None = None,
        *,
        swap: PendingSwap | None = None,
    ) -> None:
        claims = [key.claim for key in request.claims]
        try:
            decided = await self.requests.ask(match.startd, request)
            if swap is not None:
                swap.answer(decided)
            until = time.monotonic() + self._settings.request_claim_timeout
            while isinstance(decided, ClaimsDecided) and decided.waiting:
                decided = await self._ask_again(match, request, decided, until)
        finally:
            key = (match.submitter, match.autocluster)
            self.asked[key] -= len(claims)
            if not self.asked[key]:
                del self.asked[key]
            self.asked_limits.count(match.submitter, match.limits, -len(claims))
            self.requests.asking.difference_update(claims)
        if isinstance(decided, Undecided) or len(decided.granted) < len(claims):
            self.wake()
            self.refusals.add_refusal(key, match.slot, decided.reason)
            if refused is not None:
                refused(decided.reason)
        if isinstance(decided, Undecided):
            return
        self.requests.trust(match.startd, decided)
        await self._record_granted(
            match, decided.granted, lease=request.lease, first=swap.job if swap is not None else None
        )

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
        spare = self.asked[key] - self._queue.demand.count(*key)
        why = "no job is left for the claim" if spare >= len(decided.waiting) else ""
        if not why and time.monotonic() >= until:
            why = f"nobody has made room within {self._settings.request_claim_timeout:g} s"
        if why:
            await self.returns.release(match.startd, decided.waiting, why)
            return msgspec.structs.replace(decided, waiting=[], reason=why)
        return await self.requests.ask(match.startd, request)

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
            event = ClaimGranted(
                claim=grant.claim,
                startd=match.startd,
                slot=grant.slot,
                slot_ad=grant.ad,
                submitter=match.submitter,
                autocluster=match.autocluster,
                lease=lease,
                limits=match.limits,
            )
            self._recorder.record(
                [(f"claim/{grant.claim}", event), *self.assigning.assignment_events(job, event)]
            )
            jobs.append(job)
        if jobs:
            await self._recorder.shard.committed()
            self.renew_soon(match.startd)
            for job in jobs:
                self._shadows.hand_over(job)
        if unused:
            await self.returns.release(match.startd, unused, "no job is left for the claim")

    def renew_soon(self, startd: str) -> None:
        """A startd has granted claims, and waits for their first renewal."""
        self._paces.soon(startd)
        self._granted.set()

    # -- using --------------------------------------------------------------------------------------------------------

    def reuse(self, claim: str) -> JobId | None:
        """Record the next job for a claim that has become free, or its end; the caller awaits the commit."""
        held = self._queue.claims.get(claim)
        if held is None:
            return None
        if held.job is not None:
            return held.job
        if held.once:
            self.record_end(claim, "each job that runs without a match has a claim of its own")
            return None
        if time.time() - held.at / 1e6 > self._settings.claim_worklife:
            self.record_end(claim, "the claim has served its time, and others shall have their turn")
            return None
        match self._succession.next(claim):
            case JobId() as job:
                self._recorder.record(self.assigning.assignment_events(job, held.granted))
                return job
            case reason:
                if not self.idle.keeps(claim):
                    self.record_end(claim, reason)
                return None

    def reuse_or_end_idle(self) -> None:
        """Give claims without a job one, or end them: our predecessor may have stopped between two frames."""
        for claim, held in list(self._queue.claims.items()):
            if held.job is None:
                self.reuse_idle(claim)

    def reuse_idle(self, claim: str) -> None:
        """Give one without a job the next one, if there is one."""
        if (job := self.reuse(claim)) is not None:
            self._tasks.create_task(self._hand_over(job))

    async def _hand_over(self, job: JobId) -> None:
        await self._recorder.shard.committed()
        self._shadows.hand_over(job)

    # -- ending -------------------------------------------------------------------------------------------------------

    def record_end(self, claim: str, reason: str, *, release: bool = True) -> None:
        """Record that a claim is over, and notify its startd after the commit."""
        held = self._queue.claims.get(claim)
        if held is None:
            return
        recorded = self._recorder.record([(f"claim/{claim}", ClaimEnded(claim=claim, reason=reason))])
        self._succession.forget(claim)
        self.idle.forget(claim)
        self._shadows.lost.discard(claim)
        if release:
            self._tasks.create_task(self._release(recorded, held.granted.startd, claim, reason))

    async def _release(self, recorded: asyncio.Future[int], startd: str, claim: str, reason: str) -> None:
        await recorded
        await self.returns.release(startd, [claim], reason)

    def record_loss(self, claim: str, ending: Ending) -> None:
        """Record that a claim and its attempt are over, by the worker's word or since its lease ran out."""
        held = self._queue.claims[claim]
        lost: tuple[str, ...] = (claim,)
        if held.job is not None:
            job = held.job
            state = self._queue.jobs[job].job
            if not self._shadows.all_lost(job, claim):
                # The attempt may live on other claims: it ends when all of its nodes have.
                if state.attempt.gang is not None and not state.attempt.gang.has_ended(claim):
                    self._shadows.order_vacate(job, ending)
                return
            lost = state.attempt.claims
            command = End(
                attempt=state.attempt.number,
                claim=state.claim,
                result=AttemptResult(ending=ending),
                cool_down=self._settings.cooldown_duration,
            )
            self._recorder.record([(job_stream(job), event) for event in decide(state, command)])
            self._shadows.drop_attempt(job)
        for each in lost:
            self.record_end(each, ending.reason, release=False)

    # -- renewing -----------------------------------------------------------------------------------------------------

    async def renew_leases(self) -> None:
        """
        Renew all claims, compare both sides' lists, and end claims that are certainly dead; never returns.

        A startd that did not answer is asked again sooner than the others.
        """
        while True:
            self._granted.clear()
            by_startd: dict[str, list[str]] = {}
            shortest: dict[str, float] = {}
            for claim, held in self._queue.claims.items():
                startd, lease = held.granted.startd, held.granted.lease
                by_startd.setdefault(startd, []).append(claim)
                shortest[startd] = min(lease, shortest.get(startd, lease))
            due = self._paces.due(shortest, time.monotonic())
            async with asyncio.TaskGroup() as renewals:
                for startd, claims in by_startd.items():
                    if startd in due or self._leases.is_silent(startd):
                        renewals.create_task(self._renew(startd, claims))
            self._end_expired()
            self.returns.retry_releases()
            pause = self._paces.pause(time.monotonic())
            if any(map(self._leases.is_silent, by_startd)):
                pause = min(pause, self._settings.reconnect_interval)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._granted.wait(), pause)

    async def _renew(self, startd: str, claims: list[str]) -> None:
        reply = await self._alive(startd, claims)
        if reply is not None and reply[0] is None:
            # The first answer had the clock that a renewal must name.
            reply = await self._alive(startd, claims)
        if reply is None:
            times = self._leases.count_missed(startd)
            self._silence.record_missed(claims, times, f"the startd {startd} does not answer")
            return
        answer = reply[1]
        held = [claim for claim in claims if claim in self._queue.claims]
        for claim in self._leases.suspect(held, answer.unknown):
            silent = self._silence.is_disconnected(claim)
            code = VacateCode.ReconnectFailed if silent else VacateCode.ActivationRefusedClaimNotFound
            reason = f"the startd {startd} does not have the claim any more"
            self.record_loss(claim, Ending(code=code, reason=reason))
        unknown = set(answer.unknown)
        self._silence.record_answer(claim for claim in held if claim not in unknown)
        extra = [claim for claim in answer.extra if self._abandoned(claim)]
        if extra:  # beside the renewals, which must go on while the database is away
            self._tasks.create_task(self._release_unknown(startd, extra))

    async def _release_unknown(self, startd: str, claims: list[str]) -> None:
        """Give back claims that are not on record, unless a successor of ours may have been granted them."""
        await self._recorder.shard.look()
        if abandoned := [claim for claim in claims if self._abandoned(claim)]:
            await self.returns.release(startd, abandoned, "the claim is not on record")

    def _abandoned(self, claim: str) -> bool:
        return claim not in self._queue.claims and claim not in self.requests.asking

    async def _alive(self, startd: str, claims: list[str]) -> tuple[float | None, AliveReply] | None:
        usual = self._settings.lease
        leases = {
            held.granted.lease for claim in claims if (held := self._queue.claims.get(claim)) is not None
        }
        at = self._leases.renew(startd, time.monotonic(), min((usual, *leases)))
        deadline = None if at is None else at + usual
        alive = Alive(
            schedd=self._queue.schedd,
            claims=[self._secrets.key(claim) for claim in claims],
            deadline=deadline,
            at=at if leases - {usual} else None,
        )
        try:
            patience = min(_LONGEST_ANSWER, self._settings.alive_interval / 2, min((usual, *leases)) / 12)
            reply = await self._bus.call(ALIVE, startd, alive, deadline=max(1.0, patience))
        except BusError as error:
            if deadline is not None and isinstance(error, NoResponderError):
                self._leases.not_delivered(startd)
            _log.warning("claims not renewed", extra={"startd": startd, "cause": str(error)})
            return None
        self._leases.record_answer(startd, reply.clock, time.monotonic())
        self._queue.live.renewed[startd] = int(time.time())
        return deadline, reply

    def _end_expired(self) -> None:
        """End what certainly is dead."""
        now, silent = time.monotonic(), set[str]()
        for claim, held in list(self._queue.claims.items()):
            startd, lease = held.granted.startd, held.granted.lease
            if self._leases.is_over(startd, lease, now):
                reason = f"the lease of the claim on {startd} ran out: no contact for {lease:g} s"
                self.record_loss(claim, Ending(code=VacateCode.ReconnectFailed, reason=reason))
                silent.add(startd)
        for startd in silent - {held.granted.startd for held in self._queue.claims.values()}:
            self._leases.forget(startd)
            self._queue.live.renewed.pop(startd, None)
