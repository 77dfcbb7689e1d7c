"""Documents of workflows, read: all faults at once, or the workflow in the form of today."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from kettle.prominence import factories
from kettle.prominence.faults import Fault, below, require_none
from kettle.prominence.graph import JobGraph
from kettle.prominence.job_documents import current, parsed
from kettle.prominence.job_rules import PLACES, RULES
from kettle.prominence.shapes import Shapes
from kettle.prominence.substitution import leads_outside, substituted
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.prominence.factories import Factory, OldFactory, ParameterSweep, ParametricSweep, Zip
from kettle_wire.prominence.job import Job
from kettle_wire.prominence.workflow import Dependency, Workflow, WorkflowNotification, WorkflowPolicies

_SHAPES: Final = Shapes(
    {
        **PLACES,
        **factories.PLACES,
        Workflow: "workflow description",
        Dependency: "dependencies",
        WorkflowPolicies: "policies",
        WorkflowNotification: "notifications",
    },
    {**RULES, **factories.RULES},
)
_MOST_COMPARED: Final = 20
"""Unknown names for which the nearest known one is looked for: it takes milliseconds for each."""
_MOST_CYCLES: Final = 20

_Dependencies = dict[str, list[str]] | list[Dependency]
Edge = tuple[str, str, str]
"""A parent, a child, and the pointer to where it says so."""


def is_workflow(document: object) -> bool:
    """Whether a document is to be one of a workflow: clients tell it from that of a job by its `jobs`."""
    return isinstance(document, dict) and "jobs" in document


def read_workflow(text: bytes | str) -> Workflow:
    """
    The workflow that a document describes, without older forms.

    Raises DocumentRefused with every fault.
    """
    document = parsed(text)
    require_none(_faults(document))
    return _current(msgspec.convert(document, Workflow))


def graph_of(workflow: Workflow) -> JobGraph:
    """Which jobs wait for which, of a workflow that was read."""
    index = {job.name: number for number, job in enumerate(workflow.jobs)}
    edges = ((index[parent], index[child]) for parent, child, _ in _edges(workflow.dependencies, ""))
    return JobGraph.of(len(workflow.jobs), edges)


def _current(workflow: Workflow) -> Workflow:
    jobs = [current(job) for job in workflow.jobs]
    dependencies: dict[str, list[str]] = {}
    for parent, child, _ in _edges(workflow.dependencies, ""):
        dependencies.setdefault(parent, []).append(child)
    made = workflow.factories
    if workflow.factory is not None:
        made = [_factory(workflow.factory, [job.name for job in jobs])]
    return replace(workflow, jobs=jobs, dependencies=dependencies, factories=made, factory=None)


def _factory(old: OldFactory, jobs: list[str]) -> Factory:
    if isinstance(old, ParametricSweep):
        return ParameterSweep(name="", jobs=jobs, parameters=old.parameter_sets)
    return Zip(name="", jobs=jobs, parameters=old.parameter_sets)


def _edges(dependencies: _Dependencies, pointer: str) -> Iterator[Edge]:
    if isinstance(dependencies, list):
        for number, each in enumerate(dependencies):
            for parent in each.parents:
                for child in each.children:
                    yield parent, child, below(pointer, number)
        return
    for parent, children in dependencies.items():
        for child in children:
            yield parent, child, below(pointer, parent)


# -- what must hold between the jobs -----------------------------------------------------------------------------------


def _faults(document: object) -> Iterator[Fault]:
    found = list(_SHAPES.faults(document, Workflow))
    yield from found
    if isinstance(document, dict):
        yield from _between(cast("dict[str, Any]", document), {fault.pointer for fault in found})


def _between(document: dict[str, Any], wrong: set[str]) -> Iterator[Fault]:
    """
    What does not agree among the parts of a workflow whose form is right; a wrong part hides no other's faults.
    """

    def is_sound(where: str) -> bool:
        return not any(each == where or each.startswith(f"{where}/") for each in wrong)

    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        return
    names = list(map(_name, cast("list[object]", jobs)))
    yield from _names(names)
    known = dict.fromkeys(name for name in names if name)
    if is_sound("/dependencies"):
        edges = _edges(msgspec.convert(document.get("dependencies", {}), _Dependencies), "/dependencies")
        yield from _dependencies(list(edges), known)
    listed = document.get("factories")
    made = {
        number: msgspec.convert(each, Factory)
        for number, each in enumerate(cast("list[object]", listed) if isinstance(listed, list) else [])
        if is_sound(f"/factories/{number}")
    }
    yield from _members(made, known)
    yield from _amount(made, len(names))
    if is_sound("/jobs"):
        yield from _outputs(made, msgspec.convert(jobs, list[Job]))
    if listed and "factory" in document:
        yield Fault("/factory", "factory is the older form of factories: leave one of them")


def _name(job: object) -> str | None:
    """The name of a job; empty if it has none, None if what stands there is told already."""
    name = cast("dict[str, object]", job).get("name", "") if isinstance(job, dict) else None
    return name if isinstance(name, str) else None


def _names(names: list[str | None]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if name is None:
            continue
        if not name:
            yield Fault(
                below("", "jobs", number), "each job of a workflow must have a name, which is not empty"
            )
        elif name in first:
            where = below("", "jobs", number, "name")
            yield Fault(
                where, f'all jobs must have unique names: "{name}" is that of jobs[{first[name]}] too'
            )
        elif ".." in name.split("/"):
            yield Fault(below("", "jobs", number, "name"), f'the name "{name}" must not have .. as a part')
        first.setdefault(name, number)


def _unknown(name: str, known: Mapping[str, None], told: int) -> str:
    return f'"{name}", which is no job of the workflow{did_you_mean(name, known) if told < _MOST_COMPARED else ""}'


def _dependencies(edges: list[Edge], known: Mapping[str, None]) -> Iterator[Fault]:
    told: dict[str, None] = {}
    index = {name: number for number, name in enumerate(known)}
    for parent, child, pointer in edges:
        for role, name in (("a parent", parent), ("a child", child)):
            if name not in known and name not in told:
                yield Fault(pointer, f"{role} is {_unknown(name, known, len(told))}")
                told[name] = None
    pairs = [
        (index[parent], index[child]) for parent, child, _ in edges if parent in known and child in known
    ]
    names = list(known)
    for cycle in islice(JobGraph.of(len(known), pairs).cycles(), _MOST_CYCLES):
        way = " -> ".join(names[job] for job in [*cycle, cycle[0]])
        yield Fault("/dependencies", f"jobs wait for each other in a cycle: {way}")


def _members(made: Mapping[int, Factory], known: Mapping[str, None]) -> Iterator[Fault]:
    owner: dict[str, int] = {}
    told = 0
    for number, factory in made.items():
        for place, name in enumerate(factory.jobs):
            where = below("", "factories", number, "jobs", place)
            if name not in known:
                yield Fault(where, f"the factory makes {_unknown(name, known, told)}")
                told += 1
            elif name in owner:
                yield Fault(
                    where, f'"{name}" is made by factories[{owner[name]}] already: a job has one factory'
                )
            owner.setdefault(name, number)


def _outputs(made: Mapping[int, Factory], jobs: list[Job]) -> Iterator[Fault]:
    """
    Names of outputs with values that people wrote; of those that are computed the submission takes care.
    """
    by_name = {job.name: number for number, job in enumerate(jobs)}
    for factory in made.values():
        if not isinstance(factory, Zip):
            continue
        members = [by_name[name] for name in factory.jobs if name in by_name]
        for index in range(factories.count(factory)):
            values = factories.parameters_of(factory, index)
            for number in members:
                yield from _outside(jobs[number], below("", "jobs", number), values)


def _outside(job: Job, pointer: str, values: Mapping[str, str]) -> Iterator[Fault]:
    for name, paths in (("outputFiles", job.output_files), ("outputDirs", job.output_dirs)):
        for place, path in enumerate(paths):
            if "$" in path and leads_outside(made := substituted(path, values)):
                yield Fault(
                    below(pointer, name, place), f"an output would not be below the job's directory: {made}"
                )


def _amount(made: Mapping[int, Factory], jobs: int) -> Iterator[Fault]:
    total = jobs + sum((factories.count(factory) - 1) * len(factory.jobs) for factory in made.values())
    if total > factories.MOST_NODES:
        yield Fault("/factories", f"the workflow has {total} jobs; the most are {factories.MOST_NODES}")
