"""
Instances of WfFormat 1.4 to 1.6, in which WfCommons publishes workflows that have run: read, measured, written as a DAG.

An instance says which tasks there were, who waited for whom, and, if it was recorded, what each was given and how long it took.
"""

import math
import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from kettle.jobs.quoting import join_v2
from kettle.prominence import wfformat_1_4
from kettle.prominence.dry_run import measured
from kettle.prominence.faults import Fault, below, require_none
from kettle.prominence.graph import JobGraph
from kettle.prominence.job_documents import parsed
from kettle.prominence.shapes import Shapes
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.prominence.dry_run import DryRun

Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
Amount = Annotated[float, msgspec.Meta(ge=0)]

_ILLEGAL: Final = re.compile(r"[^0-9A-Za-z_.-]")
"""What does not belong into the name of a node."""
_RESERVED: Final = frozenset({"PARENT", "CHILD", "ALL_NODES"})
_BYTES_PER_MIB: Final = 1024 * 1024
_MOST_COMPARED: Final = 20
_MOST_CYCLES: Final = 20


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an instance; what it has besides is passed over."""


class TaskSpecification(_Part, frozen=True):
    """A task, and its place in the workflow."""

    name: Identifier
    id: Identifier
    parents: list[str] = []
    children: list[str] = []
    input_files: list[str] = []
    output_files: list[str] = []


class FileSpecification(_Part, frozen=True):
    """A file that tasks read or write."""

    id: Identifier
    size_in_bytes: Amount


class Specification(_Part, frozen=True):
    """The workflow as it was written."""

    tasks: Annotated[list[TaskSpecification], msgspec.Meta(min_length=1)]
    files: list[FileSpecification] = []


class Command(_Part, frozen=True):
    """A program with its arguments."""

    program: Identifier | None = None
    arguments: list[str] = []


class TaskExecution(_Part, frozen=True):
    """A task as it ran."""

    id: Identifier
    runtime_in_seconds: Amount
    command: Command = Command()
    core_count: Amount | None = None
    memory_in_bytes: Amount | None = None


class Execution(_Part, frozen=True):
    """The workflow as it ran."""

    tasks: list[TaskExecution] = []


class InstanceWorkflow(_Part, frozen=True):
    """What was written, and what ran."""

    specification: Specification
    execution: Execution | None = None


class Instance(_Part, frozen=True):
    """A whole instance."""

    name: str
    schema_version: Literal["1.4", "1.5", "1.6"]
    workflow: InstanceWorkflow


_SHAPES: Final = Shapes(
    {
        Instance: "instance",
        InstanceWorkflow: "workflow",
        Specification: "specification",
        TaskSpecification: "task",
        FileSpecification: "file",
        Execution: "execution",
        TaskExecution: "execution of a task",
        Command: "command",
    },
    {},
)


def is_instance(document: object) -> bool:
    """Whether a document is to be one of WfFormat, by the version that it says."""
    return isinstance(document, dict) and "schemaVersion" in document


def read_instance(text: bytes | str) -> Instance:
    """
    The instance that a document is.

    One of version 1.4 is told of in the form that it has since 1.5.

    Raises DocumentRefused with every fault.
    """
    document = parsed(text)
    if wfformat_1_4.is_one(document):
        document = wfformat_1_4.in_new_form(cast("dict[str, Any]", document))
    require_none(_SHAPES.faults(document, Instance))
    instance = msgspec.convert(document, Instance)
    require_none(_between(instance))
    return instance


def edges_of(instance: Instance) -> Iterator[tuple[str, str, str]]:
    """A parent, a child, and the pointer to where one of them says so; most edges are said by both."""
    for number, task in enumerate(instance.workflow.specification.tasks):
        where = below("", "workflow", "specification", "tasks", number)
        yield from (
            (parent, task.id, below(where, "parents", place)) for place, parent in enumerate(task.parents)
        )
        yield from (
            (task.id, child, below(where, "children", place)) for place, child in enumerate(task.children)
        )


def graph_of(instance: Instance) -> JobGraph:
    """Which tasks wait for which."""
    tasks = instance.workflow.specification.tasks
    index = {task.id: number for number, task in enumerate(tasks)}
    edges = ((index[parent], index[child]) for parent, child, _ in edges_of(instance))
    return JobGraph.of(len(tasks), edges)


def dry_run(instance: Instance) -> DryRun:
    """What an instance is, by the times that were recorded."""
    tasks, ran = instance.workflow.specification.tasks, executions(instance)
    seconds = [ran[task.id].runtime_in_seconds if task.id in ran else 0.0 for task in tasks]
    shape = measured([task.id for task in tasks], [1] * len(tasks), graph_of(instance), seconds)
    return msgspec.structs.replace(shape, name=instance.name)


def executions(instance: Instance) -> Mapping[str, TaskExecution]:
    """By the id of each task how it ran, as far as that is known."""
    execution = instance.workflow.execution
    return {task.id: task for task in execution.tasks} if execution else {}


def _between(instance: Instance) -> Iterator[Fault]:
    """Tasks must be told apart, edges have two ends, and nothing may wait for itself."""
    names: dict[str, int] = {}
    for number, task in enumerate(instance.workflow.specification.tasks):
        if task.id in names:
            where = below("", "workflow", "specification", "tasks", number, "id")
            yield Fault(where, f'two tasks have the id "{task.id}"')
        names.setdefault(task.id, number)
    told: dict[str, None] = {}
    pairs: list[tuple[int, int]] = []
    for parent, child, pointer in edges_of(instance):
        unknown = [name for name in (parent, child) if name not in names]
        for name in unknown:
            if name not in told:
                near = did_you_mean(name, names) if len(told) < _MOST_COMPARED else ""
                yield Fault(pointer, f'there is no task with the id "{name}"{near}')
                told[name] = None
        if not unknown:
            pairs.append((names[parent], names[child]))
    ids = [task.id for task in instance.workflow.specification.tasks]
    for cycle in islice(JobGraph.of(len(ids), pairs).cycles(), _MOST_CYCLES):
        way = " -> ".join(ids[task] for task in [*cycle, cycle[0]])
        yield Fault("/workflow/specification/tasks", f"tasks wait for each other in a cycle: {way}")


# -- as a DAG ----------------------------------------------------------------------------------------------------------


def dag_of(instance: Instance, *, replay: float | None = None) -> str:
    """
    The text of a DAG file with the tasks as its nodes, each with what it needs, and who waits for whom.

    `replay`: instead of its program each node sleeps for so many times the seconds that the task took.
    Raises DocumentRefused: a task has no program that was recorded, or one that no submit description can say.
    """
    tasks, ran = instance.workflow.specification.tasks, executions(instance)
    names = _node_names([task.id for task in tasks])
    faults: list[Fault] = []
    lines: list[str] = [f"# {' '.join(instance.name.split())}: {len(tasks)} tasks"]
    for number, task in enumerate(tasks):
        execution = ran.get(task.id)
        words = _words(execution, replay)
        if isinstance(words, str):
            faults.append(
                Fault(below("", "workflow", "specification", "tasks", number), f"{task.id} {words}")
            )
            continue
        lines += [f"JOB {names[number]} {{", *(f"    {line}" for line in _description(words, execution)), "}"]
    require_none(faults)
    for parent, children in enumerate(graph_of(instance).children):
        if children:
            lines.append(f"PARENT {names[parent]} CHILD {' '.join(names[child] for child in children)}")
    return "\n".join([*lines, ""])


def _words(execution: TaskExecution | None, replay: float | None) -> list[str] | str:
    """The program and its arguments, or why there are none."""
    if replay is not None:
        return ["/bin/sleep", f"{(execution.runtime_in_seconds if execution else 0.0) * replay:.3f}"]
    if execution is None or execution.command.program is None:
        return "has no command that was recorded: replay its time instead"
    words = [execution.command.program, *execution.command.arguments]
    if any(character in word for word in words for character in "\n\r\0"):
        return "has a line break in its command, which no submit description can have"
    return words


def _description(words: list[str], execution: TaskExecution | None) -> Iterator[str]:
    program, *arguments = (word.replace("$", "$(DOLLAR)") for word in words)
    yield f"executable = {program}"
    if arguments:
        quoted = join_v2(arguments).replace('"', '""')
        yield f'arguments = "{quoted}"'
    if posixpath.isabs(words[0]):
        yield "transfer_executable = false"
    if execution and execution.core_count:
        yield f"request_cpus = {max(1, math.ceil(execution.core_count))}"
    if execution and execution.memory_in_bytes:
        yield f"request_memory = {max(1, math.ceil(execution.memory_in_bytes / _BYTES_PER_MIB))}"


def _node_names(ids: list[str]) -> list[str]:
    """Names of nodes: the ids as far as these may be names, and different ones for different ids."""
    taken: set[str] = set()
    found: list[str] = []
    for identifier in ids:
        plain = name = _ILLEGAL.sub("_", identifier)
        number = 1
        while name in taken or name.upper() in _RESERVED:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        found.append(name)
    return found
