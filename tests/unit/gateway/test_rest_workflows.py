"""Workflows over HTTP: who may look, what is found in lists, and that events are folded once."""

import asyncio
import gc
import weakref
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from tests.unit.dag.files.story import PLAN, START, STORY

from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.ports import Bus, RefusedError
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.pages.live import Watch
from kettle_services.gateway.pages.workflows.watching import WorkflowWatch
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.dag_jobs import DagJobs
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.choosing import chosen
from kettle_services.gateway.rest.workflows.happenings import happening
from kettle_services.gateway.rest.workflows.listing import filter_of, of_job
from kettle_services.gateway.rest.workflows.making import NewWorkflows
from kettle_services.gateway.rest.workflows.questions import WorkflowQuestions
from kettle_services.gateway.rest.workflows.views import WorkflowViews, event_of
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.dagman import FollowWorkflow, RecordedWorkflowEvent, WorkflowNews
from kettle_wire.events import encode
from kettle_wire.events.workflow import WorkflowStarted
from kettle_wire.rest.jobs import Job, Jobs, ListHistory, ListJobs
from kettle_wire.rest.workflow_making import SubmitWorkflow
from kettle_wire.rest.workflows import ListNodes, ListWorkflows, Workflows, WorkflowStateName
from kettle_wire.workflows import packed

ADA = Person(local("ada"), Mapped(owner="ada", domain="pool"))
ROOT = Person(local("root"), Mapped(owner="root", domain="pool"))
DAG_JOB: Ad = {
    "JobUniverse": 7,
    "OtherJobRemoveRequirements": "DAGManJobId =?= 7",
    "JobBatchName": "a.dag+7",
    "JobStatus": 2,
}


def recorded() -> list[RecordedWorkflowEvent]:
    """The story as it is told."""
    (_, started), *others = STORY
    assert isinstance(started, WorkflowStarted)
    story = [(0.0, msgspec.structs.replace(started, plan=packed(PLAN))), *others]
    return [
        RecordedWorkflowEvent(int((START + after) * 1e6), msgspec.Raw(encode(event)))
        for after, event in story
    ]


class Told:
    """Tells the story, some events at a time."""

    def __init__(self, at_once: int) -> None:
        self.events = recorded()
        self.at_once = at_once
        self.asked: list[int] = []

    async def call(
        self, _endpoint: Any, _name: str, request: FollowWorkflow, *, deadline: float
    ) -> WorkflowNews:
        del deadline
        self.asked.append(request.after)
        await asyncio.sleep(0)
        if request.workflow != 7:
            raise RefusedError(RefusalCode.NOT_FOUND, "there is none")
        some = self.events[request.after : request.after + self.at_once]
        return WorkflowNews(events=some, complete=request.after + len(some) == len(self.events))


def access(person_may: Person = ROOT) -> WorkflowAccess:
    def may(person: Person, level: Level) -> bool:
        return person is person_may and level is Level.ADMINISTRATOR

    return WorkflowAccess(cast("JobTables", None), cast("WorkflowViews", None), may)


def asked(person: Person, parameters: msgspec.Struct) -> Asked:
    return Asked(person, parameters, None, make_mocked_request("GET", "/v2/workflows"))


async def test_events_are_folded_once_for_all_who_look() -> None:
    """
    Two who ask at the same time see the same workflow, each event once, however many come in one answer.
    """
    told = Told(at_once=5)
    views = WorkflowViews(cast("Bus", told))
    first, second = await asyncio.gather(views.of("ap", 7), views.of("ap", 7))
    assert first is second
    assert len(told.events) == first.view.events
    assert sum(first.view.counts) == len(PLAN.names)
    before = len(told.asked)
    await views.of("ap", 7)
    assert before == len(told.asked)  # it is over, and nothing more happens
    with pytest.raises(RefusedError):
        await views.of("ap", 8)


async def test_what_is_not_there_is_not_remembered() -> None:
    """Somebody who asks for one number after the other does not fill the memory."""
    views = WorkflowViews(cast("Bus", Told(100)))
    found = weakref.ref(await views.of("ap", 7))
    assert found() is not None
    for number in range(100, 300):
        with pytest.raises(RefusedError):
            await views.of("ap", number)
    gc.collect()
    assert found() is None


async def test_a_workflow_of_very_many_nodes_is_refused_before_it_is_unpacked() -> None:
    """
    A plan of some bytes says of itself how large it would be; what follows its first name is not even looked at.
    """
    told = Told(100)
    large = zlib.compress(
        b"\x81\xa5names\xdd" + (30).to_bytes(4) + b"\xa1A and nothing that could be unpacked"
    )
    start = event_of(told.events[0])
    assert isinstance(start, WorkflowStarted)
    start = msgspec.structs.replace(start, plan=large)
    told.events[0] = RecordedWorkflowEvent(1, msgspec.Raw(encode(start)))
    with pytest.raises(RefusedError, match=r"has 30 nodes, and the gateway looks at 29 at most"):
        await WorkflowViews(cast("Bus", told), most_nodes=29).of("ap", 7)
    assert len(PLAN.names) == len(
        (await WorkflowViews(cast("Bus", Told(100)), most_nodes=29).of("ap", 7)).view.states
    )


async def test_nodes_are_chosen_out_of_all_and_page_by_page() -> None:
    """State and name are looked at for every node; a token leads on, and belongs to its question."""
    watched = await WorkflowViews(cast("Bus", Told(100))).of("ap", 7)
    page = await chosen(watched, ListNodes(id="7", state=["done", "failed"], limit=2))
    assert ([0, 1], 4) == ([*page.nodes], page.count)
    assert page.next is not None
    behind = await chosen(watched, ListNodes(id="7", state=["done", "failed"], limit=5, page=page.next))
    assert ([2, 3], None) == ([*behind.nodes], behind.next)
    assert [1] == [*(await chosen(watched, ListNodes(id="7", name="w*k"))).nodes]
    assert [3, 4] == [*(await chosen(watched, ListNodes(id="7", name="s*"))).nodes]
    assert [] == [*(await chosen(watched, ListNodes(id="7", name="[sw]*"))).nodes]
    with pytest.raises(RequestRefused, match="another question"):
        await chosen(watched, ListNodes(id="7", page=page.next))


def test_a_workflow_is_its_owners_and_administrators() -> None:
    """Nobody else may look at it."""
    access().require_may_look(asked(ADA, ListWorkflows()), "ada", "7")
    access().require_may_look(asked(ROOT, ListWorkflows()), "ada", "7")
    with pytest.raises(RequestRefused, match="workflow 7 is eve's"):
        access().require_may_look(asked(ADA, ListWorkflows()), "eve", "7")


class _Tables:
    """Tables in which ada has submitted cluster 7."""

    @asynccontextmanager
    async def read(self) -> AsyncGenerator["_Tables"]:
        yield self

    async def frames(self) -> dict[str, int]:
        return {"schedd.ap": 1}

    async def fetch(self, _query: str, *_arguments: object) -> list[dict[str, str]]:
        return [{"shard": "schedd.ap", "owner": "ada"}]


async def test_no_workflow_is_read_for_who_may_not_look_at_it() -> None:
    """It may be large, and be over for long; also who watches its page is refused before."""
    told = Told(100)
    found = WorkflowAccess(
        cast("JobTables", _Tables()), WorkflowViews(cast("Bus", told)), lambda _who, _level: False
    )
    eve = asked(Person(local("eve"), Mapped(owner="eve", domain="pool")), ListWorkflows())
    for refused in (
        found.watched(eve, "7"),
        found.watched(eve, "7@ap"),
        WorkflowWatch(found, eve, "7", cast("Watch", None)).behind({}),
    ):
        with pytest.raises(RequestRefused, match="is ada's"):
            await refused
    assert [] == told.asked


@pytest.mark.parametrize(
    ("state", "ad", "is_found"),
    [
        ("running", {}, True),
        ("running", {"DAG_Status": 6}, False),
        ("halted", {"DAG_Status": 6}, True),
        ("failed", {"JobStatus": 4, "ExitCode": 1}, True),
        ("done", {"JobStatus": 4, "ExitCode": 1}, False),
        ("done", {"JobStatus": 3, "ExitCode": 0, "CompletionDate": 9}, True),
        ("removed", {"JobStatus": 3, "ExitCode": 0, "CompletionDate": 9}, False),
        ("removed", {"JobStatus": 3, "CompletionDate": 0}, True),
        ("removed", {"JobStatus": 3}, True),
        ("running", {"JobUniverse": 5}, False),
    ],
)
def test_lists_find_workflows_by_their_dag_jobs(state: WorkflowStateName, ad: Ad, *, is_found: bool) -> None:
    """The filter that lists of jobs are given has workflows of that state, and no other jobs."""
    wanted = Filters(KnownAttributes()).read(filter_of([state], "A.dag"))
    assert wanted is not None
    assert is_found == wanted.holds(DAG_JOB | ad)


def test_what_has_ended_stays_so_when_it_leaves_its_queue() -> None:
    """A DAG job that has ended and is removed then is shown with what it came to, and when that was."""
    ended: dict[str, Any] = {
        "id": "7.0@ap", "schedd": "ap", "cluster": 7, "proc": 0, "owner": "ada", "state": "removed", "exit_code": 1,
        "submitted": "2026-11-25T14:00:00Z", "left": "2026-11-25T15:00:00Z",
    }  # fmt: skip
    removed = of_job(msgspec.convert(ended | {"exit_code": None}, Job))
    failed = of_job(msgspec.convert(ended | {"attributes": {"CompletionDate": 1}}, Job))
    assert ("removed", "failed") == (removed.state, failed.state)
    assert ("15:00:00", "00:00:01") == tuple(f"{each.ended:%H:%M:%S}" for each in (removed, failed))


@pytest.mark.parametrize(
    ("name", "is_found"), [("a.d", True), ("aXd", False), (".*", False), ('"', False), ("\\", False)]
)
def test_a_name_is_no_pattern(name: str, *, is_found: bool) -> None:
    """What somebody types is a part of a name and nothing else."""
    wanted = Filters(KnownAttributes()).read(filter_of([], name))
    assert wanted is not None
    assert is_found == wanted.holds(DAG_JOB)


async def test_lists_go_on_from_the_queues_to_the_history() -> None:
    """
    Pages end where their limit is, in either, and one's own are listed unless an administrator names others.
    """
    there = {"queue": [3, 2], "history": [9, 8]}
    questions: list[ListJobs | ListHistory] = []

    async def listing(one: Asked) -> Answer:
        parameters = one.parameters
        questions.append(parameters)
        numbers = there["queue" if isinstance(parameters, ListJobs) else "history"]
        first = int(parameters.page or 0)
        page = numbers[first : first + parameters.limit]
        following = str(first + len(page)) if first + len(page) < len(numbers) else None
        return Answer(Jobs(jobs=[job(number) for number in page], next=following))

    def job(number: int) -> Job:
        return msgspec.convert(
            {
                "id": f"{number}.0@ap", "schedd": "ap", "cluster": number, "proc": 0, "owner": "ada", "state": "running",
                "submitted": "2026-11-25T14:00:00Z", "attributes": {"JobBatchName": "x", "DAG_NodesTotal": 3, "DAG_NodesDone": 2},
            },
            Job,
        )  # fmt: skip

    unasked = cast("Freshness", SimpleNamespace())
    workflows = WorkflowQuestions(cast("Bus", None), access(), listing, listing, unasked)
    found: list[int] = []
    token = ""
    while True:
        answer = await workflows.workflows(asked(ADA, ListWorkflows(limit=3, page=token)))
        assert isinstance(answer.reply, Workflows)
        found += [each.cluster for each in answer.reply.workflows]
        if answer.reply.next is None:
            break
        token = answer.reply.next
    assert [3, 2, 9, 8] == found
    assert all(["ada"] == each.owner for each in questions)
    assert {"done": 2} == of_job(job(1)).counts
    with pytest.raises(RequestRefused, match="for administrators"):
        await workflows.workflows(asked(ADA, ListWorkflows(owner=["*"])))
    await workflows.workflows(asked(ROOT, ListWorkflows(owner=["*"])))
    assert [] == questions[-1].owner


def test_events_are_told_with_names() -> None:
    """What is recorded by numbers is told by names, and reasons stand at what they are about."""
    told = [
        happening(number, START + after, event, PLAN.names) for number, (after, event) in enumerate(STORY, 1)
    ]
    assert [*range(1, len(STORY) + 1)] == [each.number for each in told]
    held = [job for each in told for job in each.jobs if job.what == "held"]
    assert [("send", "14.0", "No room")] == [(each.node, each.job, each.reason) for each in held]
    assert ("check", "failed", 3) == next(
        (node.node, node.state, node.value) for each in told for node in each.nodes if node.state == "failed"
    )
    assert ("workflow.ended/1", "node_failed", 1) == (told[-1].type, told[-1].status, told[-1].exit_code)
    assert ("ada", "x.dag") == (told[0].by, told[0].reason)


class _Sent:
    """A request with a text, as it comes."""

    content_type = "text/plain"
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, text: str) -> None:
        self.text = text

    async def read(self) -> bytes:
        return self.text.encode()


@pytest.mark.parametrize(
    ("text", "faults", "sentence"),
    [
        ("X\n" * 10_000, 1_000, "no more are looked for"),
        ("JOB A {\nqueue\n}\n" + "".join(f'VARS A x{n}="1"\n' for n in range(6_000)), 1, "times"),
    ],
)
async def test_a_text_that_is_sent_is_read_within_bounds(text: str, faults: int, sentence: str) -> None:
    """A text of any kind is looked at for seconds at most, and what is not read of it is told."""
    new = NewWorkflows(cast("PersonConnections", None), cast("DagJobs", None))
    request = cast("web.Request", _Sent(text))
    with pytest.raises(RequestRefused) as refused:
        await new.submit(Asked(ADA, SubmitWorkflow(dry_run=True), None, request, headers={}))
    assert faults == len(refused.value.errors)
    assert sentence in refused.value.errors[-1].detail
