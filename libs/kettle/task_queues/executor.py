"""
Functions called many times by jobs of a pool, from a program without an event loop.

    with SyncClient.connect() as pool:
        tasks = TaskExecutor(pool, WorkerJobs(workers=4, python=sys.executable))
        for value in tasks.map(fit, range(100_000)):
            ...
"""

import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kettle.client.jobs.submission import prepare
from kettle.client.task_results import TaskResult, results_of
from kettle.task_queues.reading import TasksError
from kettle.task_queues.worker_jobs import WorkerJobs, description
from kettle_wire.commands.task_queues import LONGEST_WAIT_S, TaskQueueView, TaskResultsPage
from kettle_wire.task_queues import LARGEST_FUNCTION, LONGEST_TASK, TaskPlan

if TYPE_CHECKING:
    from kettle.client.client import Client
    from kettle.client.sync import SyncClient

T = TypeVar("T")
_PROTOCOL: Final = 4
"""Of pickle: that of each Python that a worker may be."""


class TaskFailedError(Exception):
    """A call has failed; `result` is what is known of it, and its `output` the traceback."""

    def __init__(self, result: TaskResult) -> None:
        super().__init__(f"task {result.task} has failed: {result.reason or f'exit {result.exit}'}")
        self.result = result


class TaskExecutor:
    """Has functions called by jobs of a pool; each `map` is a task queue of its own, with its own workers."""

    def __init__(
        self, pool: "SyncClient", jobs: WorkerJobs | None = None, plan: TaskPlan | None = None
    ) -> None:
        """
        `plan`: limits of each call; its `output` is how long a pickled result may be.

        The interpreter of this program is that of the workers, unless `jobs` says otherwise: it has to be at the same place there.
        """
        self._pool = pool
        self._jobs = jobs or WorkerJobs(python=sys.executable)
        self._plan = plan or TaskPlan(kind="functions", output=16 * 1024)

    def map(self, function: Callable[..., T], *arguments: Iterable[Any], name: str = "") -> Iterator[T]:
        """
        What the function returns for the arguments, as `map` of Python: in their order, each as soon as those before it are there.

        A loop that is left before its end ends what is still to be called.

        Raises:
            TasksError: something cannot be sent.
            TaskFailedError: a call has failed; what comes behind it is not looked at.
        """
        calls = [
            _pickled(each, LONGEST_TASK, "the arguments of a call") for each in zip(*arguments, strict=False)
        ]
        if not calls:
            return iter(())
        sent = _pickled_function(function)
        queue = self._pool.run(lambda pool: pool.tasks.create(self._plan, calls, name=name, function=sent))
        submission = prepare(description(queue.id, queue.name, self._jobs), source="the workers")
        self._pool.run(lambda pool: pool.submit(submission))
        return self._values(queue)

    def _values(self, queue: TaskQueueView) -> Iterator[Any]:
        early: dict[int, TaskResult] = {}
        try:
            with closing(self._results(queue.id)) as results:
                for number in range(1, queue.tasks + 1):
                    while number not in early:
                        result = next(results)
                        early[result.task] = result
                    result = early.pop(number)
                    if not result.ok:
                        raise TaskFailedError(result)
                    yield pickle.loads(result.output)  # noqa: S301 - of our own job, by way of our own queue
        finally:
            self._pool.run(lambda pool: pool.tasks.cancel(queue.id, "its program looks at it no more"))

    def _results(self, queue: str) -> Generator[TaskResult]:
        after = 0
        while True:
            page = self._pool.run(partial(_page, queue, after))
            after = page.after
            for batch in page.batches:
                yield from results_of(batch)
            if page.queue.cancelled:
                raise TasksError(f"queue {page.queue.name} was {page.queue.reason}")


async def _page(queue: str, after: int, pool: "Client") -> TaskResultsPage:
    return await pool.tasks.page(queue, after, wait=LONGEST_WAIT_S)


def _pickled_function(function: Callable[..., object]) -> bytes:
    """By value, if it is of no module that others have; raises TasksError."""
    by_value = getattr(function, "__module__", "") == "__main__" or "<" in getattr(
        function, "__qualname__", ""
    )
    if not by_value:
        return _pickled(function, LARGEST_FUNCTION, "the function")
    try:
        cloudpickle = import_module("cloudpickle")
    except ImportError as error:
        raise TasksError(
            "a function of a program, or within another one, is sent by cloudpickle, which is not installed: install it here and "
            "where workers run, or put the function into a module"
        ) from error
    data: bytes = cloudpickle.dumps(function, protocol=_PROTOCOL)
    return _fitting(data, LARGEST_FUNCTION, "the function")


def _pickled(value: object, most: int, what: str) -> bytes:
    try:
        return _fitting(pickle.dumps(value, protocol=_PROTOCOL), most, what)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TasksError(f"{what} cannot be sent: {error}") from error


def _fitting(data: bytes, most: int, what: str) -> bytes:
    if len(data) > most:
        raise TasksError(f"{what} has {len(data):,} bytes when it is pickled, of which {most:,} are the most")
    return data
