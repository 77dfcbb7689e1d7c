"""
What a pilot says that it runs for others, and that it is over, on the stream `payload/<cluster>.<proc>` of the compute entrypoint by
which the pilot came.
"""

from kettle_wire.events.base import Event
from kettle_wire.payloads import Payload


class PayloadBegun(Event, frozen=True, tag="payload.begun/1"):
    """A pilot has begun something for somebody."""

    by: str
    """Whose job the pilot is."""
    payload: Payload


class PayloadOver(Event, frozen=True, tag="payload.over/1"):
    """It has ended, by the pilot's word."""

    by: str
    name: str
    """The payload's."""
    exit_code: int | None = None
    """None: not known."""


class PilotOver(Event, frozen=True, tag="pilot.over/1"):
    """The pilot does not run any more, and nothing in it: what it has not said to be over is over with it."""

    by: str
    gone: bool = False
    """It has left the queue, and will never report again."""


PayloadEvent = PayloadBegun | PayloadOver | PilotOver
