"""Jobs that come into the queue little by little."""

import asyncio
import pwd
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.testing.patience import PATIENCE_S
from kettle.testing.served import Endpoints
from kettle.transforms import Transform
from kettle_services.schedd.claims.refusals import Refusals
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.explanations import Explanations
from kettle_services.schedd.commands.factory_edits import FactoryEdits
from kettle_services.schedd.commands.queries import Queries
from kettle_services.schedd.commands.submissions import LONG, Submissions
from kettle_services.schedd.domain.jobs.commands import Assign, End, Hold, Remove
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.queue.fold import Queue, factory_stream, job_stream
from kettle_services.schedd.domain.queue.working_set import restore as restore_queue
from kettle_services.schedd.domain.submission.departed import PAGE, DepartedJobs
from kettle_services.schedd.domain.submission.packed_rows import BLOCK, PackedRows
from kettle_services.schedd.domain.submission.validation import Unacceptable, check
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import AttemptResult, ExitRecord
from kettle_wire.commands.schedd import (
    EDIT,
    EXPLAIN,
    EXPLAIN_JOBS,
    QUERY_EVENTS,
    QUERY_JOBS,
    SUBMIT,
    Act,
    Action,
    Edit,
    Explain,
    ExplainJobs,
    FactoryOutcome,
    QueryEvents,
    QueryJobs,
    Select,
    Submit,
)
from kettle_wire.events import (
    ClaimGranted,
    ClusterSubmitted,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobRemoved,
    Usage,
)
from kettle_wire.identity import user
from kettle_wire.jobs import JobId


def submitted(jobs: int, *, number: int = 1, owner: str = "anna", **pace: int) -> FactorySubmitted:
    rows: list[list[Scalar]] = [[str(row)] for row in range(jobs)]
    return FactorySubmitted(cluster=number, owner=owner, ad={"Cmd": "x", **pace}, columns=["Args"], rows=rows)


@pytest.mark.parametrize(
    ("factory", "present", "waiting", "room"),
    [
        (Factory(size=10), 0, 0, 10),
        (Factory(size=10, limit=4), 1, 1, 3),
        (Factory(size=10, max_idle=2), 5, 1, 1),
        (Factory(size=10, limit=4, max_idle=2), 3, 0, 1),
        (Factory(size=10, limit=4), 6, 0, 0),
        (Factory(size=10, made=9, max_idle=5), 0, 0, 1),
        (Factory(size=10, paused=1), 0, 0, 0),
    ],
)
def test_a_factory_makes_as_many_as_its_limits_allow(
    factory: Factory, present: int, waiting: int, room: int
) -> None:
    """
    The room is the least of what is left to make, limit - present and max_idle - waiting, and none while it is paused.
    """
    assert room == factory.room(present=present, waiting=waiting)


def test_which_jobs_have_left_is_kept_in_pages() -> None:
    """
    Whatever the order in which they leave, the same have left; each writes one short row, and the rows tell it all again.
    """
    leave = [proc for proc in range(1, 3 * PAGE) if proc % 7]
    one, other, again, rows = DepartedJobs(), DepartedJobs(), DepartedJobs(), dict[str, bytes]()
    for proc in leave:
        one.add(proc)
        name, row = one.row(proc)
        rows[name] = row
        assert len(row) <= PAGE // 8
    for proc in reversed(leave):
        other.add(proc)
    for name, row in rows.items():
        again.read(name, row)
    stay = [proc for proc in range(3 * PAGE + 2) if proc not in set(leave)]
    for gone in (one, other, again):
        assert (len(leave), stay) == (len(gone), list(gone.among(3 * PAGE + 2)))
    assert (set(rows), True, False) == (again.rows, leave[0] in again, 0 in again)


def test_the_one_row_of_a_former_release_is_read() -> None:
    """It had all bits; what leaves afterwards is in pages, and both rows go with the cluster."""
    queue, again = Queue("ap"), Queue("ap")
    event = ClusterSubmitted(
        cluster=1, owner="anna", ad={"Cmd": "x"}, columns=[], rows=[[] for _ in range(PAGE + 3)]
    )
    (row, *_) = queue.apply("cluster/1", event, 1)
    assert row.state is not None
    left = ((1 << PAGE + 1) - 1) & ~2
    restore_queue(
        again, [("cluster/1", row.state), ("cluster/1#left", left.to_bytes(PAGE // 8 + 1, "little"))]
    )
    assert [1, PAGE + 1, PAGE + 2] == [job.proc for job in again.jobs]
    removed = {
        change.stream: change.state
        for proc in (1, PAGE + 1, PAGE + 2)
        for change in again.apply(job_stream(JobId(1, proc)), JobRemoved(), 1)
    }
    assert {None} == {removed[f"cluster/1{end}"] for end in ("", "#left", "#left.0", "#left.1")}


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
def test_a_table_is_its_rows(size: int) -> None:
    """Packed rows come out as they went in, in any order; there is none behind the last."""
    rows: list[list[Scalar]] = [[number, f"{number}", 0.5] for number in range(size)]
    table = PackedRows(rows)
    assert (size, rows, rows[::-1]) == (len(table), list(table), table[::-1])
    with pytest.raises(IndexError):
        table[size]
    assert [[]] * size == list(PackedRows([[] for _ in range(size)]))


SEAL = AttributeSeal([bytes(32)])
ACCOUNTS = Accounts(
    privileged=True, directory=lambda name: pwd.struct_passwd((name, "x", 70_000, 70_000, "", "/", ""))
)


class AccessPoint:
    """A queue with its factories, and nothing else of a schedd."""

    def __init__(self, log: MemoryLog, recorder: QueueRecorder, settings: ScheddSettings) -> None:
        self.log, self.recorder, self.queue = log, recorder, recorder.queue
        self.factories = Factories(recorder, settings)
        nobody: Any = None  # runs jobs here
        limits = QueueLimits(recorder.queue, settings)
        backlog = Backlog(recorder.shard, limit=settings.max_backlog)
        pipeline = CommandPipeline(recorder, require_room=backlog.require_room)
        queries = Queries(log, recorder, self.factories, SEAL)
        reasons = Explanations(recorder, nobody, self.factories, limits, Refusals(), settings, SEAL)
        self.asked = Endpoints([
            pipeline.command(SUBMIT, Submissions(recorder, limits, backlog, settings, ACCOUNTS, SEAL).submit),
            pipeline.command(EDIT, FactoryEdits(recorder, settings, DeedsForOthers(recorder.queue, None)).edit),
            pipeline.query(QUERY_JOBS, queries.query_jobs),
            pipeline.query(QUERY_EVENTS, queries.query_events),
            pipeline.query(EXPLAIN, reasons.explain),
            pipeline.query(EXPLAIN_JOBS, reasons.explain_jobs),
        ])  # fmt: skip

    async def submit(self, event: ClusterSubmitted) -> None:
        await self.recorder.record([(f"cluster/{event.cluster}", event)])
        await self.factories.materialize_now()

    def act(self, action: Action, person: str = "anna") -> FactoryOutcome:
        request = Act(id="1", action=action, select=Select(clusters=[1]))
        (number,) = self.factories.selected(request.select, None)
        return self.factories.act(number, request, person=person, reason="r")

    async def edit(self, attributes: Ad, *, person: str = "anna", id_: str = "1") -> None:
        await self.asked.ask(EDIT, Edit(id=id_, cluster=1, attributes=attributes), user(person))
        await self.factories.materialize_now()

    async def run(self, proc: int) -> None:
        """Have a job run to its end."""
        job, claim = JobId(1, proc), f"c{proc}"
        granted = ClaimGranted(
            claim=claim, startd="m", slot="s", slot_ad={}, submitter="anna", autocluster=1, lease=1.0
        )
        (assigned,) = decide(self.queue.jobs[job].job, Assign(claim, "s", "m"))
        self.recorder.record([(f"claim/{claim}", granted), (job_stream(job), assigned)])
        await self.factories.materialize_now()
        done = End(
            attempt=1, claim=claim, result=AttemptResult(exit=ExitRecord(code=0, at=1.0), usage=Usage())
        )
        self.recorder.record([(job_stream(job), event) for event in decide(self.queue.jobs[job].job, done)])
        await self.factories.materialize_now()

    @property
    def procs(self) -> list[int]:
        return [job.proc for job in sorted(self.queue.jobs)]


@asynccontextmanager
async def access_point(**settings: object) -> AsyncGenerator[AccessPoint]:
    log, queue = MemoryLog(), Queue("ap")
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        yield AccessPoint(log, recorder, msgspec.convert(settings, ScheddSettings))
        committing.cancel()


async def test_jobs_are_made_when_others_run_or_end() -> None:
    """
    With max_idle 2 a third job is made when the first one runs; with max_materialize 3 a fourth one when it has ended.
    """
    async with access_point() as ap:
        await ap.submit(submitted(5, JobMaterializeMaxIdle=2, JobMaterializeLimit=3))
        assert [0, 1] == ap.procs
        await ap.run(0)
        assert [1, 2] == ap.procs
        ad = ap.queue.ad(JobId(1, 1))
        names = ("NextProcId", "Paused", "Limit", "MaxIdle")
        assert ["1", 5, 3, 0, 3, 2] == [
            ad["Args"],
            ad["TotalSubmitProcs"],
            *(ad[f"JobMaterialize{name}"] for name in names),
        ]


async def test_a_held_job_counts_as_waiting() -> None:
    """Else a cluster whose jobs all fail and are held would come into the queue at once."""
    async with access_point() as ap:
        await ap.submit(submitted(5, JobMaterializeMaxIdle=2))
        job = JobId(1, 0)
        for command, procs in ((Hold("no", "anna"), [0, 1]), (Remove("no", "anna"), [1, 2])):
            events = decide(ap.queue.jobs[job].job, command)
            await ap.recorder.record([(job_stream(job), event) for event in events])
            await ap.factories.materialize_now()
            assert procs == ap.procs


@pytest.mark.parametrize(
    ("settings", "procs"), [({"max_jobs_per_owner": 3}, 3), ({"max_jobs_per_submission": 2}, 2)]
)
async def test_what_the_site_allows_is_not_exceeded(settings: dict[str, int], procs: int) -> None:
    """A factory waits where a submission would be refused."""
    async with access_point(**settings) as ap:
        await ap.submit(submitted(9, JobMaterializeLimit=8))
        assert procs == len(ap.procs)


async def test_clusters_take_turns() -> None:
    """
    Where the whole queue has room for few, each cluster gets some of it, and one place stays free for other submissions.
    """
    async with access_point(max_jobs_submitted=4) as ap:
        for number, owner in enumerate(("anna", "eve", "zoe"), start=1):
            await ap.recorder.record(
                [(f"cluster/{number}", submitted(9, number=number, owner=owner, JobMaterializeLimit=1))]
            )
        await ap.factories.materialize_now()
        assert [1, 2, 3] == [job.cluster for job in sorted(ap.queue.jobs)]
    async with access_point(max_jobs_submitted=2) as ap:
        for number, owner in enumerate(("anna", "eve"), start=1):
            await ap.recorder.record(
                [(f"cluster/{number}", submitted(9, number=number, owner=owner, JobMaterializeLimit=9))]
            )
        served: list[int] = []
        for _ in range(4):
            await ap.factories.materialize_now()
            (job,) = ap.queue.jobs
            served.append(job.cluster)
            await ap.recorder.record([(job_stream(job), JobRemoved())])
        assert [1, 2, 1, 2] == served


async def test_a_factory_is_held_released_and_removed() -> None:
    """
    Held, it makes nothing; released, it goes on; removed, what is not made never is, and the cluster ends with its jobs.
    """
    async with access_point() as ap:
        await ap.submit(submitted(5, JobMaterializeMaxIdle=1))
        assert FactoryOutcome(1, "denied", 4) == ap.act("hold", person="eve")
        assert ["done", "already_done"] == [ap.act("hold").outcome for _ in range(2)]
        await ap.run(0)
        assert ([], 1) == (ap.procs, ap.factories.unmade(Select())[0].paused)
        assert ["done", "bad_status"] == [ap.act("release").outcome for _ in range(2)]
        await ap.factories.materialize_now()
        assert [1] == ap.procs
        assert FactoryOutcome(1, "done", 3) == ap.act("remove")
        await ap.run(1)
        assert ({}, set()) == (ap.queue.clusters, ap.queue.unmade)


async def test_limits_are_edited() -> None:
    """Once per id, by the owner alone, and numbers alone; no other attribute can be."""
    async with access_point() as ap:
        await ap.submit(submitted(9, JobMaterializeMaxIdle=1))
        await ap.edit({"jobmaterializemaxidle": 3})
        assert [0, 1, 2] == ap.procs
        refused: tuple[tuple[Ad, str, str], ...] = (
            ({"JobMaterializeMaxIdle": 9}, "eve", "denied"),
            ({"JobMaterializeMaxIdle": 0}, "anna", "malformed"),
            ({"JobMaterializeMaxIdle": True}, "anna", "malformed"),
            ({"JobMaterializeMaxIdle": 9, "Owner": "eve"}, "anna", "denied"),
            ({}, "anna", "malformed"),
        )
        for attributes, person, code in refused:
            with pytest.raises(RefusedError) as refusal:
                await ap.edit(attributes, person=person, id_="2")
            assert code == refusal.value.code
        assert 3 == len(ap.procs)


async def test_what_will_never_be_made_is_said_so() -> None:
    """
    Of a job that waits in the table it is not, nor of one that was made; of one that was given up it is, also when the
    cluster is gone. The record of how the others were made is not read for it.
    """
    async with access_point() as ap:
        await ap.submit(submitted(4, JobMaterializeMaxIdle=1))

        async def never() -> list[bool]:
            asked = [QueryEvents(job=JobId(1, proc)) for proc in range(4)]
            return [(await ap.asked.ask(QUERY_EVENTS, one, user("eve"))).never_made for one in asked]

        assert [False] * 4 == await never()
        await ap.run(0)
        assert [False] * 4 == await never()
        ap.act("remove")
        assert [False, False, True, True] == await never()
        await ap.run(1)
        assert {} == ap.queue.clusters
        assert [False, False, True, True] == await never()
        recorded = await ap.asked.ask(QUERY_EVENTS, QueryEvents(job=JobId(1, 0)), user("eve"))
        assert {"cluster/1", "job/1.0"} == {event.stream for event in recorded.events}


async def test_why_a_job_is_not_made_yet() -> None:
    """It waits for room, or because its cluster was paused; one that was never submitted does not exist."""
    async with access_point() as ap:
        await ap.submit(submitted(4, JobMaterializeMaxIdle=1))
        for sentence in (
            "1 of the 4 jobs of cluster 1 are made; the others follow when fewer than 1 are idle",
            "kettle release 1",
        ):
            with pytest.raises(RefusedError, match=sentence) as refusal:
                await ap.asked.ask(EXPLAIN, Explain(job=JobId(1, 3)), user("anna"))
            assert "refused" == refusal.value.code
            ap.act("hold")
        with pytest.raises(RefusedError, match="not in the queue"):
            await ap.asked.ask(EXPLAIN, Explain(job=JobId(1, 4)), user("anna"))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"JobMaterializeMaxIdle": 1}, "fewer than 1 are idle or held (max_idle; 1 are now); kettle edit 1 max_idle=N"),
        ({"JobMaterializeLimit": 2}, "fewer than 2 are in the queue (max_materialize; 2 are now)"),
    ],
)  # fmt: skip
async def test_what_keeps_the_others_out_is_told_of_the_whole_cluster(
    attributes: dict[str, Any], words: str
) -> None:
    """
    With those that are in the queue together, since they have one reason, and how many are still to come.
    """
    async with access_point() as ap:
        await ap.submit(submitted(4, **attributes))
        found = await ap.asked.ask(EXPLAIN_JOBS, ExplainJobs(select=Select(clusters=[1])), user("anna"))
        (unmade,), (group,) = found.unmade, found.groups
        assert (4, 0) == (group.jobs + unmade.unmade, found.more)
        assert words in unmade.reason
        assert (JobId(1, 0), JobId(1, group.jobs - 1)) == (group.explanation.job, group.last)


async def test_who_knows_no_factories_does_not_take_their_jobs_for_jobs_in_the_queue() -> None:
    """A submission that has one is recorded as a type of its own; any other as it always was."""
    async with access_point() as ap:
        rows: list[list[Scalar]] = [[], []]
        for number, pace in enumerate(({}, {"JobMaterializeMaxIdle": 1}), start=1):
            said = Submit(id=f"{number}", ad={"Cmd": "x", **pace}, columns=[], rows=rows)
            assert 2 == (await ap.asked.ask(SUBMIT, said, user("anna"))).count
        types = [(await ap.log.stream("schedd.ap", f"cluster/{i}"))[0][0].entries[0].type for i in (1, 2)]
        assert ["cluster.submitted/1", "factory.submitted/1"] == types
        assert 2 == len(ap.queue.jobs)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"max_factories_per_owner": 0}, "max_factories_per_owner"),
        ({"max_unmade_jobs_per_owner": 1}, "max_unmade_jobs_per_owner"),
        ({"max_jobs_per_factory": 1}, "at most 1 "),
    ],
)
async def test_a_submission_with_a_factory_is_bounded(settings: dict[str, int], name: str) -> None:
    """By how many there are, and of how many jobs; nothing is recorded."""
    async with access_point(**settings) as ap:
        said = Submit(id="1", ad={"Cmd": "x", "JobMaterializeLimit": 1}, columns=[], rows=[[], []])
        with pytest.raises(RefusedError, match=name):
            await ap.asked.ask(SUBMIT, said, user("anna"))
        assert {} == ap.queue.clusters


async def test_a_transform_that_fails_refuses_that_submission_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises: the next one is looked at as if nothing had happened."""

    def broken(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    async with access_point(job_transforms=[{"name": "t", "transform": "SET A 1"}]) as ap:
        said = Submit(id="1", ad={"Cmd": "x"}, columns=[], rows=[[]])
        with monkeypatch.context() as patch:
            patch.setattr(Transform, "apply", broken)
            with pytest.raises(RefusedError, match="RecursionError") as refusal:
                await ap.asked.ask(SUBMIT, said, user("anna"))
            assert ("unacceptable", {}) == (refusal.value.code, ap.queue.clusters)
        await ap.asked.ask(SUBMIT, said, user("anna"))
        assert 1 == ap.queue.ad(JobId(1, 0))["A"]


async def test_not_too_many_submissions_wait_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be large, and one is looked at at a time: those that are too many are told to come again."""
    monkeypatch.setattr("kettle_services.schedd.commands.submissions._MOST_EXAMINED", 2)
    async with access_point(job_transforms=[{"name": "t", "transform": "SET A 1"}]) as ap:
        asked = [Submit(id=f"{i}", ad={"Cmd": "x"}, columns=[], rows=[[]]) for i in range(5)]
        found = await asyncio.gather(
            *(ap.asked.ask(SUBMIT, one, user("anna")) for one in asked), return_exceptions=True
        )
        codes = [one.code if isinstance(one, RefusedError) else "" for one in found]
        assert ["", "", "busy", "busy", "busy"] == codes


@pytest.mark.parametrize("pace", [{"JobMaterializeLimit": 0}, {"JobMaterializeMaxIdle": "2"}])
def test_a_pace_that_is_none_is_refused(pace: Ad) -> None:
    """It is refused before it is recorded, because a factory that makes nothing would never end."""
    with pytest.raises(Unacceptable, match="at least 1"):
        check({"Cmd": "x", **pace}, [], [[]], limit=1)
    with pytest.raises(Unacceptable, match="the same for all"):
        check({"Cmd": "x"}, ["JobMaterializeLimit"], [[1]], limit=1)


def test_only_those_clusters_are_meant_that_a_constraint_is_true_of() -> None:
    """What each job has of its own, its status included, is undefined of jobs that are not made."""
    queue = Queue("ap")
    queue.apply("cluster/1", submitted(3, JobMaterializeLimit=1), 1)
    assert {1} == queue.unmade
    queue.apply(factory_stream(1), FactoryMaterialized(cluster=1, owner="anna", first=0, count=3), 1)
    assert set() == queue.unmade
    queue.apply("cluster/2", submitted(3, number=2, JobMaterializeLimit=1), 1)
    queue.apply(factory_stream(2), FactoryClosed(cluster=2, owner="anna", first=0, count=3), 1)
    assert [1] == list(queue.clusters)


async def test_others_are_answered_while_a_long_submission_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The look at very many jobs ends here when somebody else's submission is recorded and shown: if nobody else had a turn
    before, it would never end. What was sent again meanwhile is the same submission.
    """
    seen, looked = threading.Event(), list[int]()

    def patient(ad: Ad, columns: list[str], rows: list[list[Scalar]], *, limit: int, **said: bool) -> None:
        looked.append(len(rows))
        assert len(rows) < LONG or seen.wait(60)
        check(ad, columns, rows, limit=limit, **said)

    monkeypatch.setattr("kettle_services.schedd.commands.submissions.check", patient)
    rows: list[list[Scalar]] = [[number] for number in range(LONG)]
    many = Submit(id="1", ad={"Cmd": "x", "JobMaterializeLimit": 1}, columns=["N"], rows=rows)
    async with access_point() as ap, asyncio.timeout(PATIENCE_S):
        long = [asyncio.create_task(ap.asked.ask(SUBMIT, many, user("anna"))) for _ in range(2)]
        await asyncio.sleep(0)  # they begin
        short = await ap.asked.ask(
            SUBMIT, Submit(id="1", ad={"Cmd": "x"}, columns=[], rows=[[]]), user("eve")
        )
        shown = await ap.asked.ask(QUERY_JOBS, QueryJobs(select=Select(), projection=[]), user("eve"))
        assert [False, False] == [task.done() for task in long]
        seen.set()
        answers = await asyncio.gather(*long)
    assert (1, 1) == (short.cluster, shown.total)
    assert [(2, LONG), (2, LONG)] == [(each.cluster, each.count) for each in answers]
    assert [1, LONG] == sorted(looked)
