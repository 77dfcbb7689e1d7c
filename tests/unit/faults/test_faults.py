"""Places at which a test makes a process die."""

import os
import signal
from collections.abc import Iterator

import pytest

from kettle import faults


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[signal.Signals]]:
    """The signals that this process would have got."""
    sent: list[signal.Signals] = []

    def kill(_pid: int, number: signal.Signals) -> None:
        sent.append(number)

    monkeypatch.setattr(os, "kill", kill)
    yield sent
    faults.arm({})


def test_a_forked_process_has_the_faults_of_its_own_variables(killed: list[signal.Signals]) -> None:
    """Faults of the process before it are forgotten, with the times that it has passed a place."""
    faults.arm({faults.VARIABLE: "append.before=kill@2,append.committed=stop"})
    faults.fault_point("append.before")
    faults.fault_point("append.committed")
    assert [signal.SIGSTOP] == killed
    faults.arm({faults.VARIABLE: "append.before=kill@2"})
    faults.fault_point("append.before")
    faults.fault_point("append.committed")
    assert [signal.SIGSTOP] == killed
    faults.fault_point("append.before")
    assert [signal.SIGSTOP, signal.SIGKILL] == killed


def test_a_place_that_does_not_exist_is_refused(killed: list[signal.Signals]) -> None:
    """What a process has is then what it had."""
    faults.arm({faults.VARIABLE: "append.before=kill"})
    with pytest.raises(ValueError, match=r"'append\.later=kill'"):
        faults.arm({faults.VARIABLE: "append.later=kill"})
    faults.fault_point("append.before")
    assert [signal.SIGKILL] == killed
