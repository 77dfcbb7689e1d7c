"""
What goes wrong in a tunnel.

    TunnelError
        ProtocolViolation        the other side sent what the protocol forbids: the connection ends
        TunnelClosedError        the connection is over
        StreamRefusedError       the job's side does not connect the stream; with a code
"""

from enum import StrEnum


class StreamCode(StrEnum):
    """Why a stream is refused; programs may rely on these."""

    NO_SUCH_SERVICE = "no_such_service"
    """The job publishes none of that name."""
    NOTHING_LISTENS = "nothing_listens"
    """No process listens on the port, or not yet."""
    NOT_OF_THIS_JOB = "not_of_this_job"
    """Processes listen on the port, and none of them is of the job."""
    SUSPENDED = "suspended"
    """The job is, and would not answer."""
    TOO_MANY = "too_many"
    """There are as many streams as a tunnel carries."""
    UNREACHABLE = "unreachable"
    """The port could not be connected to for another reason."""


class TunnelError(Exception):
    """Something is wrong with a tunnel; the text is one sentence."""


class ProtocolViolation(TunnelError):  # noqa: N818 - a name of the trade
    """The other side has sent what it must not send."""


class TunnelClosedError(TunnelError, ConnectionError):
    """The connection is over, or is not taken any more."""


class StreamRefusedError(TunnelError):
    """The job's side does not connect the stream."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
