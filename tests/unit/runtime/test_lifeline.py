import os
import threading

import pytest

from kettle.runtime import lifeline, make_lifeline
from kettle.testing.patience import PATIENCE_S


def test_end_of_the_master_is_noticed() -> None:
    """When the last write end closes, the service is told first and ended then."""
    said: list[str] = []
    line = make_lifeline()
    fd = os.dup(line.read_fd)
    thread = lifeline.watch(
        fd, lambda: said.append("orphaned"), grace=0, die=lambda status: said.append(f"died {status}")
    )
    assert said == []
    line.close()
    thread.join(PATIENCE_S)
    os.close(fd)
    assert said == ["orphaned", f"died {lifeline.EXIT_ORPHANED}"]
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_orderly_attempt_that_fails_changes_nothing() -> None:
    """The process ends even if telling it to goes wrong."""
    died = threading.Event()
    line = make_lifeline()
    fd = os.dup(line.read_fd)

    def fail() -> None:
        raise RuntimeError("boom")

    thread = lifeline.watch(fd, fail, grace=0, die=lambda _status: died.set())
    line.close()
    thread.join(PATIENCE_S)
    os.close(fd)
    assert died.is_set()


def test_ends_are_not_inherited_by_accident() -> None:
    """Only a child that is meant to gets the read end, and no child ever gets the write end."""
    line = make_lifeline()
    try:
        assert not os.get_inheritable(line.read_fd)
        assert not os.get_inheritable(line.write_fd)
        os.set_inheritable(line.read_fd, True)
        assert line.read_fd == lifeline.inherited(line.environ())
        assert not os.get_inheritable(line.read_fd)
    finally:
        line.close()


def test_without_a_master_there_is_no_lifeline() -> None:
    """No variable, no lifeline; a variable that means nothing is refused."""
    assert lifeline.inherited({}) is None
    with pytest.raises(ValueError, match="KETTLE_LIFELINE_FD=9999: not an open file descriptor"):
        lifeline.inherited({"KETTLE_LIFELINE_FD": "9999"})
