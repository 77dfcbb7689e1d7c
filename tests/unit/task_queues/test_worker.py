"""What a worker does with its lanes; it is a program that stands alone."""

import os
import pickle
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kettle.task_queues.kettle_task_worker import Worker

WALL = 60.0


class Loading:
    """A function whose loading reads a pipe to its end, and then does what it read."""

    def __init__(self, pipe: Path) -> None:
        self.pipe = pipe

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return eval, (f"eval(open({str(self.pipe)!r}).read())",)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    return pipe


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, pipe: Path) -> Iterator[Worker]:
    """It has two calls of a function whose loading takes as long as the test wants."""

    def nobody(_config: str) -> None:
        """It asks nothing here."""

    monkeypatch.setattr("kettle.task_queues.kettle_task_worker.Asking", nobody)
    worker = Worker("", 1, sys.executable, 60.0)
    worker.plan = {"kind": "functions", "wall": WALL, "output": 100}
    worker.function = pickle.dumps(Loading(pipe))
    worker.waiting.extend((1, number, pickle.dumps((-number,))) for number in (1, 2))
    worker.feed()
    yield worker
    worker.drop()


def work(worker: Worker, until: Callable[[], bool]) -> None:
    """Feed and hear its lane, until something is so."""
    while not until():
        worker.feed()
        [lane] = worker.lanes
        select.select([lane.socket], [], [])
        worker.hear(lane)


def test_a_limit_of_calls_is_none_of_loading_their_function(worker: Worker, pipe: Path) -> None:
    """Its time begins when the function is there, and each call has all of it."""
    worker.end_late_ones(time.monotonic() + 2 * WALL)
    assert [] == worker.done
    pipe.write_text("abs")
    work(worker, lambda: len(worker.done) == 2)
    assert [1, 2] == [pickle.loads(each.output) for each in worker.done]
    assert [0, 0] == [each.exit for each in worker.done]


def test_a_call_that_takes_too_long_is_ended(worker: Worker, pipe: Path) -> None:
    """Its lane is, and the function is loaded once more for the next one."""
    pipe.write_text(f"lambda _: open({str(pipe)!r}).read()")
    work(worker, lambda: worker.lanes[0].loaded)
    worker.end_late_ones(time.monotonic() + 2 * WALL)
    assert [(1, "it was killed after 60 s, its time limit")] == [
        (each.number, each.reason) for each in worker.done
    ]
    worker.feed()
    pipe.write_text("abs")
    work(worker, lambda: len(worker.done) == 2)
    assert 2 == pickle.loads(worker.done[1].output)


def test_loading_without_end_fails_calls(worker: Worker) -> None:
    """One after the other, with the reason: no lease ends of a worker that goes on asking."""
    worker.end_late_ones(time.monotonic() + 1_000.0)
    assert [(1, 0, "the function was not loaded in 600 s")] == [
        (each.number, each.wall, each.reason) for each in worker.done
    ]


def test_loading_that_ends_its_process_fails_a_call(worker: Worker, pipe: Path) -> None:
    """It is not said that the call did so."""
    pipe.write_text("__import__('os')._exit(3)")
    work(worker, lambda: bool(worker.done))
    assert (3, "loading the function ended its process (exit code 3)") == (
        worker.done[0].exit,
        worker.done[0].reason,
    )
