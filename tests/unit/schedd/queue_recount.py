"""What the indexes of a queue count along, counted again from all jobs and claims, one after the other."""

from collections import Counter
from typing import Any, Final

from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.routing import route_of, spooled_by
from kettle_wire.flocking import pool_of
from kettle_wire.jobs import JobId

_HOME: Final = {7, 12}
_BATCH: Final = 9


def counted(queue: Queue) -> dict[str, Any]:
    """What the indexes say; counts of zero are of no meaning."""
    routing, submitters = queue.routing, sorted(queue.tally.by_submitter)
    return {
        "statuses": {
            (submitter, status): count
            for submitter in submitters
            for status, count in queue.tally.by_submitter[submitter].items()
            if count
        },
        "of owners": {
            (owner, status): count
            for owner in set(queue.tally.owners.values())
            for status, count in queue.tally.of_owner(owner).items()
            if count
        },
        "of clusters": {number: cluster.waiting for number, cluster in queue.clusters.items()},
        "attendance": {key: count for key, count in queue.attendance.jobs.items() if count},
        "kept": queue.staying.kept,
        "on claims": {name: claim.job for name, claim in queue.claims.items()},
        "abroad": queue.claim_use.abroad,
        "limits": {
            name: (queue.claim_use.limits.claims(name), queue.claim_use.limits.of(name))
            for name in submitters
        },
        "routes": {
            name: (tally.jobs, tally.idle, tally.running, tally.held)
            for name, tally in routing.routes.items()
            if tally.jobs
        },
        "vos": {
            name: (tally.jobs, tally.idle, tally.running, tally.held, tally.spooled, dict(tally.spooled_by))
            for name, tally in routing.vos.items()
            if tally.jobs or tally.spooled
        },
        "awaiting": routing.awaiting,
        "demand": {
            (where, submitter, autocluster): jobs.first(len(jobs))
            for where in ("on_machines", "at_home", "in_batch")
            for submitter, requests in getattr(queue.demand, where).items()
            for autocluster, jobs in requests.items()
        },
        "cooling": queue.waiting.cooling,
        "deferred": queue.waiting.deferred,
    }


def recounted(queue: Queue, cooled: set[JobId], due: set[JobId]) -> dict[str, Any]:
    """
    What a recount of the jobs, the claims and the clusters comes to; `cooled` and `due`: those of which a clock has said so since something
    happened to them.
    """
    found: dict[str, Any] = {
        name: Counter[Any]() for name in ("statuses", "of owners", "of clusters", "attendance")
    }
    found |= {"kept": set(), "awaiting": {}, "demand": {}, "cooling": set(), "deferred": {}}
    found["on claims"] = dict.fromkeys(queue.claims)
    routes, vos = dict[str, list[Any]](), dict[str, list[Any]]()
    found["routes"], found["vos"] = routes, vos
    for job in sorted(queue.jobs):
        _add(found, queue, job, cooled, due)
    found["of clusters"] = {number: found["of clusters"][number] for number in queue.clusters}
    found["vos"] = {name: tuple(of_vo) for name, of_vo in vos.items() if of_vo[0] or of_vo[4]}
    found["routes"] = {name: tuple(of_route) for name, of_route in routes.items() if of_route[0]}
    found["demand"] = {key: sorted(places) for key, places in found["demand"].items()}
    found["abroad"] = {
        name: pool for name, claim in queue.claims.items() if (pool := pool_of(claim.granted.startd))
    }
    found["limits"] = {}
    for submitter in queue.tally.by_submitter:
        theirs = [claim.granted for claim in queue.claims.values() if claim.granted.submitter == submitter]
        sums: dict[str, float] = {}
        for granted in theirs:
            for name, number in granted.limits.items():
                sums[name] = sums.get(name, 0.0) + number
        found["limits"][submitter] = len(theirs), sums
    return found


def _add(found: dict[str, Any], queue: Queue, job: JobId, cooled: set[JobId], due: set[JobId]) -> None:
    entry, ad, cluster, submitter = (
        queue.jobs[job],
        queue.ad(job),
        queue.clusters[job.cluster],
        queue.submitter(job),
    )
    state, universe = entry.job, ad.get("JobUniverse", 5)
    found["statuses"][submitter, state.status] += 1
    found["of owners"][ad["Owner"], state.status] += 1
    found["of clusters"][job.cluster] += state.status in {"idle", "held"}
    if state.claim and universe in _HOME | {_BATCH}:
        found["attendance"][submitter, universe] += 1
    if state.kept and state.ended:
        found["kept"].add(job)
    for claim in state.attempt.claims:
        if claim in found["on claims"]:
            found["on claims"][claim] = job
    if "AwaitsRoute" in cluster.submitted.ad:
        _add_routed(found, queue, job)
    if state.runnable:
        _add_runnable(found, queue, job, cooled, due)


def _add_runnable(
    found: dict[str, Any], queue: Queue, job: JobId, cooled: set[JobId], due: set[JobId]
) -> None:
    entry, ad = queue.jobs[job], queue.ad(job)
    priority, universe = ad.get("JobPrio", 0), ad.get("JobUniverse", 5)
    timed = "DeferralTime" in queue.clusters[job.cluster].submitted.ad
    assert isinstance(priority, int)
    if entry.job.cooling and job not in cooled:
        found["cooling"].add(job)
        return
    if ad.get("AwaitsRoute") is True and not route_of(entry):
        found["awaiting"][job] = priority
        return
    if timed:
        found["deferred"][job] = job in due
    if not timed or job in due:
        where = "at_home" if universe in _HOME else "in_batch" if universe == _BATCH else "on_machines"
        key = where, queue.submitter(job), queue.autocluster(job)
        found["demand"].setdefault(key, []).append((-priority, job.cluster, job.proc))


def _add_routed(found: dict[str, Any], queue: Queue, job: JobId) -> None:
    entry, vo = queue.jobs[job], queue.clusters[job.cluster].vo
    of_vo = found["vos"].setdefault(vo, [0, 0, 0, 0, 0, {}])
    if spooled := spooled_by(entry):
        of_vo[4] += spooled
        of_vo[5][job.cluster] = of_vo[5].get(job.cluster, 0) + spooled
    if entry.job.ended:
        return
    place = {"idle": 1, "running": 2, "held": 3}.get(entry.job.status, 0)
    counts = [of_vo]
    of_vo[0] += 1
    if route := route_of(entry):
        of_route = found["routes"].setdefault(route, [0, 0, 0, 0])
        of_route[0] += 1
        counts.append(of_route)
        for each in counts:
            each[place] += place > 0
