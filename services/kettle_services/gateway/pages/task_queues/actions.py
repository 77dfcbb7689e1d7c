"""What is done to a task queue from its page."""

from typing import Annotated, Final

import msgspec

from kettle_services.gateway.pages.notices import Notice, refused
from kettle_services.gateway.pages.page import Form, Led
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.task_queues import CANCEL_QUEUE, CancelQueue, Queue, QueuePlace


class WhichQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task queue."""

    queue: QueuePlace


class CancelForm(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent."""

    reason: Annotated[str, msgspec.Meta(max_length=256)] = ""


CANCEL: Final = Form(
    "/task-queues/{queue}/cancel",
    "Task queue",
    fields=CancelForm,
    parameters=WhichQueue,
    template="problem.html",
)


class QueueActions:
    """Carries them out."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def cancel(self, asked: Asked) -> Led:
        """End it, and go back to its page; its workers, which have nothing to do then, end by themselves."""
        form: CancelForm = asked.body
        which: WhichQueue = asked.parameters
        place = f"/task-queues/{which.queue}"
        try:
            await self._questions.ask(
                asked, CANCEL_QUEUE, CancelQueue(id=which.queue, reason=form.reason), Queue
            )
        except RequestRefused as refusal:
            return Led(place, notice=refused(refusal))
        return Led(place, notice=Notice(said=["The queue is cancelled; what ran of it is being ended."]))
