import contextlib
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kettle.jobs.match_references import unknown
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.graph import JobGraph
from kettle.prominence.job_ads import Surroundings, submission
from kettle.prominence.nodes import WorkflowNodes, seeded
from kettle.prominence.workflow_documents import graph_of, read_workflow
from kettle.tasks.reading import read_tasks
from kettle_wire.prominence.factories import RandomSample
from kettle_wire.prominence.workflow import Workflow

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
GRAPHS = st.integers(1, 7).flatmap(
    lambda jobs: st.tuples(
        st.just(jobs), st.lists(st.tuples(st.integers(0, jobs - 1), st.integers(0, jobs - 1)), max_size=16)
    )
)


def job(name: str, **parts: Any) -> dict[str, Any]:
    task = {"image": "a", "runtime": "singularity", "cmd": "echo"}
    return {"name": name, "resources": {"cpus": 1, "memory": 1}, "tasks": [task], **parts}


def workflow(*names: str, **parts: Any) -> dict[str, Any]:
    return {"name": "w", "jobs": list(map(job, names)), **parts}


def read(document: object) -> Workflow:
    return read_workflow(json.dumps(document))


def faults(document: object) -> list[Fault]:
    with pytest.raises(DocumentRefused) as refusal:
        read(document)
    return refusal.value.faults


def names_of(document: object) -> list[str]:
    return [node.job.name for node in WorkflowNodes(read(document))]


def test_a_dependency_means_the_job_of_exactly_this_name() -> None:
    """A parent A is not AB, and a child merge is not premerge."""
    found = graph_of(read(workflow("A", "AB", "merge", "premerge", dependencies={"A": ["merge"]})))
    assert ((2,), (), (), ()) == found.children


def test_both_forms_of_dependencies_mean_the_same() -> None:
    """The older form is a list of parents and children."""
    today = workflow("a", "b", "c", "d", dependencies={"a": ["c", "d"], "b": ["c", "d"]})
    older = today | {"dependencies": [{"parents": ["a", "b"], "children": ["c", "d"]}]}
    assert read(today) == read(older)


def test_the_older_form_of_a_factory_is_for_all_jobs() -> None:
    """A single `factory` has sets of parameters."""
    sets = [{"name": "x", "start": 1, "end": 2, "step": 1}]
    older = workflow("a", "b", factory={"type": "parametricSweep", "parameterSets": sets})
    assert ["w/a/0", "w/a/1", "w/b/0", "w/b/1"] == names_of(older)


def test_jobs_without_dependencies_are_a_group() -> None:
    """A workflow may be no more than several jobs; without a name of its own, theirs are enough."""
    assert ["a", "b"] == names_of(workflow("a", "b") | {"name": ""})


def test_a_workflows_placement_replaces_that_of_its_jobs() -> None:
    """The job's own counts where the workflow says none."""
    own = job("a", policies={"placement": {"requirements": {"sites": ["x"]}}})
    said = {"jobs": [own], "policies": {"placement": {"requirements": {"sites": ["y"]}}}}
    for document, expected in ((said, ["y"]), ({"jobs": [own]}, ["x"])):
        assert expected == WorkflowNodes(read(document))[0].job.policies.placement.requirements.sites


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            workflow("a", "b", "a"),
            [Fault("/jobs/2/name", 'all jobs must have unique names: "a" is that of jobs[0] too')],
        ),
        (workflow(""), [Fault("/jobs/0", "each job of a workflow must have a name, which is not empty")]),
        (workflow("a/../b"), [Fault("/jobs/0/name", 'the name "a/../b" must not have .. as a part')]),
        ({"jobs": []}, [Fault("/jobs", "jobs must not be empty")]),
        ({"name": "w"}, [Fault("", "jobs is missing in workflow description")]),
        (
            workflow("merge", dependencies={"mrege": ["merge"]}),
            [
                Fault(
                    "/dependencies/mrege",
                    'a parent is "mrege", which is no job of the workflow; did you mean merge?',
                )
            ],
        ),
        (
            workflow("a", "b", "c", dependencies={"a": ["b"], "b": ["c"], "c": ["a"]}),
            [Fault("/dependencies", "jobs wait for each other in a cycle: a -> b -> c -> a")],
        ),
        (
            workflow("a", dependencies={"a": ["a"]}),
            [Fault("/dependencies", "jobs wait for each other in a cycle: a -> a")],
        ),
        (
            workflow("a", factories=[{"name": "f", "type": "repeat", "number": 10**7 + 1, "jobs": ["a"]}]),
            [Fault("/factories/0/number", "the factory makes 10000001 instances; the most are 10000000")],
        ),
        (
            workflow(
                "a", "b", factories=[{"name": "f", "type": "repeat", "number": 10**7, "jobs": ["a", "b"]}]
            ),
            [Fault("/factories", "the workflow has 20000000 jobs; the most are 10000000")],
        ),
        (
            workflow(
                "a",
                factories=[
                    {"name": "f", "type": "repeat", "number": 1, "jobs": ["a", "c"]},
                    {"name": "g", "type": "repeat", "jobs": ["a"]},
                    {"name": "h", "type": "repeat", "number": 2, "jobs": ["a"]},
                ],
            ),
            [
                Fault("/factories/1", "number is missing in factory: how often the jobs are repeated"),
                Fault("/factories/0/jobs/1", 'the factory makes "c", which is no job of the workflow'),
                Fault("/factories/2/jobs/0", '"a" is made by factories[0] already: a job has one factory'),
            ],
        ),
    ],
)
def test_what_does_not_agree_is_told_with_its_place(document: object, expected: list[Fault]) -> None:
    """Names, cycles and limits."""
    assert expected == faults(document)


def test_a_wrong_part_hides_no_other() -> None:
    """A faulty job, a cycle, an unknown name and a sweep of 10^8 are told in one answer."""
    sweep = [{"name": name, "start": 1, "end": 100, "step": 1} for name in "abcd"]
    document = workflow(
        "a",
        "b",
        dependencies={"a": ["b", "x"], "b": ["a"]},
        factories=[{"name": "f", "type": "parameterSweep", "jobs": ["a"], "parameters": sweep}],
    )
    document["jobs"][1]["resources"]["cpus"] = 0
    assert [
        Fault("/jobs/1/resources/cpus", "cpus must be 1 or more, not 0"),
        Fault("/factories/0/parameters", "the sweep makes 100000000 instances; the most are 10000000"),
        Fault("/dependencies/a", 'a child is "x", which is no job of the workflow'),
        Fault("/dependencies", "jobs wait for each other in a cycle: a -> b -> a"),
    ] == faults(document)


FACTORIES: list[tuple[dict[str, Any], str]] = [
    ({"type": "parameterSweep", "parameters": [{"name": "x", "start": 0, "end": 1}]}, "/parameters/0"),
    (
        {"type": "parameterSweep", "parameters": [{"name": "x", "start": 0, "end": 1, "step": 0}]},
        "/parameters/0/step",
    ),
    (
        {"type": "parameterSweep", "parameters": [{"name": "x", "start": 0, "end": 1, "step": -0.1}]},
        "/parameters/0/step",
    ),
    (
        {"type": "parameterSweep", "parameters": [{"name": "x", "start": 0, "end": 1e300, "step": 1}]},
        "/parameters/0/end",
    ),
    (
        {
            "type": "parameterSweep",
            "parameters": [{"name": c, "start": 0, "end": 1, "step": 1} for c in "abcde"],
        },
        "/parameters",
    ),
    (
        {"type": "parameterSweep", "parameters": [{"name": "x", "start": 0, "end": 1, "step": 1}] * 2},
        "/parameters/1/name",
    ),
    (
        {"type": "zip", "parameters": [{"name": "x", "values": [1]}, {"name": "y", "values": [1, 2]}]},
        "/parameters/1/values",
    ),
    ({"type": "zip", "parameters": [{"name": "x", "values": []}]}, "/parameters/0/values"),
    ({"type": "zip", "parameters": [{"name": "x", "values": [{}]}]}, "/parameters/0/values/0"),
    ({"type": "repeat", "number": 0}, "/number"),
    ({"type": "repeat", "number": 2, "num": 2}, ""),
    ({"type": "randomSample", "number": 2, "parameters": [{"name": "x", "start": 1}]}, "/parameters/0"),
    (
        {"type": "randomSample", "number": 2, "parameters": [{"name": "x", "start": 2, "end": 1}]},
        "/parameters/0/start",
    ),
    ({"type": "sweep"}, "/type"),
    ({}, ""),
]


@pytest.mark.parametrize(("factory", "pointer"), FACTORIES)
def test_a_factory_that_makes_no_sense_is_refused(factory: dict[str, object], pointer: str) -> None:
    """At the parameter that is wrong."""
    document = workflow("a", factories=[{"name": "f", "jobs": ["a"], **factory}])
    assert [f"/factories/0{pointer}"] == [fault.pointer for fault in faults(document)]


def test_two_factories_may_follow_each_other() -> None:
    """All instances of the second job wait for all of the first."""
    document = workflow(
        "a",
        "b",
        dependencies={"a": ["b"]},
        factories=[
            {"name": "f", "type": "repeat", "number": 2, "jobs": ["a"]},
            {
                "name": "g",
                "type": "zip",
                "jobs": ["b"],
                "parameters": [{"name": "x", "values": ["u", "v", "w"]}],
            },
        ],
    )
    nodes = WorkflowNodes(read(document))
    assert ["w/a/0", "w/a/1", "w/b/0", "w/b/1", "w/b/2"] == [node.job.name for node in nodes]
    assert (range(2), range(2, 5)) == (nodes.numbers(0), nodes.numbers(1))
    assert (2, {"x": "w"}) == (nodes[4].index, nodes[4].parameters)
    with pytest.raises(IndexError, match="the workflow has 5 jobs, and no 5"):
        nodes[5]


def test_a_seed_is_chosen_where_there_is_none() -> None:
    """What is recorded draws the same values again."""
    sample = {"type": "randomSample", "number": 3, "parameters": [{"name": "x", "start": 0, "end": 1}]}
    document = workflow(
        "a",
        "b",
        factories=[{"name": "f", "jobs": ["a"], **sample}, {"name": "g", "jobs": ["b"], "seed": 5, **sample}],
    )
    found = seeded(read(document), iter([17]))
    assert [17, 5] == [factory.seed for factory in found.factories if isinstance(factory, RandomSample)]


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
@example(["$$(Memory)", "$$$(x)", "$$([1 + 1])"], "$$$$(Cpus)")
def test_any_value_reaches_the_program_unharmed(values: list[str], beside: str) -> None:
    """Quotes, dollars, blanks and lines: as a word of the command, and in the environment."""
    document = workflow(
        "a",
        factories=[
            {
                "name": "f",
                "type": "zip",
                "jobs": ["a"],
                "parameters": [
                    {"name": "x", "values": values},
                    {"name": "y", "values": [beside] * len(values)},
                ],
            }
        ],
    )
    document["jobs"][0]["tasks"][0]["cmd"] = "run $x 'and ${y}'"
    for node, value in zip(WorkflowNodes(read(document)), values, strict=True):
        around = Surroundings(arch="X86_64", upload=str, parameters=node.parameters)
        ad = submission(node.job, around).ad
        [task] = read_tasks(ad["KettleTasks"]).tasks
        assert ("run", value, f"and {beside}") == task.cmd
        assert {"PROMINENCE_PARAMETER_x": value, "PROMINENCE_PARAMETER_y": beside} == task.env
        assert not unknown(ad)


def test_outputs_of_instances_are_named_by_values_and_stay_inside() -> None:
    """Values are no patterns, and one that leads out of the directory is found before anything runs."""
    parameters = [{"name": "x", "values": ["a*", "b"]}]
    document = workflow(
        "a", factories=[{"name": "f", "type": "zip", "jobs": ["a"], "parameters": parameters}]
    )
    document["jobs"][0] |= {"outputFiles": ["$x.dat"], "artifacts": ["http://h/${x}.tgz"]}
    node = WorkflowNodes(read(document))[0]
    addresses: list[str] = []

    def output(path: str) -> str:
        addresses.append(path)
        return "https://s"

    around = Surroundings(arch="X86_64", upload=str, output=output, parameters=node.parameters)
    found = read_tasks(submission(node.job, around).ad["KettleTasks"])
    assert (["a*.dat"], "a[*].dat", "http://h/a*.tgz") == (
        addresses,
        found.outputs[0].name,
        found.artifacts[0].url,
    )
    parameters[0]["values"] = ["fine", "../../etc/x", "/etc/y"]
    assert ["/jobs/0/outputFiles/0"] * 2 == [fault.pointer for fault in faults(document)]


@settings(max_examples=60)
@given(GRAPHS)
def test_cycles_are_cycles_and_all_jobs_that_cannot_run_are_explained(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    """A cycle follows edges back to its beginning; without it and the others every job could run."""
    jobs, edges = graph
    found = JobGraph.of(jobs, edges)
    cycles = list(found.cycles())
    for cycle in cycles:
        assert set(zip(cycle, [*cycle[1:], cycle[0]], strict=True)) <= set(edges)
    inside = [job for cycle in cycles for job in cycle]
    assert len(inside) == len(set(inside))
    assert (len(found.ordered()) == jobs) == (not cycles)
    rest = [(parent, child) for parent, child in edges if parent not in inside and child not in inside]
    assert jobs == len(JobGraph.of(jobs, rest).ordered())


@settings(max_examples=60)
@given(GRAPHS, st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_the_critical_path_is_the_longest_of_all_ways(
    graph: tuple[int, list[tuple[int, int]]], seconds: list[int]
) -> None:
    """Compared with every way through the graph."""
    jobs, edges = graph
    found = JobGraph.of(jobs, [(parent, child) for parent, child in edges if parent < child])

    def longest(job: int) -> int:
        return seconds[job] + max(map(longest, found.children[job]), default=0)

    path = found.critical_path(seconds[:jobs])
    assert max(map(longest, range(jobs))) == sum(seconds[job] for job in path)
    assert all(child in found.children[parent] for parent, child in pairwise(path))


@settings(max_examples=60)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["jobs", "name", "tasks", "resources", "cpus", "factories", "dependencies", "type", "image", "x"]), part, max_size=5), max_leaves=20))  # fmt: skip
def test_whatever_is_sent_is_read_or_refused(document: object) -> None:
    """Nothing passes the check that cannot be read, and nothing but a refusal is raised."""
    with contextlib.suppress(DocumentRefused):
        assert len(WorkflowNodes(read_workflow(msgspec.json.encode(document)))) > 0
