"""What a starter's process keeps of one job while it waits for the next."""

import gc
import socket
import weakref
from collections.abc import Generator

import pytest

from kettle.execution.attempts.messages import EndJob, Renew, RunJob, frame
from kettle_services.starter import job_loop
from kettle_services.starter.reports.final import StarterProcess
from kettle_services.starter.reports.startd_connection import StartdConnection

from .test_signed_urls import spec


@pytest.fixture
def ends() -> Generator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_nothing_of_a_job_is_left_for_the_next(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nobody else collects garbage in such a process, and a starter refers to itself."""
    left: list[weakref.ref[object]] = []
    alive: list[int] = []

    class Circular:
        """A starter that is its own."""

        def __init__(self, _supervisor: StarterProcess, order: RunJob, *, last: bool) -> None:
            alive.append(sum(one() is not None for one in left))
            self._own = self._order = self, order
            left.append(weakref.ref(self))
            assert not last

        def run_job(self) -> bool:
            return len(left) < 3

    monkeypatch.setattr(job_loop, "Starter", Circular)
    ours, theirs = ends
    ours.sendall(frame(RunJob(spec([]))) * 3)
    gc.disable()
    try:
        job_loop.run_starter(theirs, -1)
    finally:
        gc.enable()
    assert [0, 0, 0] == alive


def test_what_came_with_an_order_is_heard(ends: tuple[socket.socket, socket.socket]) -> None:
    """Without anything more having to come."""
    ours, theirs = ends
    line = StartdConnection(theirs)
    ours.sendall(frame(RunJob(spec([]))) + frame(Renew(1.0)) + frame(EndJob(1023, "removed")))

    assert isinstance(line.order(-1), RunJob)
    assert 2 == len(line.heard)
    assert [Renew(1.0), EndJob(1023, "removed")] == list(line.receive())
    assert not line.heard
