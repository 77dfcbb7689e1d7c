"""What a queue counts along equals what is counted again, whatever happens."""

import itertools
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest

from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.jobs.commands import Assign, End, Hold, Remove
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.jobs.leave_in_queue import LeaveInQueue
from kettle_services.schedd.domain.queue.alike import JobsAlike, QueueIndex, alike, universe_of
from kettle_services.schedd.domain.queue.attendance import Attendance
from kettle_services.schedd.domain.queue.claim_use import ClaimUse
from kettle_services.schedd.domain.queue.demand import JobDemand
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.routing import Routing, awaiting_proc, route_of
from kettle_services.schedd.domain.queue.tally import StatusTally
from kettle_services.schedd.domain.queue.waiting import DelayedJobs
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.domain.submission.cluster import cluster_of
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.events import ClaimGranted, ClusterSubmitted, JobCompleted, JobEvent, JobKept, NodeSlot
from kettle_wire.jobs import JobId

from .queue_recount import counted, recounted
from .queue_walk import lived

SEEDS: Final = range(10) if "KETTLE_TEST_LONG" in os.environ else range(1)
STEPS: Final = 100_000 if "KETTLE_TEST_LONG" in os.environ else 2_500
"""Of each seed: together a million, and none so many that it takes minutes."""
EACH: Final = 10 if "KETTLE_TEST_LONG" in os.environ else 4
"""So many steps are between two recounts."""


# -- each index alone --------------------------------------------------------------------------------------------------


def after(*commands: Any) -> Job:
    """The state of a job of which this was said, or recorded."""
    job = Job()
    for command in commands:
        events: list[JobEvent] = [command] if isinstance(command, JobEvent) else decide(job, command)
        for event in events:
            job = evolve(job, event)
    return job


ASSIGN: Final = Assign(claim="c1", slot="s", startd="m")
FAILED: Final = End(1, "c1", AttemptResult(ending=Ending(code=1034, reason="r")), cool_down=20.0)
STATES: Final = (
    Job(),
    after(ASSIGN),
    after(Assign(claim="c2", slot="s", startd="m")),
    after(ASSIGN, FAILED),
    after(Hold("r", "ann")),
    after(ASSIGN, Hold("r", "ann")),
    after(ASSIGN, Remove("r", "ann")),
    after(JobKept(), JobCompleted(attempt=0, exit=ExitRecord(code=0))),
)
ADS: Final[tuple[Ad, ...]] = (
    {},
    {"JobUniverse": 12},
    {"JobUniverse": 9},
    {"AwaitsRoute": True},
    {"DeferralTime": 9},
)
COLUMNS: Final = (["JobPrio", "AccountingGroup"], ["RequestMemory", "Args"])


def groups() -> Iterator[JobsAlike]:
    """Of every kind of cluster the jobs in every state; those that await a route also with one."""
    number = 0
    for ad, columns, state in itertools.product(ADS, COLUMNS, STATES):
        changes: list[Ad] = [{}, {"RouteName": "R"}] if "AwaitsRoute" in ad else [{}]
        for changed in changes:
            number += 1
            rows: list[list[Any]] = [[proc % 2, f"g{proc % 2}.ann"] for proc in range(4)]
            event = ClusterSubmitted(
                cluster=number, owner="ann", ad={"Cmd": "x", **ad}, columns=columns, rows=rows
            )
            cluster = cluster_of(event, 1, DepartedJobs(), None, ())
            yield alike(cluster, QueuedJob(state, changed), [JobId(number, proc) for proc in range(4)])


GROUPS: Final = list(groups())
Indexed = tuple[QueueIndex, Callable[[], Any], Callable[[list[JobsAlike]], Any]]
"""An index, what it says, and what should be said of the groups that are there."""


def single(present: list[JobsAlike]) -> Iterator[tuple[JobsAlike, str, int, JobId]]:
    """Job by job: whom it counts for, its universe, and which it is."""
    for group in present:
        for job in group.jobs:
            charged = group.cluster.charged
            row = group.cluster.submitted.rows[job.proc]
            submitter = charged if isinstance(charged, str) else charged(row)
            yield group, submitter, universe_of(group.cluster, group.entry, job.proc), job


def tally() -> Indexed:
    index = StatusTally()

    def recount(present: list[JobsAlike]) -> Any:
        found: dict[tuple[str, str], int] = {}
        for group, submitter, _, _ in single(present):
            key = submitter, group.entry.job.status
            found[key] = found.get(key, 0) + 1
        waiting = sum(len(each.jobs) for each in present if each.entry.job.status in {"idle", "held"})
        return found, sum(len(each.jobs) for each in present), waiting

    def said() -> Any:
        counts = {(s, status): n for s, t in index.by_submitter.items() for status, n in t.items() if n}
        return counts, index.of_owner("ann").total(), sum(each.cluster.waiting for each in GROUPS)

    return index, said, recount


def attendance() -> Indexed:
    index = Attendance()

    def recount(present: list[JobsAlike]) -> Any:
        found: dict[tuple[str, int], int] = {}
        for group, submitter, universe, _ in single(present):
            if group.entry.job.claim and universe in {7, 9, 12}:
                found[submitter, universe] = found.get((submitter, universe), 0) + 1
        return found

    return index, lambda: {key: n for key, n in index.jobs.items() if n}, recount


def staying() -> Indexed:
    index = LeaveInQueue()
    return (
        index,
        lambda: index.kept,
        lambda present: {job for group, _, _, job in single(present) if group.entry.job.kept},
    )


def routing() -> Indexed:
    index = Routing()

    def recount(present: list[JobsAlike]) -> Any:
        routed = [each for each in present if each.cluster.routed and not each.entry.job.ended]
        with_route = [each for each in routed if route_of(each.entry)]
        idle = [each for each in with_route if each.entry.job.status == "idle"]
        return tuple(sum(len(each.jobs) for each in some) for some in (routed, with_route, idle))

    def said() -> Any:
        of_vo, of_route = index.vos.get(""), index.routes.get("R")
        return (
            of_vo.jobs if of_vo else 0,
            of_route.jobs if of_route else 0,
            of_route.idle if of_route else 0,
        )

    return index, said, recount


def demand() -> Indexed:
    waiting, routes = DelayedJobs(), Routing()
    index = JobDemand(waiting, routes)

    def recount(present: list[JobsAlike]) -> Any:
        cooling, awaiting, deferred = set[JobId](), set[JobId](), set[JobId]()
        offered: dict[tuple[int, str], list[tuple[int, JobId]]] = {}
        for group, submitter, universe, job in single(present):
            if not group.entry.job.runnable:
                continue
            if group.entry.job.cooling:
                cooling.add(job)
            elif awaiting_proc(group.cluster.submitted, job.proc) and not route_of(group.entry):
                awaiting.add(job)
            elif group.cluster.timed:
                deferred.add(job)
            else:
                where = 0 if universe == 5 else 9 if universe == 9 else 12
                place = -group.cluster.priority(job.proc, {}), job
                offered.setdefault((where, submitter), []).append(place)
        return cooling, awaiting, deferred, {key: sorted(places) for key, places in offered.items()}

    def said() -> Any:
        offered = {
            (where, submitter): sorted(
                (place[0], JobId(*place[1:])) for jobs in each.values() for place in jobs.first(len(jobs))
            )
            for where, requests in ((0, index.on_machines), (9, index.in_batch), (12, index.at_home))
            for submitter, each in requests.items()
        }
        return waiting.cooling, set(routes.awaiting), set(waiting.deferred), offered

    return index, said, recount


@pytest.mark.parametrize("made", [tally, attendance, staying, routing, demand])
def test_an_index_equals_its_recount(made: Callable[[], Indexed]) -> None:
    """Groups of jobs come and go in any order; in the end all are gone, and nothing is left of them."""
    index, said, recount = made()
    chance, present, absent = random.Random(7), list[JobsAlike](), list(GROUPS)
    for _ in range(400):
        if absent and (not present or chance.random() < 0.55):
            present.append(group := absent.pop(chance.randrange(len(absent))))
            index.enter(group)
        else:
            absent.append(group := present.pop(chance.randrange(len(present))))
            index.leave(group)
        assert recount(present) == said()
    for group in present:
        index.leave(group)
    assert recount([]) == said()


def test_claims_know_their_jobs_and_are_forgotten_with_what_they_use() -> None:
    """
    A claim is for the job whose attempt may live on it, and for none when that is over; of several nodes all are.
    """
    claims = dict[str, Claim]()
    index = ClaimUse(claims)
    for name in ("c1", "c2", "c3"):
        index.granted(
            ClaimGranted(
                claim=name, startd="p/m", slot="s", slot_ad={}, submitter="ann", autocluster=1, lease=1.0,
                limits={"matlab": 1.0},
            ),
            1,
        )  # fmt: skip
    nodes = (NodeSlot(claim="c2", slot="s", startd="m"), NodeSlot(claim="gone", slot="s", startd="m"))
    gang = alike(
        GROUPS[0].cluster, QueuedJob(after(msgspec.structs.replace(ASSIGN, nodes=nodes))), [JobId(1, 3)]
    )
    index.enter(gang)
    assert {"c1": JobId(1, 3), "c2": JobId(1, 3), "c3": None} == {
        name: held.job for name, held in claims.items()
    }
    assert ({"c1", "c2", "c3"}, {"matlab": 3.0}) == (set(index.abroad), index.limits.of("ann"))
    index.leave(gang)
    for name in ("c1", "c2", "c3", "c3"):
        assert claims.get(name) is None or claims[name].job is None
        index.ended(name)
    assert ({}, {}, {}, 0) == (claims, index.abroad, index.limits.of("ann"), index.limits.claims("ann"))


# -- a queue that lives ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_every_index_of_a_living_queue_equals_its_recount(seed: int) -> None:
    """
    Submissions of all kinds, and whatever can be said of their jobs: every index says what a recount says, and so do those of a
    queue that is restored.
    """
    seen, found = set[str](), dict[str, Any]()
    for number, living in enumerate(lived(seed, STEPS)):
        if number % EACH == 0:
            found = counted(living.queue)
            assert recounted(living.queue, living.cooled, living.due) == found
            seen |= {what for what, counts in found.items() if counts}
        if number % (100 * EACH) == 0:
            restored = Queue("ap", significant=living.queue.significant)
            restore(restored, living.rows.items())
            assert recounted(restored, set(), set()) == counted(restored)
            assert living.queue.jobs == restored.jobs
    assert seen == found.keys()
