"""
Task queues: many small commands, lines for a program, or calls of a function, which jobs of their owner work through.

A task is known by its number, which counts from 1 within its queue. Numbers come as ranges, first and last inclusive.
"""

from typing import Annotated, Final, Literal

import msgspec

TaskKind = Literal["commands", "lines", "functions"]
"""
`commands`: each task is a line for the shell. `lines`: each is a line for a program that lives on, and answers with a line.
`functions`: each is the pickled arguments of one function, which is called in a process that lives on.
"""
QueueState = Literal["open", "closed", "ended"]
"""`open`: more tasks may come. `closed`: no more come, and some have not ended. `ended`: all have."""
QueueOutcome = Literal["", "done", "cancelled"]
"""How a queue ended: all of its tasks have, or somebody has cancelled it."""
TaskState = Literal["waiting", "running", "done", "failed", "cancelled"]
"""`running`: a worker has it, which may have others before it."""

MOST_TASKS: Final = 1_000_000
"""Of one queue."""
MOST_AT_ONCE: Final = 5_000
"""Tasks in one request that adds some, and of one lease."""
LONGEST_TASK: Final = 64 * 1024
"""Bytes of one task."""
LARGEST_PART: Final = 512 * 1024
"""Bytes of the tasks of one request that adds some, of one lease, and of the outputs of one report, all together."""
LONGEST_OUTPUT: Final = 64 * 1024
"""Bytes of what one task has printed or returned that are kept by value, at most."""
LARGEST_FUNCTION: Final = 256 * 1024
"""Bytes of a pickled function."""

QueueId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{12}$")]
QueueName = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
TaskNumber = Annotated[int, msgspec.Meta(ge=1, le=MOST_TASKS)]
TaskBytes = Annotated[bytes, msgspec.Meta(max_length=LONGEST_TASK)]
Microseconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class TaskRange(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Tasks whose numbers follow each other."""

    first: TaskNumber
    last: TaskNumber


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the tasks of a queue are, and how each is run."""

    kind: TaskKind = "commands"
    program: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")]],
        msgspec.Meta(max_length=100),
    ] = []
    """Of the kind `lines`: the program and its arguments."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    """How often a task is run again that has failed."""
    wall: Annotated[float, msgspec.Meta(ge=0, le=3.2e7)] = 0.0
    """Seconds after which a task is killed; 0: never."""
    output: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_OUTPUT)] = 1024
    """Bytes of what a task prints or returns that are kept; the rest is dropped."""


class TaskExit(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How a task ended that did not end well."""

    place: Annotated[int, msgspec.Meta(ge=0, lt=MOST_AT_ONCE)]
    """Which task of the report it is, counted from 0."""
    exit: Annotated[int, msgspec.Meta(ge=-255, le=255)]
    """The exit code, or the number of the signal below zero."""
    reason: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    """What else is known: the exception of a function, that it was killed by its time limit."""


class TaskColumns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The results of tasks: one list for each fact, in the order of the tasks."""

    tasks: Annotated[list[TaskRange], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    wall_us: Annotated[list[Microseconds], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    """For how long each ran."""
    cpu_us: Annotated[list[Microseconds], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    """What each used of processors, children that it waited for included."""
    exits: Annotated[list[TaskExit], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    """Of those that did not end well; all others have exit code 0."""
    outputs: Annotated[
        list[Annotated[bytes, msgspec.Meta(max_length=LONGEST_OUTPUT)]], msgspec.Meta(max_length=MOST_AT_ONCE)
    ] = []
    """What each printed or returned; empty: none of them did."""
    cut: Annotated[list[int], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    """Places of those whose output was longer than what is kept."""
