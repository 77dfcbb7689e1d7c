"""What the events of a service of interactive sessions come to: all of its sessions."""

from typing import Final

from kettle.eventsourcing.stream_states import Streams, StreamStates
from kettle_services.sessions.domain.session import InteractiveSession, evolve

STREAM: Final = "session/"


class SessionsState(StreamStates):
    """Everything that the service has recorded and needs for its next decision."""

    def __init__(self) -> None:
        self.sessions: Final = Streams(InteractiveSession, evolve)
        super().__init__({"session": self.sessions})
