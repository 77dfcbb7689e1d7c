"""What one end of a tunnel knows of a stream. Pure."""

from collections import deque

from kettle.published.flow import Incoming
from kettle.published.frames import FIRST_WINDOW


class StreamState:
    """Both directions of one stream."""

    __slots__ = (
        "backlog",
        "credit",
        "ends",
        "got_end",
        "incoming",
        "opening",
        "queued",
        "sent_end",
        "waiting",
    )

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        self.opening = True
        """Whether it is not answered yet."""
        self.credit = FIRST_WINDOW
        """Bytes that we may send."""
        self.backlog: deque[memoryview] = deque()
        """Written, and not sent."""
        self.waiting = 0
        """Bytes in it."""
        self.queued = False
        """Whether it is in the queue of turns."""
        self.ends = False
        """Whether nothing is written any more."""
        self.sent_end = False
        self.got_end = False
