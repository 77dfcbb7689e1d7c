"""Which failures of a request may pass, so that the same request is worth sending again."""

from typing import Final

from kettle.bus.ports import BusError, BusUnavailableError, NoResponderError, RefusedError, ReplyTimeoutError
from kettle_wire.codes import NOT_NOW

UNHEARD: Final = (BusUnavailableError, NoResponderError, ReplyTimeoutError)
"""
Nobody has heard the request, or nobody has heard the answer. Nobody listens, too, where a bucket of a cluster has no leader
at the moment.
"""


def unheard(error: Exception) -> bool:
    """Whether no answer has come: what a service refuses is one."""
    return isinstance(error, UNHEARD)


def retryable(error: Exception) -> bool:
    """Whether no answer has come, or the answer was: not now."""
    return error.code in NOT_NOW if isinstance(error, RefusedError) else isinstance(error, UNHEARD)


def unless_refused(error: Exception) -> bool:
    """Whether the answer was not a no for good: for what has to be said whatever goes wrong on the way."""
    return error.code in NOT_NOW if isinstance(error, RefusedError) else isinstance(error, BusError)


def retry_after(error: Exception) -> float:
    """After how many seconds a service wants to be asked again; 0: it did not say."""
    return error.retry_after_ms / 1000 if isinstance(error, RefusedError) else 0.0
