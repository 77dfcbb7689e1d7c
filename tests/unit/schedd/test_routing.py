"""Jobs that wait for a route in their queue, get one, and lose it."""

import asyncio

import msgspec
import pytest

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.entrypoint_door import EntrypointDoor
from kettle_services.schedd.commands.job_edits import JobEdits
from kettle_services.schedd.commands.routing import RoutingCommands
from kettle_services.schedd.domain.jobs.attempt import AttemptPhase, AttemptState
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.local_removal import fate
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.routing import VoTally
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.domain.submission import routes
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.recorder import restore as checkpointer
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Expr
from kettle_wire.commands.queue import EditJobs, Select
from kettle_wire.commands.routing import ListUnrouted, Routing
from kettle_wire.endpoint import Position
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobEdited,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobUnrouted,
)
from kettle_wire.identity import daemon, user
from kettle_wire.jobs import JobId
from kettle_wire.people import Shown

FIRST, SECOND = JobId(1, 0), JobId(1, 1)
AD: Ad = {
    "Cmd": "/bin/true",
    "JobUniverse": 5,
    "RequestMemory": 32,
    "Rank": Expr("Memory"),
    "AwaitsRoute": True,
}
TO_SLURM = Routing(
    jobs=[],
    route="Slurm",
    attributes={"jobuniverse": 9, "GridResource": "batch slurm", "RequestMemory": 64},
    removed=["RANK"],
)


def queue() -> Queue:
    """Two jobs that are to be routed, and one that is not."""
    made = Queue("ap")
    made.apply("cluster/1", ClusterSubmitted(cluster=1, owner="ada", ad=AD, columns=[], rows=[[], []]), 1)
    plain = {name: value for name, value in AD.items() if name != "AwaitsRoute"}
    made.apply("cluster/2", ClusterSubmitted(cluster=2, owner="ada", ad=plain, columns=[], rows=[[]]), 1)
    return made


def routed(found: Queue, job: JobId, routing: Routing = TO_SLURM) -> JobRouted:
    ad = found.ad(job)
    number = routes.said_before(found.jobs[job]) + 1
    event = routes.route(ad, {name.lower(): name for name in ad}, routing, number)
    found.apply(f"job/{job}", event, 2)
    return event


def counts(found: Queue) -> dict[str, tuple[int, int]]:
    return {name: (tally.jobs, tally.idle) for name, tally in found.routing.routes.items()}


def test_a_job_without_a_route_is_offered_to_nobody() -> None:
    """Others of its owner are."""
    found = queue()
    assert [JobId(2, 0)] == [job for _, job, _, _ in found.demand.requests("ada")]
    assert {FIRST, SECOND} == set(found.routing.awaiting)


def test_a_route_changes_the_ad_the_universe_and_the_autocluster() -> None:
    """Names are found however a route spells them, and the job is one for a batch system now."""
    found = queue()
    before = found.autocluster(FIRST)
    routed(found, FIRST)
    ad = found.ad(FIRST)
    assert (9, "batch slurm", 64, "Slurm") == tuple(
        ad[name] for name in ("JobUniverse", "GridResource", "RequestMemory", "RouteName")
    )
    assert "Rank" not in ad
    assert "jobuniverse" not in ad
    assert before != found.autocluster(FIRST)
    assert {"Slurm": (1, 1)} == counts(found)
    assert FIRST == found.demand.next_job("ada", found.autocluster(FIRST))
    assert found.demand.in_batch["ada"]
    assert [JobId(2, 0)] == [job for _, job, _, _ in found.demand.requests("ada")]


def test_what_a_route_changed_is_taken_back_with_it() -> None:
    """The ad is as it was, but for what was set by hand meanwhile; the job waits again."""
    found = queue()
    untouched, own = found.ad(SECOND), found.autocluster(FIRST)
    routed(found, FIRST)
    found.apply("job/1.0", JobEdited(attributes={"RequestMemory": 99}), 3)
    event = routes.unroute(found.jobs[FIRST], "it is no good", 2)
    assert event is not None
    found.apply("job/1.0", event, 4)
    ad = found.ad(FIRST)
    new = {"RequestMemory": 99, "NumEdits": 1, "NumRouted": 2, "UnroutedReason": "it is no good"}
    same = {name: value for name, value in ad.items() if name not in {*new, "ProcId", "GlobalJobId"}}
    assert {name: untouched[name] for name in same} == same
    assert {name: ad[name] for name in new} == new
    assert set(untouched) | set(new) == set(ad)
    assert (FIRST in found.routing.awaiting, {"Slurm": (0, 0)}) == (True, counts(found))
    assert own == found.clusters[1].autocluster(0, {})


def test_a_reason_is_said_once() -> None:
    """The entrypoint that says it knows it, and so does the queue that is told again."""
    found = queue()
    assert [FIRST, SECOND] == found.routing.next_untold(10)
    event = routes.unroute(found.jobs[FIRST], "no route takes it", 1)
    assert isinstance(event, JobUnrouted)
    found.apply("job/1.0", event, 2)
    assert [] == found.routing.next_untold(10)
    assert None is routes.unroute(found.jobs[FIRST], "no route takes it", 2)


def test_what_is_held_or_edited_is_told_again() -> None:
    """A job that waited wherefore it does no more, and one whose ad is another."""
    found = queue()
    found.routing.next_untold(10)
    found.apply("job/1.0", JobHeld(code=1, reason="wait"), 2)
    found.apply("job/1.1", JobEdited(attributes={"RequestMemory": 1}), 2)
    assert [FIRST] == [job for job in found.routing.take_left() if job not in found.routing.awaiting]
    found.apply("job/1.0", JobReleased(), 3)
    assert [FIRST, SECOND] == found.routing.next_untold(10)


def test_a_restarted_queue_is_the_same() -> None:
    """Its rows have the routes, what these changed and what waits."""
    found, rows = Queue("ap"), dict[str, bytes]()

    def happens(stream: str, event: Event, at: int) -> None:
        changes = found.apply(stream, event, at)
        rows.update({row.stream: row.state for row in changes if row.state is not None})

    happens("cluster/1", ClusterSubmitted(cluster=1, owner="ada", ad=AD, columns=[], rows=[[], []]), 1)
    ad = found.ad(FIRST)
    happens("job/1.0", routes.route(ad, {name.lower(): name for name in ad}, TO_SLURM, 1), 2)
    again = Queue("ap")
    restore(again, rows.items())
    assert found.ad(FIRST) == again.ad(FIRST)
    assert counts(found) == counts(again)
    assert found.routing.awaiting == again.routing.awaiting
    assert found.demand.in_batch.keys() == again.demand.in_batch.keys()
    assert routes.unroute(found.jobs[FIRST], "why", 2) == routes.unroute(again.jobs[FIRST], "why", 2)


@pytest.mark.parametrize(
    ("routing", "why"),
    [
        (Routing(jobs=[], route="R", attributes={"Owner": "eve"}), "kept by the queue"),
        (Routing(jobs=[], route="R", attributes={"AcctGroup": "g"}), "who is charged"),
        (Routing(jobs=[], route="R", removed=["AwaitsRoute"]), "to be routed"),
        (Routing(jobs=[], route="R", attributes={"X": Expr("1 +")}), "cannot be read"),
    ],
)
def test_what_no_route_may_change_is_refused(routing: Routing, why: str) -> None:
    """With the attribute and the reason."""
    with pytest.raises(Unacceptable, match=why):
        routes.check(routing)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [({"JobUniverse": 7}, "none that a route can lead to"), ({"JobUniverse": 9}, "names no batch system")],
)
def test_a_route_leads_somewhere(attributes: Ad, why: str) -> None:
    """To this pool, or to a batch system that has a name."""
    found = queue()
    with pytest.raises(Unacceptable, match=why):
        routed(found, FIRST, Routing(jobs=[], route="R", attributes=attributes))


@pytest.mark.parametrize(
    ("ad", "becomes"),
    [
        ({}, "fail"),
        ({"OnLocalRemove": "hold"}, "hold"),
        ({"OnLocalRemove": "retry"}, "fail"),
        ({"OnLocalRemove": "retry", "OnLocalRemoveRetries": 2}, "retry"),
        (
            {
                "OnLocalRemove": "retry",
                "OnLocalRemoveRetries": 2,
                "NumVacatesByReason": Expr("[ RemovedInBatchSystem = 2 ]"),
            },
            "fail",
        ),
    ],
)
def test_what_the_route_says_becomes_of_a_job_that_was_removed_there(ad: Ad, becomes: str) -> None:
    """As often as it says, and no more."""
    assert becomes == fate(ad, 0.0)


def test_jobs_are_counted_by_vo_and_a_restart_counts_the_same() -> None:
    """All that are to be routed, and those with a route by how they are; what is over counts no more."""
    found, rows = Queue("ap"), dict[str, bytes | None]()

    def happens(stream: str, event: Event, at: int) -> None:
        rows.update({row.stream: row.state for row in found.apply(stream, event, at)})

    of_cms: Ad = {**AD, "x509UserProxyVOName": "cms"}
    happens("cluster/1", ClusterSubmitted(cluster=1, owner="ada", ad=of_cms, columns=[], rows=[[]] * 4), 1)
    happens("cluster/2", ClusterSubmitted(cluster=2, owner="bob", ad=AD, columns=[], rows=[[]]), 1)
    for proc in (0, 1, 2):
        ad = found.ad(JobId(1, proc))
        happens(f"job/1.{proc}", routes.route(ad, {name.lower(): name for name in ad}, TO_SLURM, 1), 2)
    happens("job/1.1", JobHeld(code=1, reason="wait"), 3)
    happens("job/1.2", JobRemoved(reason="enough"), 3)
    again = Queue("ap")
    restore(again, [(stream, state) for stream, state in rows.items() if state is not None])
    assert {"cms": VoTally(jobs=3, idle=1, held=1), "": VoTally(jobs=1)} == found.routing.vos
    assert found.routing.vos == again.routing.vos


async def nobody_known(_owner: str) -> Shown | None:
    return None


async def test_a_question_that_nobody_waits_for_any_more_takes_no_job() -> None:
    """
    An entrypoint that was ended or has read other routes asks again while its earlier question still waits in the schedd: what comes
    then is in the answer that it hears.
    """
    log, found = MemoryLog(), Queue("ap")
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, found, await checkpointer(log, MemoryWorkingSet(log), shard, Queue("ap"), interval=1.0)
        )
        door = EntrypointDoor(found, {}, nobody_known)
        asked, caller = RoutingCommands(recorder, AttributeSeal([bytes(32)]), door, {}), daemon("ce")
        first = await asked.list_unrouted(ListUnrouted(), caller)
        question = ListUnrouted(news=first.news, wait=20.0)
        earlier = tasks.create_task(asked.list_unrouted(question, caller))
        await asyncio.sleep(0)
        later = tasks.create_task(asked.list_unrouted(question, caller))
        forgotten = await earlier
        submitted = ClusterSubmitted(cluster=1, owner="ada", ad=AD, columns=[], rows=[[]])
        await recorder.record([("cluster/1", submitted)])
        heard = await later
        committing.cancel()
    assert ([], first.news) == (forgotten.jobs, forgotten.news)
    assert [FIRST] == [each.job for each in heard.jobs]


@pytest.mark.parametrize(
    ("by", "attributes", "outcome"),
    [
        ("ada", {"GridResource": "batch other"}, "denied"),
        ("ada", {"gridresource": "batch other", "RequestMemory": 9}, "denied"),
        ("ada", {"BatchProject": "theirs"}, "denied"),
        ("ada", {"BatchQueue": "long"}, "denied"),
        ("ada", {"batchextrasubmitargs": "--qos=high"}, "denied"),
        ("ada", {"RequestMemory": 9}, "done"),
        ("root", {"GridResource": "batch other"}, "done"),
    ],
)
async def test_where_a_job_goes_is_what_its_route_has_said(by: str, attributes: Ad, outcome: str) -> None:
    """
    Its owner does not say where a job goes that has a route to a batch system, also not in attributes that the route has left as they were: by
    them it was chosen. Without a route it is his again.
    """
    log, found = MemoryLog(), queue()
    settings = ScheddSettings(queue_super_users=("root",))
    charged = msgspec.structs.replace(TO_SLURM, attributes={**TO_SLURM.attributes, "BatchProject": "physics"})
    routed(found, FIRST, charged)
    async with Shard.own(log, "schedd.ap", owner="me") as shard:
        recorder = QueueRecorder(
            shard, found, await checkpointer(log, MemoryWorkingSet(log), shard, found, interval=1.0)
        )
        edits = JobEdits(recorder, settings, DeedsForOthers(found, None), AttributeSeal([bytes(32)]))
        request = EditJobs(id="1", select=Select(jobs=[FIRST, SECOND]), attributes=attributes)
        first, second = (await edits.edit(request, user(by))).reply(Position("schedd.ap", 1)).outcomes
    assert (outcome, "done") == (first.outcome, second.outcome)


async def test_a_job_is_taken_off_its_route_by_hand() -> None:
    """
    Idle or held, its ad is what it was, and it waits for a route with the reason; said again it changes nothing, and one that has a claim goes
    on.
    """
    found = queue()
    before = found.ad(FIRST)
    for each in (FIRST, SECOND):
        routed(found, each)
    found.apply("job/1.1", JobHeld(code=1, reason="wait"), 3)
    for job in (FIRST, SECOND):
        (event,), outcome = routes.taken_off(found.jobs[job], "down (by user ada)", "ada")
        assert ("done", JobUnrouted) == (outcome, type(event))
        found.apply(f"job/{job}", event, 4)
        assert ((), "already_done") == routes.taken_off(found.jobs[job], "down (by user ada)", "ada")
    after = found.ad(FIRST)
    assert {name: after[name] for name in before if name in AD} == {name: before[name] for name in AD}
    assert ("RouteName" not in after, "down (by user ada)") == (True, after["UnroutedReason"])
    assert [FIRST] == list(found.routing.awaiting)
    assert [FIRST] == found.routing.next_untold(9)
    found.apply("job/1.1", JobReleased(reason="go"), 5)
    assert [SECOND] == found.routing.next_untold(9)
    assert 0 == found.routing.routes["Slurm"].jobs
    routed(found, FIRST)
    busy = msgspec.structs.replace(
        found.jobs[FIRST], job=Job("running", AttemptState(1, AttemptPhase.STARTING, "c"))
    )
    assert ((), "bad_status") == routes.taken_off(busy, "down", "ada")
