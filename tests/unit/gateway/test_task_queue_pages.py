"""The pages of task queues, without a browser."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.page import Led
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.task_queues.actions import CancelForm, QueueActions, WhichQueue
from kettle_services.gateway.pages.task_queues.list_page import AskedQueues, QueueRow, QueuesView, counts_of
from kettle_services.gateway.pages.task_queues.queue_page import (
    AskedQueue,
    TaskQueuePage,
    TaskQueuePageView,
    TaskSeen,
    in_words,
    rate_of,
)
from kettle_services.gateway.pages.workflows.drawing import parts_of
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.task_queues import CancelQueue, Queue, QueueBatch, QueueTask, QueueWorker
from kettle_wire.task_queues import TaskColumns, TaskPlan, TaskRange, TaskState

from .rendered import TEMPLATES

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
EVIL = "<script>alert(1)</script>"


def frame(**more: Any) -> Frame:
    return Frame(
        title="Task queues", path="/task-queues", query={}, now=NOON, assets=Assets().addresses, **more
    )


def queue(**more: Any) -> Queue:
    made = Queue(
        id="0123456789ab",
        name="fits",
        owner="ada",
        plan=TaskPlan(),
        state="closed",
        created=NOON,
        tasks=1000,
        waiting=500,
        running=100,
        done=390,
        failed=10,
        cancelled=0,
        again=0,
        lost=0,
        wall=12.5,
        cpu=3.0,
    )
    return msgspec.structs.replace(made, **more)


def page(of: Queue, task: TaskSeen | None = None, no_task: str = "", **more: Any) -> str:
    view = TaskQueuePageView(
        asked=AskedQueue(queue=of.id),
        queue=of,
        parts=parts_of(counts_of(of)),
        rate=rate_of(of),
        task=task,
        no_task=no_task,
    )
    return TEMPLATES.render("task_queues/queue.html", frame(**more), view)


def test_all_queues_are_a_table_and_none_is_the_way_to_the_first() -> None:
    """Each has a bar, whose words say the same; without the service it is said that there is none."""
    of = queue(why=EVIL)
    rows = [QueueRow(queue=of, parts=parts_of(counts_of(of)))]
    html = TEMPLATES.render(
        "task_queues/list.html", frame(), QueuesView(asked=AskedQueues(), rows=rows, trouble="")
    )
    assert 'href="/task-queues/0123456789ab"' in html
    assert 'aria-label="390 done, 10 failed, 100 running, 500 waiting"' in html
    assert "<script>alert" not in html
    none = QueuesView(asked=AskedQueues(), rows=[], trouble="this pool has no <service>")
    html = TEMPLATES.render("task_queues/list.html", frame(), none)
    assert "This pool has no &lt;service&gt;." in html
    assert "kettle tasks submit" in html


def test_a_queue_says_how_far_it_is_and_who_works_for_it() -> None:
    """What others wrote is text; who may only look, and one that is over, have nothing to cancel."""
    workers = [QueueWorker(job="12.0", attempt=1, tasks=100, since=NOON)]
    plan = TaskPlan(kind="lines", program=[EVIL], wall=60.0, retries=1)
    html = page(queue(workers=workers, plan=plan, why=EVIL, again=3, lost=1), may_write=True)
    assert "<script>alert" not in html
    for said in (
        "<b>390</b> of 1\N{NARROW NO-BREAK SPACE}000 done",
        'href="/jobs/12.0"',
        "is killed after 1 min, is run again 1 time if it fails",
        "3 runs after a failure; 1 worker lost",
        "Cancel what is left of it",
    ):
        assert said in html, said
    assert "kettle tasks workers fits 2" in page(queue())
    over = queue(state="ended", outcome="done", ended=NOON + timedelta(seconds=2), waiting=0, running=0)
    for html in (page(over, may_write=True), page(queue())):
        assert "Cancel what is left" not in html
    assert "200 tasks a second" in page(over)


def test_one_task_is_shown_with_why_and_what_it_printed() -> None:
    """Also one that waits, and one that there is not."""
    columns = TaskColumns(
        tasks=[TaskRange(7, 7)], wall_us=[1_500_000], cpu_us=[20_000], outputs=[EVIL.encode()], cut=[0]
    )
    batch = QueueBatch(at=NOON, job="12.0", results=columns)
    task = QueueTask(
        queue="fits", task=7, state="failed", why=EVIL, job="12.0", tries=2, text=EVIL, result=batch
    )
    html = page(queue(), in_words(task))
    assert "<script>alert" not in html
    for said in (
        "20 ms of processors in 1.5 s",
        "It printed more than is kept.",
        "2 times",
        'href="/jobs/12.0"',
    ):
        assert said in html, said
    long = msgspec.structs.replace(columns, outputs=[b"<" * 64 * 1024])
    shown = in_words(
        msgspec.structs.replace(task, result=msgspec.structs.replace(batch, results=long), text="&" * 65_536)
    )
    html = page(queue(plan=TaskPlan(kind="lines", program=["'" * 4096] * 100)), shown)
    assert "kettle tasks show fits.7" in html
    assert len(html) < 100_000
    waits = in_words(QueueTask(queue="fits", task=8, state="waiting", why="no worker has it"))
    assert TaskSeen(task=waits.task) == waits
    assert "no worker has it" in page(queue(), waits)
    assert "There is no task 9." in page(queue(), no_task="there is no task 9")


class Watched:
    """A request whose page is watched, of a task that runs at first and is over then."""

    def __init__(self) -> None:
        self.kept: dict[object, object] = {}
        self.states = ["running", "done"]
        self.tasks = 0

    async def ask(self, *_asked: object) -> Queue:
        return queue()

    async def ask_or_say(self, *_asked: object) -> tuple[QueueTask, str]:
        self.tasks += 1
        return QueueTask(queue="fits", task=7, state=cast("TaskState", self.states.pop(0)), why="so"), ""


async def test_the_result_of_a_task_is_looked_for_once() -> None:
    """It is in the log, and does not change."""
    watched = Watched()
    asked = Asked(
        person=cast("Any", None),
        parameters=AskedQueue(queue="fits", task=7),
        body=None,
        request=cast("Any", watched.kept),
    )
    shown = TaskQueuePage(cast("Questions", watched))
    views = [cast("TaskQueuePageView", (await shown.show(asked)).view) for _ in range(4)]
    assert ["running", "done", "done", "done"] == [each.task and each.task.task.state for each in views]
    assert 2 == watched.tasks


class Questioned:
    """Takes what is asked of the interface, or refuses it."""

    def __init__(self, refusal: RequestRefused | None = None) -> None:
        self.asked: list[object] = []
        self._refusal = refusal

    async def ask(self, _asked: object, _route: object, parameters: object, _reply: object) -> None:
        self.asked.append(parameters)
        if self._refusal is not None:
            raise self._refusal


def sent() -> Asked:
    which = WhichQueue(queue="fits")
    form = CancelForm(reason="enough")
    return Asked(person=cast("Any", None), parameters=which, body=form, request=cast("Any", None))


async def cancelled(questions: Questioned) -> Led:
    return await QueueActions(cast("Questions", questions)).cancel(sent())


async def test_a_queue_is_cancelled_from_its_page() -> None:
    """With the reason; a refusal is said there if it is about what was sent, else it is a page of its own."""
    questions = Questioned()
    led = await cancelled(questions)
    assert ("/task-queues/fits", [CancelQueue(id="fits", reason="enough")]) == (led.path, questions.asked)
    assert led.notice is not None
    assert led.notice.said
    led = await cancelled(Questioned(RequestRefused(409, ProblemCode.BODY_INVALID, "it is over")))
    assert led.notice is not None
    assert ["It is over."] == led.notice.trouble
    with pytest.raises(RequestRefused, match="come later"):
        await cancelled(Questioned(RequestRefused(503, ProblemCode.BODY_INVALID, "come later")))
