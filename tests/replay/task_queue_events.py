"""
What a service of interactive sessions ever records of task queues, decided by its own deciders.

    .venv/bin/python -m tests.replay.task_queue_events 0.1.214     its frames become tests/replay/0.1.214
"""

import sys
from typing import Final

from kettle_services.sessions.domain.task_queues.decisions import at_the_end, ended, leased, returned
from kettle_services.sessions.domain.task_queues.queue import TaskQueue, evolve
from kettle_wire.events import encode, tag_of
from kettle_wire.events.task_queue import (
    QueueCancelled,
    QueueClosed,
    QueueCreated,
    QueueForgotten,
    QueueTasksAdded,
    TaskQueueEvent,
    TaskTextsDropped,
    TaskTextsKept,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.task_queues import TaskColumns, TaskExit, TaskPlan, TaskRange

from .folds import expected
from .recording import HERE, write

SHARD: Final = "sessions.tasks"
_AT: Final = 1_795_737_600_000_000
_JOB: Final = "11.0"


class _Life:
    """Commits of one queue, a minute after each other."""

    def __init__(self, created: QueueCreated) -> None:
        self.id = created.queue
        self.state: TaskQueue | None = None
        self.commits: list[list[tuple[str, TaskQueueEvent]]] = []
        self.feed(created)

    @property
    def queue(self) -> TaskQueue:
        """As it is now."""
        assert self.state is not None, "it is not forgotten"
        return self.state

    def feed(self, *facts: TaskQueueEvent | None) -> None:
        """What happens, and what follows from it."""
        at, commit = _AT / 1e6 + 60.0 * len(self.commits), list[tuple[str, TaskQueueEvent]]()
        for fact in facts:
            assert fact is not None, "something is decided"
            self.state = evolve(self.state, fact, at)
            commit.append((f"queue/{self.id}", fact))
        for event in at_the_end(self.state) if self.state else ():
            self.state = evolve(self.state, event, at)
            commit.append((f"queue/{self.id}", event))
        self.commits.append(commit)

    def of_texts(self, part: int, event: TaskQueueEvent) -> None:
        """What happens to the texts of a part."""
        self.commits.append([(f"tasks/{self.id}.{part}", event)])


def _commands() -> _Life:
    """Workers run them, are lost and give back; some fail, and are run again."""
    plan = TaskPlan(retries=1, wall=60.0)
    life = _Life(QueueCreated(queue="00000000000a", owner="ann", name="fits", plan=plan, followed=3))
    life.of_texts(1, TaskTextsKept(first=1, texts=[b"./fit 1", b"./fit 2", b"./fit 3", b"./fit 4"]))
    life.feed(QueueTasksAdded(part=1, tasks=TaskRange(1, 4), size=28))
    life.feed(QueueClosed(by="ann"))
    life.feed(leased(life.queue, _JOB, 1, 9, 1))
    results = TaskColumns(
        tasks=[TaskRange(1, 2)],
        wall_us=[2_000, 3_000],
        cpu_us=[1_000, 1_500],
        exits=[TaskExit(1, 3, "")],
        outputs=[b"chi2 1.0\n", b""],
        cut=[0],
    )
    life.feed(ended(life.queue, 1, (_JOB, 1), results))
    life.feed(leased(life.queue, _JOB, 1, 9, 1))
    life.feed(returned(life.queue, 2, f"job {_JOB} was not heard for 60 s", lost=True))
    life.feed(leased(life.queue, "12.0", 1, 1, 1))
    life.feed(returned(life.queue, 3, "job 12.0 has given them back", lost=False))
    for attempt in range(2, 9):
        life.feed(leased(life.queue, _JOB, attempt, 1, 1))
        life.feed(returned(life.queue, life.queue.granted, f"job {_JOB} has begun again", lost=True))
        if life.queue.totals.failed:
            break
    life.feed(leased(life.queue, _JOB, 20, 1, 1))
    return life


def _functions() -> _Life:
    """Its function is kept; somebody cancels it, and it is forgotten."""
    plan = TaskPlan(kind="functions", output=4096)
    life = _Life(QueueCreated(queue="00000000000b", owner="bob", name="calls", plan=plan, followed=3))
    life.of_texts(0, TaskTextsKept(first=0, texts=[b"\x80\x04."]))
    life.feed(QueueCancelled(by="bob", reason="enough"))
    life.of_texts(0, TaskTextsDropped())
    life.feed(QueueForgotten())
    return life


def frames() -> list[Frame]:
    """One commit after the other."""
    made: list[Frame] = []
    position = 1
    for life in (_commands(), _functions()):
        versions: dict[str, int] = {}
        for number, commit in enumerate(life.commits):
            entries: list[Entry] = []
            for stream, event in commit:
                versions[stream] = versions.get(stream, 0) + 1
                entries.append(Entry(stream, versions[stream], tag_of(event), encode(event), b""))
            made.append(Frame(SHARD, 1, len(made) + 1, position, _AT + number * 60_000_000, entries))
            position += len(entries)
    return made


if __name__ == "__main__":
    shards = {SHARD: frames()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
