"""Questions of starters on their way through the startd to a shadow, and back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from kettle.bus.ports import Bus, RefusedError, ReplyTimeoutError
from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import Question, Reply, Unanswered
from kettle_services.startd.access_point import questions as startd_questions
from kettle_services.startd.access_point.questions import QuestionRelay
from kettle_wire.commands.chirp import Chirped, Note
from kettle_wire.commands.questions import Answered, Ask, Commanded, OnNode, SignedUrls, SignUrls
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

pytestmark = pytest.mark.asyncio
ONE, OTHER = (AttemptId(name, JobId(1, 0), 1) for name in ("a", "b"))


class Shadow:
    """A bus on which a shadow answers, or does not."""

    def __init__(self, answer: Callable[[Ask], Awaitable[Answered]]) -> None:
        self._answer = answer

    async def call(self, _endpoint: Any, _name: str, request: Ask, *, deadline: float) -> Answered:
        del deadline
        return await self._answer(request)


def questions(
    answer: Callable[[Ask], Awaitable[Answered]], tasks: asyncio.TaskGroup
) -> tuple[QuestionRelay, list[tuple[AttemptId, Reply]]]:
    """What passes them on, and the replies that starters heard."""
    heard: list[tuple[AttemptId, Reply]] = []

    def key(attempt: AttemptId) -> ClaimKey:
        return ClaimKey(attempt.claim, "secret")

    def reply(attempt: AttemptId, said: Reply) -> None:
        heard.append((attempt, said))

    return QuestionRelay(cast("Bus", Shadow(answer)), tasks, key=key, reply=reply), heard


async def test_each_job_has_one_question_in_hand() -> None:
    """
    In their order; those that are far too many are put off, and the questions of another job do not wait.
    """
    begun: list[Ask] = []
    gate = asyncio.Event()

    async def answer(ask: Ask) -> Answered:
        begun.append(ask)
        await gate.wait()
        return Answered(Chirped(7))

    async with asyncio.TaskGroup() as tasks:
        asked, heard = questions(answer, tasks)
        for number in range(1000):
            asked.add(ONE, Question(number, "shadow", Note(str(number))))
        asked.add(OTHER, Question(0, "shadow", Note("x")))
        await asyncio.sleep(0)
        assert ["a", "b"] == [ask.key.claim for ask in begun]
        late = [reply.number for _, reply in heard]
        assert 900 < len(late) < 1000
        assert {"later"} == {cast("Unanswered", reply.answer).why for _, reply in heard}
        gate.set()

    ours = [int(cast("Note", ask.question).text) for ask in begun if ask.key.claim == "a"]
    assert list(range(1000 - len(late))) == ours
    assert list(range(1000)) == sorted(ours + late)
    assert {Chirped(7)} == {reply.answer for _, reply in heard[len(late) :]}


async def test_what_is_said_again_is_asked_once() -> None:
    """
    Given a question that waits, when its starter repeats it, then the shadow gets it once; after the answer, it may be
    asked again.
    """
    begun: list[Ask] = []

    async def answer(ask: Ask) -> Answered:
        begun.append(ask)
        return Answered(SignedUrls(["signed"]))

    async with asyncio.TaskGroup() as tasks:
        asked, heard = questions(answer, tasks)
        for _ in range(3):
            asked.add(ONE, Question(1, "shadow", SignUrls(["s3://b/o"])))
    async with asyncio.TaskGroup() as tasks:
        asked, again = questions(answer, tasks)
        asked.add(ONE, Question(1, "shadow", SignUrls(["s3://b/o"])))

    assert [(ONE, Reply(1, SignedUrls(["signed"])))] == heard == again
    assert 2 == len(begun)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        *((RefusedError(code, "no, never"), "refused") for code in ("denied", "malformed", "too_large")),
        *(
            (RefusedError(code, "not now"), "later")
            for code in ("busy", "not_found", "stopping", "unavailable")
        ),
        (ReplyTimeoutError("nobody there"), "offline"),
    ],
)
async def test_no_answer_has_a_reason(monkeypatch: pytest.MonkeyPatch, error: Exception, why: str) -> None:
    """A starter can tell what it may ask again from what nothing will change."""
    monkeypatch.setattr(startd_questions, "_PATIENCE_S", 0.0)

    async def answer(_ask: Ask) -> Answered:
        raise error

    async with asyncio.TaskGroup() as tasks:
        asked, heard = questions(answer, tasks)
        asked.add(ONE, Question(3, "shadow", SignUrls(["s3://b/o"])))

    (told,) = (reply.answer for _, reply in heard)
    assert isinstance(told, Unanswered)
    assert (why, str(error)) == (told.why, told.reason)


async def test_a_shadow_that_starts_anew_is_waited_for() -> None:
    """
    It does not know its jobs at once: what it refuses for the moment is asked again, and nothing else is.
    """
    refusals = [RefusedError("not_found", "what job?")]

    async def answer(_ask: Ask) -> Answered:
        if refusals:
            raise refusals.pop()
        return Answered(Chirped())

    async with asyncio.TaskGroup() as tasks:
        asked, heard = questions(answer, tasks)
        asked.add(ONE, Question(1, "shadow", Note("x")))

    assert [(ONE, Reply(1, Chirped()))] == heard


async def test_programs_on_other_nodes_do_not_wait_for_each_other() -> None:
    """
    Each is asked about by itself, in order, while another waits for output; those that are far too many are put off.
    """
    begun: list[OnNode] = []
    gate = asyncio.Event()

    async def answer(ask: Ask) -> Answered:
        assert isinstance(ask.question, OnNode)
        begun.append(ask.question)
        if ask.question.node == 0:
            await gate.wait()
        return Answered(Commanded())

    def on_node(number: int, node: int) -> Question:
        return Question(number, "shadow", OnNode(node=node, session=str(node), verb="exchange", after=number))

    async with asyncio.TaskGroup() as tasks:
        asked, heard = questions(answer, tasks)
        for number in range(3):
            asked.add(ONE, on_node(number, 0))
            asked.add(ONE, on_node(10 + number, 1))
        while len(heard) < 3:
            await asyncio.sleep(0)
        assert [10, 11, 12] == [reply.number for _, reply in heard]
        assert [0] == [question.after for question in begun if question.node == 0]
        for number in range(1000):
            asked.add(ONE, on_node(100 + number, 2 + number))
        late = sum(isinstance(reply.answer, Unanswered) for _, reply in heard)
        assert 300 < late < 1000
        gate.set()

    assert [0, 1, 2] == [question.after for question in begun if question.node == 0]
