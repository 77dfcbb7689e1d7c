"""
Periodic and exit policies: the jobs' own and the site's, evaluated here for all jobs, no matter where they run.

Only the schedd writes, so only the schedd decides: the shadow of an attempt may die at any moment without any effect.
"""

import asyncio
import time
from collections.abc import Iterator

import msgspec

from kettle.jobs import exited, in_use
from kettle_services.schedd.domain.jobs import policy
from kettle_services.schedd.domain.jobs.commands import Command, End, Hold, Release, Remove
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.policy import PolicyVerdict
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.domain.queue.leave_in_queue import release
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad, Scalar
from kettle_wire.codes import JobStatus
from kettle_wire.events import Event
from kettle_wire.jobs import JobId


class Policies:
    """Looks at the jobs of one queue, and has it recorded what their policies want."""

    def __init__(self, recorder: QueueRecorder, shadows: ShadowDispatch, settings: ScheddSettings) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._shadows = shadows
        self._settings = settings
        self._system = settings.system_policy

    # -- now and then -------------------------------------------------------------------------------------------------

    async def evaluate_forever(self) -> None:
        """Evaluate all jobs repeatedly; never returns."""
        spent = 0.0
        while True:
            # It waits first, because shadows report what happened to jobs that continued without a schedd.
            await asyncio.sleep(self.pause(spent))
            spent = await self.evaluate_all()

    def pause(self, spent: float) -> float:
        """
        Seconds to the next look after one that took `spent` seconds: evaluating takes a small share of the time.
        """
        settings = self._settings
        wanted = min(spent / settings.periodic_expr_timeslice, settings.max_periodic_expr_interval)
        return max(wanted, settings.periodic_expr_interval)

    async def evaluate_all(self) -> float:
        """Look once at each job that has a policy; seconds that were spent on it."""
        spent, turn = 0.0, TimeSlice()
        fired: list[tuple[JobId, PolicyVerdict]] = []
        for job, verdict in self._verdicts():
            if verdict is not None:
                fired.append((job, verdict))
            if turn.over:
                spent += turn.used
                await self._carry_out(fired)
                fired, turn = [], TimeSlice()
        spent += turn.used
        await self._carry_out(fired)
        return spent + await self._release_kept()

    async def _release_kept(self) -> float:
        """
        Have those that have ended leave the queue which do not want to stay there any more; seconds spent on it.
        """
        spent, turn = 0.0, TimeSlice()
        leaving: list[tuple[str, Event]] = []
        for job in sorted(self._queue.staying.kept):
            if job in self._queue.staying.kept:
                leaving += ((job_stream(job), event) for event in release(self._queue, job, time.time()))
            if turn.over:
                spent += turn.used
                await self._recorder.record(leaving)
                leaving, turn = [], TimeSlice()
        spent += turn.used
        if leaving:
            await self._recorder.record(leaving)
        return spent

    def _verdicts(self) -> Iterator[tuple[JobId, PolicyVerdict | None]]:
        """The decision for each job; jobs without one are yielded too, so that the time can be measured."""
        by_system = self._system.concerned
        for number in list(self._queue.clusters):
            cluster = self._queue.clusters.get(number)
            if cluster is None or not (concerned := by_system | cluster.periodic):
                yield JobId(number, 0), None
                continue
            view = QueuedJobAds(self._queue)
            for job in cluster.jobs():
                entry = self._queue.jobs.get(job)
                status = None if entry is None else _status(entry.job)
                if entry is None or status is None or status not in concerned:
                    yield job, None
                else:
                    ad = _as_seen(view.ad(job), entry.job)
                    yield job, policy.decide(ad, status, int(time.time()), self._system)

    async def _carry_out(self, fired: list[tuple[JobId, PolicyVerdict]]) -> None:
        """
        Record first, while the queue is as it was looked at; have attempts ended when that is committed.
        """
        if not fired:
            await asyncio.sleep(0)
            return
        attempts = {job: self._queue.jobs[job].job.attempt.number for job, _ in fired}
        await self._recorder.record(
            [
                (job_stream(job), event)
                for job, verdict in fired
                if verdict.action != "vacate"
                for event in decide(self._queue.jobs[job].job, _command(verdict))
            ]
        )
        for job, verdict in fired:
            entry = self._queue.jobs.get(job)
            if entry is None or not entry.job.claim or entry.job.attempt.number != attempts[job]:
                continue  # nothing is to be ended (any more)
            if verdict.action != "vacate":
                self._shadows.deliver_orders(job)
            elif entry.job.status == "running":
                self._shadows.order_vacate(job, verdict.ending)

    # -- at the end of an attempt -------------------------------------------------------------------------------------

    def at_exit(self, job: JobId, end: End) -> End:
        """
        What the end of its program is for a job in the queue: that of the job, or by its policy only of the attempt.
        """
        state, cluster, ran = self._queue.jobs[job].job, self._queue.clusters[job.cluster], end.result.exit
        concerned = cluster.at_exit or self._system.hold
        if (
            not concerned
            or ran is None
            or state.status == "removed"
            or (end.attempt, end.claim) != (state.attempt.number, state.claim)
        ):
            return end
        # A hold or a release that came while it ran does not cancel its exit; and the time of its exit is the reported
        # one, not the time of the report's arrival.
        ad = (
            _as_seen(self._queue.ad(job), state)
            | in_use(end.result.usage)
            | {"JobStatus": int(JobStatus.RUNNING)}
        )
        exited(ad, ran)
        at = _between(ad.get("ShadowBday"), ran.at, time.time())
        verdict = policy.decide(ad, JobStatus.RUNNING, int(at), self._system, exited=True)
        if verdict is None or verdict.action not in {"hold", "requeue"}:
            return end
        return msgspec.structs.replace(end, result=msgspec.structs.replace(end.result, ending=verdict.ending))


def _status(job: Job) -> JobStatus | None:
    """
    How the policies see a job; None: not now, because it leaves the queue or an attempt of it is being ended.
    """
    if job.status == "running":
        return JobStatus.RUNNING
    if job.claim:
        return None
    return {"idle": JobStatus.IDLE, "held": JobStatus.HELD, "completed": JobStatus.COMPLETED}.get(job.status)


def _as_seen(ad: Ad, job: Job) -> Ad:
    """The ad without what is only known of an attempt before the present one."""
    if not job.attempt.began:
        ad.pop("JobCurrentStartExecutingDate", None)
    return ad


def _between(start: Scalar | None, told: float, now: float) -> float:
    """A worker's time, as far as it can be true; now if there is none."""
    begun = start if isinstance(start, int | float) else 0.0
    return min(max(told, begun), now) if told else now


def _command(verdict: PolicyVerdict) -> Command:
    why = verdict.ending
    match verdict.action:
        case "hold":
            return Hold(reason=why.reason, by="", code=why.code, subcode=why.subcode)
        case "release":
            return Release(reason=why.reason, by="")
        case "remove":
            return Remove(reason=why.reason, by="")
        case "vacate" | "requeue":
            raise AssertionError(f"to {verdict.action} is not a command to a job")
