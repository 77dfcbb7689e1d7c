"""
What starters ask of the submit side: carried to the shadow that looks after the job, and its answer back.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import Question, Reply, Unanswered
from kettle.retry.backoff import steady
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.commands.questions import Answer, Ask, OnNode
from kettle_wire.commands.shadow import ANSWER
from kettle_wire.commands.startd import ClaimKey

_log: Final = logging.getLogger(__name__)
_DEADLINE_S: Final = 30.0
_PATIENCE_S: Final = 15.0
"""How long a shadow may not know the job: it may just have been restarted, or have too much in hand."""
_BACKOFF: Final = steady(0.5)
_PASSING: Final = NOT_NOW | {RefusalCode.NOT_FOUND}
"""Refusals that another try may change: a shadow that was restarted does not know its jobs at once."""
_MOST_WAITING: Final = 64
"""Questions of one lane of a job; its starter has fewer in hand."""
_MOST_LANES: Final = 600
"""Lanes of one job: a launcher has one for each node that it reaches itself."""
_BUSY: Final = Unanswered("later", "too many questions of the job wait for an answer")

_Lane = tuple[AttemptId, str]
"""An attempt, and the program on another node that a question is about: for its output it is asked long, which delays no other."""


class QuestionRelay:
    """
    Asked one by one for each attempt, in their order, and so about each program on another node; `key` is what an attempt's claim is known by, None if it is over.
    """

    def __init__(
        self,
        bus: Bus,
        tasks: asyncio.TaskGroup,
        *,
        key: Callable[[AttemptId], ClaimKey | None],
        reply: Callable[[AttemptId, Reply], None],
    ) -> None:
        self._bus = bus
        self._tasks = tasks
        self._key = key
        self._reply = reply
        self._waiting: dict[_Lane, deque[Question]] = {}
        """The first one of each is being asked."""
        self._lanes: Counter[AttemptId] = Counter()
        self._working: set[asyncio.Task[None]] = set()

    def add(self, attempt: AttemptId, question: Question) -> None:
        """Have it asked in its turn; said again while it waits, it is asked once."""
        lane = attempt, question.asks.session if isinstance(question.asks, OnNode) else ""
        waiting = self._waiting.get(lane)
        if waiting is None:
            if self._lanes[attempt] >= _MOST_LANES:
                self._reply(attempt, Reply(question.number, _BUSY))
                return
            self._lanes[attempt] += 1
            self._waiting[lane] = deque([question])
            task = self._tasks.create_task(self._work(lane), name=f"questions {attempt.name}")
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        elif any(known.number == question.number for known in waiting):
            return
        elif len(waiting) < _MOST_WAITING:
            waiting.append(question)
        else:
            self._reply(attempt, Reply(question.number, _BUSY))

    def close(self) -> None:
        """Ask nothing any more."""
        for task in self._working:
            task.cancel()

    async def _work(self, lane: _Lane) -> None:
        attempt, waiting = lane[0], self._waiting[lane]
        try:
            while waiting:
                question = waiting[0]
                if (key := self._key(attempt)) is not None:
                    self._reply(attempt, Reply(question.number, await self._ask(key, attempt, question)))
                waiting.popleft()
        finally:
            del self._waiting[lane]
            self._lanes[attempt] -= 1
            if not self._lanes[attempt]:
                del self._lanes[attempt]

    async def _ask(self, key: ClaimKey, attempt: AttemptId, question: Question) -> Answer | Unanswered:
        """Nothing is asked twice that may have been done: only what was refused for the moment is."""
        request = Ask(key=key, job=attempt.job, attempt=attempt.attempt, question=question.asks)
        try:
            said = await retry(
                lambda: self._bus.call(ANSWER, question.shadow, request, deadline=_DEADLINE_S),
                _BACKOFF,
                retryable=_passes,
                deadline=Deadline(_PATIENCE_S),
            )
        except RefusedError as refusal:
            _log.info("not answered", extra={"job": str(attempt.job), "cause": str(refusal)})
            return Unanswered("later" if _passes(refusal) else "refused", str(refusal))
        except BusError as error:
            _log.info("shadow not reached", extra={"job": str(attempt.job), "cause": str(error)})
            return Unanswered("offline", str(error))
        return said.answer


def _passes(error: Exception) -> bool:
    return isinstance(error, RefusedError) and error.code in _PASSING
