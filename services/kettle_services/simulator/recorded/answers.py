"""What a simulated pool answers at a moment: the questions of `kettle q`, `why`, `events` and `fairshare`."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.classad import FOREIGN_STEPS, ClassAd, ClassAdError, Context, Node, parse
from kettle.matchmaking import Analyst, Explainer
from kettle_services.negotiator.domain.cycle import negotiate
from kettle_services.negotiator.domain.priority_list import priorities
from kettle_services.negotiator.domain.rejections import Unasked
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.simulator.invented.period_of_workload import SHARD
from kettle_services.simulator.recorded.pool_then import PoolThen
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.negotiator import Priorities, QueryPriorities, Verdict, Why
from kettle_wire.commands.queue import JobAds, QueryJobs, Select
from kettle_wire.commands.schedd import (
    Explain,
    ExplainedJobs,
    ExplainJobs,
    Explanation,
    JobEvents,
    JobsExplained,
    QueryEvents,
    RecordedEvent,
)
from kettle_wire.jobs import JobId

_STEPS: Final = 2_000_000
"""Of the tables of one analysis, as a negotiator's."""


class RecordedAnswers:
    """
    Answers requests as schedd and negotiator do; everybody may see everything, as nothing of it is anybody's.
    """

    def __init__(self, pool: PoolThen) -> None:
        self._pool, self._queue = pool, pool.queue
        self._context = Context(now=lambda: int(pool.now), max_steps=FOREIGN_STEPS, max_table_steps=_STEPS)
        self._by_request: dict[type, Callable[[Any], Any]] = {
            QueryJobs: self._jobs,
            Explain: self._explain,
            ExplainJobs: self._explain_jobs,
            Why: self._why,
            QueryPriorities: self._priorities,
        }

    async def answer(self, request: object) -> object:
        """
        The reply.

        Raises:
            RefusedError: there is no such job, or the constraint cannot be read; or nobody answers that in a simulated pool.
        """
        if isinstance(request, QueryEvents):
            return await self._events(request)
        answering = self._by_request.get(type(request))
        if answering is None:
            raise RefusedError(
                RefusalCode.REFUSED,
                "a simulated pool does not know that: it tells of queue, events and priorities",
            )
        return answering(request)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _selected(self, select: Select) -> Iterator[JobId]:
        """In the order of the queue."""
        queue, condition = self._queue, _condition(select.constraint)
        single, clusters, owners = set(select.jobs), set(select.clusters), set(select.owners)
        everything = not (single or clusters or owners)
        context = evaluation.at(self._pool.now)
        for job in sorted(queue.jobs):
            named = everything or job in single or job.cluster in clusters or queue.owner(job) in owners
            if named and (
                condition is None or evaluation.holds(condition, ClassAd.from_wire(queue.ad(job)), context)
            ):
                yield job

    def _jobs(self, request: QueryJobs) -> JobAds:
        found = list(self._selected(request.select))
        if request.totals:
            counts: Counter[str] = Counter(self._queue.jobs[job].job.status for job in found)
            return JobAds(jobs=[], total=len(found), statuses=dict(counts))
        if request.after is not None:
            after = request.after
            found = [job for job in found if job > after]
        if request.limit:
            found = found[: request.limit]
        ads = QueuedJobAds(self._queue, request.projection)
        return JobAds(jobs=[ads.ad(job) for job in found], total=len(found))

    async def _events(self, request: QueryEvents) -> JobEvents:
        """Those up to the moment."""
        events = [
            RecordedEvent(
                stream=stream,
                version=frame.entries[0].version,
                frame=frame.number,
                at=frame.at,
                data=frame.entries[0].data,
            )
            for stream in (f"cluster/{request.job.cluster}", job_stream(request.job))
            for frame, _ in await self._pool.log.stream(SHARD, stream)
            if frame.at <= self._pool.at
        ]
        if not events:
            raise RefusedError(RefusalCode.NOT_FOUND, f"job {request.job} was never submitted up to then")
        return JobEvents(events=events, shard=SHARD)

    # -- reasons -----------------------------------------------------------------------------------------------------

    def _explain(self, request: Explain) -> Explanation:
        if request.job not in self._queue.jobs:
            raise RefusedError(RefusalCode.NOT_FOUND, f"job {request.job} was not in the queue then")
        return self._explanation(request.job)

    def _explanation(self, job: JobId) -> Explanation:
        queue, ad = self._queue, self._queue.ad(job)
        state = queue.jobs[job].job
        where = f"running on {ad.get('RemoteHost', 'a claimed slot')}"
        return Explanation(
            job=job,
            status=state.status,
            reason=where if state.status == "running" else str(ad.get("HoldReason", "")),
            submitter=queue.submitter(job),
            autocluster=queue.autocluster(job) if state.runnable else None,
            ad=ad,
            ordered=state.attempt.orders.standing,
        )

    def _explain_jobs(self, request: ExplainJobs) -> JobsExplained:
        """Those together that wait for one reason, or are in one status."""
        groups: dict[object, list[JobId]] = {}
        for job in self._selected(request.select):
            state = self._queue.jobs[job].job
            waits = (self._queue.submitter(job), self._queue.autocluster(job)) if state.runnable else ()
            groups.setdefault((state.status, waits), []).append(job)
        found = sorted(groups.values(), key=lambda jobs: (-len(jobs), jobs[0]))
        return JobsExplained(
            groups=[
                ExplainedJobs(jobs=len(jobs), last=jobs[-1], explanation=self._explanation(jobs[0]))
                for jobs in found
            ]
        )

    def _why(self, request: Why) -> Verdict:
        """What the last cycle on record said, and the job against all machines of the moment."""
        pool = self._pool.simulation.pool
        key = (request.submitter, request.schedd, request.autocluster)
        job, analysis = pool.job(*key), None
        if job is not None:
            explainer = Explainer(pool.slots, pool.machines(), self._context, policies=True)
            analysis = Analyst(explainer).analyse(ClassAd.from_wire({**job, **request.changes}))
        said = self._pool.verdicts.said(key)
        return Verdict(**msgspec.structs.asdict(said), analysis=analysis)

    # -- priorities --------------------------------------------------------------------------------------------------

    def _priorities(self, request: QueryPriorities) -> Priorities:
        simulation, now = self._pool.simulation, self._pool.now
        rules, accountant = simulation.rules, simulation.accountant
        standings = accountant.standings(now, request.names)
        # How groups stand follows from a cycle; this one is for that alone, and gives nothing to anybody.
        outcome = negotiate(
            simulation.pool,
            Unasked(),
            now=now,
            trust=0.0,
            context=self._context,
            standings=accountant.standings(now),
            groups=rules.groups,
            limits=rules.limits,
            ranks=rules.ranks,
            preemption=rules.preemption,
        )
        return priorities(
            accountant, standings, now=now, names=request.names, shares=outcome.groups, limits=rules.limits
        )


def _condition(text: str) -> Node | None:
    if text.strip().lower() in {"", "true"}:
        return None
    try:
        return parse(text)
    except ClassAdError as error:
        raise RefusedError(
            RefusalCode.MALFORMED, f"the constraint '{text}' cannot be read: {error}"
        ) from error
