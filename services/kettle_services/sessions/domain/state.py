"""What the events of a service of interactive sessions come to: all of its sessions, and all task queues."""

from typing import Final

from kettle.eventsourcing.stream_states import Streams, StreamStates
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_services.sessions.domain.task_queues.queue import TaskQueue, TaskTexts, evolve_texts
from kettle_services.sessions.domain.task_queues.queue import evolve as evolve_queue

STREAM: Final = "session/"
QUEUE: Final = "queue/"
TEXTS: Final = "tasks/"


class SessionsState(StreamStates):
    """Everything that the service has recorded and needs for its next decision."""

    def __init__(self) -> None:
        self.sessions: Final = Streams(InteractiveSession, evolve)
        self.queues: Final = Streams(TaskQueue, evolve_queue)
        self.texts: Final = Streams(TaskTexts, evolve_texts)
        super().__init__({"session": self.sessions, "queue": self.queues, "tasks": self.texts})


def texts_stream(queue: str, part: int) -> str:
    """The stream of the texts of one part of a queue."""
    return f"{TEXTS}{queue}.{part}"
