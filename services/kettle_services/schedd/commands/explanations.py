"""
Why jobs are where they are, as far as their queue knows: of one job, or of many, those together that have one reason.
"""

import time
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.jobs.private_attributes import for_others
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.claims.refusals import Refusals
from kettle_services.schedd.domain.authorization import sees_all
from kettle_services.schedd.domain.jobs import deferral
from kettle_services.schedd.domain.jobs.policy_outlook import outlook
from kettle_services.schedd.domain.jobs.universes import at_home
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.jobs.local_universe import LocalUniverse
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import LOOK, selected_jobs
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import JobStatus, RefusalCode, Universe
from kettle_wire.commands.schedd import (
    Explain,
    ExplainedJobs,
    ExplainJobs,
    Explanation,
    JobsExplained,
    UnmadeReason,
)
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_GROUPS: Final = 40
_STATUS: Final = {"idle": JobStatus.IDLE, "running": JobStatus.RUNNING, "held": JobStatus.HELD}


class _Group(msgspec.Struct):
    """Jobs with one reason."""

    first: JobId
    last: JobId
    jobs: int = 0


class Explanations:
    """Answers explain and explain_jobs."""

    def __init__(
        self,
        recorder: QueueRecorder,
        home_jobs: LocalUniverse,
        factories: Factories,
        limits: QueueLimits,
        refusals: Refusals,
        settings: ScheddSettings,
        seal: AttributeSeal,
        elsewhere: Callable[[JobId], str] = lambda _job: "",
        in_batch: Callable[[JobId], str] = lambda _job: "",
    ) -> None:
        """
        `in_batch`: what a batch system says of an idle job, and `elsewhere`: what other pools are to an idle
        job, as a sentence.
        """
        self._seal = seal
        self._elsewhere = elsewhere
        self._in_batch = in_batch
        self._queue = recorder.queue
        self._home_jobs = home_jobs
        self._factories = factories
        self._limits = limits
        self._refusals = refusals
        self._super_users: Collection[str] = settings.queue_super_users
        self._system = settings.system_policy

    async def explain(self, request: Explain, caller: Identity) -> Explanation:
        """Why a job is where it is, as far as the queue knows."""
        if request.job not in self._queue.jobs:
            if self._factories.expects(request.job):
                raise RefusedError(RefusalCode.REFUSED, self._factories.why_not(request.job.cluster))
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {request.job} is not in the queue of {self._queue.schedd}"
            )
        return self._explained(request.job, caller)

    async def explain_jobs(self, request: ExplainJobs, caller: Identity) -> JobsExplained:
        """
        The jobs of a selection by their reasons; what each of many has to say of itself, the first says for all.
        """
        groups: dict[object, _Group] = {}
        turn = TimeSlice()
        for at, job in enumerate(await selected_jobs(self._queue, request.select)):
            if not at % LOOK:
                await turn.yield_if_over()
            if job in self._queue.jobs:
                group = groups.setdefault(self._reason_key(job), _Group(job, job))
                group.last, group.jobs = job, group.jobs + 1
        shown = sorted(groups.values(), key=lambda group: (-group.jobs, group.first))
        found = [
            ExplainedJobs(jobs=group.jobs, last=group.last, explanation=self._explained(group.first, caller))
            for group in shown[:_GROUPS]
            if group.first in self._queue.jobs
        ]
        unmade = [
            UnmadeReason(
                cluster=one.cluster, unmade=one.total - one.made, reason=self._factories.why_not(one.cluster)
            )
            for one in self._factories.unmade(request.select)
        ]
        return JobsExplained(groups=found, unmade=unmade, more=sum(group.jobs for group in shown[_GROUPS:]))

    def _reason_key(self, job: JobId) -> object:
        """What jobs have in common that are where they are for one reason."""
        queue, entry = self._queue, self._queue.jobs[job]
        state, changed = entry.job, entry.changed
        if job in queue.routing.awaiting:
            return "unrouted", changed.get("UnroutedReason")
        if queue.demand.waits(job):
            return "waits", job in queue.waiting.deferred
        if state.runnable:
            return "idle", queue.submitter(job), queue.autocluster(job)
        if state.status == "held":
            return "held", changed.get("HoldReasonCode"), changed.get("HoldReasonSubCode")
        started = "JobCurrentStartExecutingDate" in changed
        return (
            state.status,
            state.attempt.orders.standing,
            state.attempt.suspended,
            started,
            "KeptInQueue" in changed,
        )

    def _explained(self, job: JobId, caller: Identity) -> Explanation:
        entry, ad = self._queue.jobs[job], self._queue.ad(job)
        status, waits = entry.job.status, self._queue.demand.waits(job)
        own = sees_all(caller, self._super_users) or self._queue.owner(job) == caller.name
        policies = outlook(ad, _STATUS[status], time.time(), self._system) if status in _STATUS else []
        return Explanation(
            job=job,
            status=status,
            reason=self._reason(job, ad),
            submitter=self._queue.submitter(job),
            autocluster=self._queue.autocluster(job) if entry.job.runnable and not waits else None,
            ad=self._seal.opened(ad, self._queue.owner(job)) if own else for_others(ad),
            ordered=entry.job.attempt.orders.standing,
            policies=policies if own else [],
        )

    def _reason(self, job: JobId, ad: Ad) -> str:
        state = self._queue.jobs[job].job
        if job in self._queue.waiting.deferred:
            return deferral.waits(ad, time.time())
        if job in self._queue.waiting.cooling:
            return (
                f"its last {state.failures} attempts failed, so it waits {state.cooling:g} s; the last one because: "
                f"{ad.get('VacateReason', 'unknown')}"
            )
        if job in self._queue.routing.awaiting:
            return str(
                ad.get(
                    "UnroutedReason",
                    "it waits for its route: the compute entrypoint has not said anything of it",
                )
            )
        if state.runnable and self._queue.universe(job) == Universe.GRID:
            return self._in_batch(job)
        if state.runnable and at_home(self._queue.universe(job)):
            return self._home_jobs.explain(job)
        if state.runnable:
            key = self._queue.submitter(job), self._queue.autocluster(job)
            said = (
                self._limits.limit_in_force(key[0]) or self._refusals.last_refusal(key),
                self._elsewhere(job),
            )
            return "; ".join(filter(None, said))
        return _reason(state.status, ad)


def _reason(status: str, ad: Ad) -> str:
    match status:
        case "held":
            return str(ad.get("HoldReason", ""))
        case "removed":
            return str(ad.get("RemoveReason", ""))
        case "running":
            how = "suspended" if ad.get("JobStatus") == JobStatus.SUSPENDED else "running"
            return f"{how} on {ad.get('RemoteHost', 'a claimed slot')}"
        case _:
            return ""
