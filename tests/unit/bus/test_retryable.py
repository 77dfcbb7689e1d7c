"""Which failures of a request may pass."""

import pytest

from kettle.bus.ports import (
    BusError,
    BusUnavailableError,
    NoResponderError,
    RefusedError,
    ReplyTimeoutError,
    WrongSequenceError,
)
from kettle.bus.retryable import retry_after, retryable, unheard, unless_refused

BUSY = RefusedError("busy", "not now", retry_after_ms=250)
NO = RefusedError("not_permitted", "never")


@pytest.mark.parametrize("error", [BusUnavailableError("-"), NoResponderError("-"), ReplyTimeoutError("-")])
def test_silence_may_pass(error: Exception) -> None:
    """A silent service may answer, or has answered and was not heard."""
    assert unheard(error)
    assert retryable(error)
    assert unless_refused(error)


def test_a_refusal_passes_if_it_says_so() -> None:
    """By its code; any other is an answer."""
    assert (True, True, False) == (retryable(BUSY), unless_refused(BUSY), unheard(BUSY))
    assert (False, False, False) == (retryable(NO), unless_refused(NO), unheard(NO))


def test_what_else_goes_wrong_is_repeated_only_by_whoever_has_to_be_heard() -> None:
    """It may be our own mistake."""
    for error in (WrongSequenceError("-", expected=1), BusError("-")):
        assert (False, True) == (retryable(error), unless_refused(error))
    assert not unless_refused(ValueError())


def test_a_service_may_say_when_to_come_back() -> None:
    """In seconds; 0 if it does not say."""
    assert [0.25, 0.0, 0.0] == [retry_after(each) for each in (BUSY, NO, NoResponderError("-"))]
