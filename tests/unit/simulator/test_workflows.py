"""
Jobs that wait for others: against a model that only has lists, laws, and the files that workflows come in.
"""

import json
import random
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import JobTooLargeError, Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.workloads.dependencies import Dependencies
from kettle_services.simulator.workloads.distributions import Constant
from kettle_services.simulator.workloads.prominence_documents import read_prominence
from kettle_services.simulator.workloads.submit_files import read_submit
from kettle_services.simulator.workloads.workflows import WorkflowError, read_dag, read_wfformat
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.delays import Delays

_US = 1_000_000


def _random_graph(draw: random.Random, jobs: int) -> list[tuple[int, int]]:
    """Edges in random numbering, so that a parent may stand behind its child."""
    names = list(range(jobs))
    draw.shuffle(names)
    return [
        (names[parent], names[child])
        for child in range(jobs)
        for parent in range(child)
        if draw.random() < 2 / jobs
    ]


def _listed(work: Workload, edges: list[tuple[int, int]], cores: int) -> tuple[list[int], list[int]]:
    """
    Starts and submissions on one host without delays: at each moment first all ends, then what they let go, in the order of the workload.
    """
    count = len(work)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    submitted: dict[int, int] = {}
    queue: list[int] = []
    now, idle = 0, cores
    parents: list[list[int]] = [[] for _ in range(count)]
    for parent, child in edges:
        parents[child].append(parent)
    while len(starts) < count or any(end > now for end in ends.values()):
        ready = [
            job
            for job in range(count)
            if job not in submitted
            and work.submitted[job] <= now
            and all(ends.get(parent, now + 1) <= now for parent in parents[job])
        ]
        for job in ready:
            submitted[job] = now
            queue.append(job)
        for job in list(queue):
            if work.cores[job] <= idle:
                queue.remove(job)
                idle -= int(work.cores[job])
                starts[job], ends[job] = now, now + int(work.work[job])
        later = [end for end in ends.values() if end > now]
        later += [at for at in work.submitted.tolist() if at > now]
        if not later:
            break
        now = min(later)
        idle += sum(int(work.cores[job]) for job, end in ends.items() if end == now)
    return [starts[job] for job in range(count)], [submitted[job] for job in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_jobs_start_as_a_model_with_lists_says(seed: int) -> None:
    draw = random.Random(seed)
    count, cores = draw.randint(1, 30), draw.randint(2, 6)
    at = 0
    submitted: list[int] = []
    for _ in range(count):
        at += draw.choice([0, 0, 0, 11])
        submitted.append(at)
    edges = _random_graph(draw, count)
    work = Workload(
        submitted=submitted,
        # Odd and all different, so that no two things happen in one moment.
        work=[draw.randint(1, 60) * 100_000 + 2 * job + 1 for job in range(count)],
        cores=[draw.randint(1, 2) for _ in range(count)],
        waits=Dependencies.of(count, edges),
    )
    result = Simulation(platform=Platform.star(hosts=1, cores=cores), workload=work).run()
    starts, released = _listed(work, edges, cores)
    assert result.submitted.tolist() == released
    assert result.starts.tolist() == starts


@pytest.mark.parametrize("seed", range(10))
def test_nothing_begins_before_what_it_waits_for_is_reported(seed: int) -> None:
    """
    And it takes as long as the longest way through the graph at least, and no longer than Graham's bound.
    """
    draw = random.Random(seed)
    edges = _random_graph(draw, 200)
    waits = Dependencies.of(200, edges)
    works = [draw.randint(1, 1000) * _US for _ in range(200)]
    work = Workload(submitted=np.zeros(200, dtype=np.int64), work=works, waits=waits)
    platform = Platform.star(hosts=2, cores=4)
    delays = Delays(negotiator=3 * _US, non_grid_pre=_US, non_grid_post=2 * _US)
    result = Simulation(platform=platform, workload=work, delays=delays).run()
    assert all(result.reported[parent] <= result.submitted[child] for parent, child in edges)
    assert result.figures().makespan * _US >= waits.longest_way(works)
    prompt = Simulation(platform=platform, workload=work).run()
    assert prompt.figures().makespan * _US <= sum(works) / 8 + waits.longest_way(works)


def test_workloads_are_sorted_and_added_with_who_waits_for_whom() -> None:
    late = Workload(submitted=[50, 0], work=[1, 2], waits=Dependencies.of(2, [(1, 0)]))
    assert late.work.tolist() == [2, 1]
    assert late.waits is not None
    assert (late.waits.starts.tolist(), late.waits.parents.tolist()) == ([0, 0, 1], [0])
    both = Workload(submitted=[10], work=[9]) + late
    assert both.work.tolist() == [2, 9, 1]
    assert both.waits is not None
    assert both.waits.parents.tolist() == [0]
    assert both.waits.counts.tolist() == [0, 0, 1]


def test_a_circle_and_a_stranger_are_refused() -> None:
    with pytest.raises(ValueError, match="job 1: it waits for a job that waits for it"):
        Dependencies.of(3, [(1, 2), (2, 1)])
    with pytest.raises(ValueError, match="there are 3 jobs"):
        Dependencies.of(3, [(3, 1)])


def test_a_job_that_no_host_can_hold_is_told_though_it_would_wait() -> None:
    work = Workload(submitted=[0, 0], work=[1, 1], cores=[1, 5], waits=Dependencies.of(2, [(0, 1)]))
    with pytest.raises(JobTooLargeError, match="job 1: no host has 5 cores"):
        Simulation(platform=Platform.star(hosts=1, cores=4), workload=work).run()


def test_a_batch_service_takes_workflows_too() -> None:
    work = Workload(
        submitted=[0, 0, 0],
        work=[5, 7, 1],
        nodes=[1, 2, 1],
        grid=True,
        waits=Dependencies.of(3, [(0, 2), (1, 2)]),
    )
    result = Simulation(platform=Platform.star(hosts=2), workload=work).run()
    assert result.starts.tolist() == [0, 5, 12]
    assert result.figures().makespan == 13e-6


_TASKS: list[tuple[str, list[str], float]] = [
    ("split", [], 4.2),
    ("left", ["split"], 10.0),
    ("right", ["split"], 2.5),
    ("join", ["left", "right"], 1.0),
]


def _instance(version: str) -> str:
    if version == "1.4":
        tasks = [
            {
                "name": name,
                "type": "compute",
                "parents": parents,
                "runtimeInSeconds": took,
                "cores": 2.0,
                "memoryInBytes": 3 * 2**20 + 1,
                "files": [{"link": "output", "name": f"{name}.out", "sizeInBytes": 10}],
            }
            for name, parents, took in _TASKS
        ]
        return json.dumps({"name": "w", "schemaVersion": "1.4", "workflow": {"tasks": tasks}})
    specified = [
        {"name": name, "id": name, "parents": parents, "children": [], "outputFiles": [f"{name}.out"]}
        for name, parents, _ in _TASKS
    ]
    ran = [
        {"id": name, "runtimeInSeconds": took, "coreCount": 1.5, "memoryInBytes": 3 * 2**20 + 1}
        for name, _, took in _TASKS
    ]
    workflow = {"specification": {"tasks": specified}, "execution": {"tasks": ran}}
    return json.dumps({"name": "w", "schemaVersion": version, "workflow": workflow})


@pytest.mark.parametrize("version", ["1.4", "1.5", "1.6"])
def test_an_instance_of_wfformat_runs_with_its_recorded_times(tmp_path: Path, version: str) -> None:
    (tmp_path / "w.json").write_text(_instance(version))
    work = read_wfformat(tmp_path / "w.json", user="ada")
    assert work.cores.tolist() == [2] * 4
    assert work.memory.tolist() == [4] * 4
    result = Simulation(platform=Platform.star(hosts=2, cores=2), workload=work).run()
    assert result.jobs["started"].tolist() == [0.0, 4.2, 4.2, 14.2]  # type: ignore[union-attr]
    assert result.figures("ada").wait_mean == 0.0


@pytest.mark.parametrize("version", ["1.4", "1.5"])
def test_what_is_wrong_in_an_instance_is_told(tmp_path: Path, version: str) -> None:
    (tmp_path / "w.json").write_text(_instance(version).replace('["split"]', '["spilt"]'))
    with pytest.raises(WorkflowError, match='no task with the id "spilt"; did you mean split'):
        read_wfformat(tmp_path / "w.json")


_DAG = """\
JOB a a.sub
JOB b b.sub
JOB c c.sub NOOP
JOB d d.sub
FINAL e e.sub
PARENT a CHILD b c
PARENT b c CHILD d
"""


def test_the_nodes_of_a_dag_file_are_jobs(tmp_path: Path) -> None:
    (tmp_path / "flow.dag").write_text(_DAG)
    work = read_dag(tmp_path / "flow.dag", duration=Constant(10))
    result = Simulation(platform=Platform.star(hosts=1, cores=4), workload=work).run()
    assert (result.starts / _US).tolist() == [0, 10, 10, 20]
    (tmp_path / "flow.dag").write_text("JOB a a.sub\nJUB b b.sub\n")
    with pytest.raises(WorkflowError, match=r"flow\.dag, line 2"):
        read_dag(tmp_path / "flow.dag", duration=Constant(10))


_FILE = """\
[platform]
cores = 4

[[workload]]
workflow = "w.json"
times = 3
every = "1 h"

[[workload]]
dag = "flow.dag"
duration = "1 min"
user = "bob"
"""


def test_a_file_names_workflows(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(_instance("1.5"))
    (tmp_path / "flow.dag").write_text(_DAG)
    (tmp_path / "study.toml").write_text(_FILE)
    result = read(tmp_path / "study.toml").simulation.run()
    assert (result.figures("user").jobs, result.figures("bob").jobs) == (12, 4)
    assert result.figures().makespan == pytest.approx(2 * 3600 + 15.2)


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        ('workflow = "w.json"', 'workflow = "v.json"', "5: workload.0.workflow: v.json: No such file"),
        (
            'dag = "flow.dag"',
            'dag = "flow.dag"\nswf = "x"',
            "workload.1: only one of these says what the jobs are: jobs, swf, workflow, dag",
        ),
        ("times = 3", "times = 0", "6: workload.0.times: Expected `int` >= 1"),
        ('workflow = "w.json"', 'workflow = "flow.dag"', "flow.dag: "),
    ],
)
def test_workflows_that_cannot_be_are_refused_with_their_place(
    tmp_path: Path, was: str, now: str, sentence: str
) -> None:
    (tmp_path / "w.json").write_text(_instance("1.5"))
    (tmp_path / "flow.dag").write_text(_DAG)
    (tmp_path / "study.toml").write_text(_FILE.replace(was, now))
    with pytest.raises(SimulationFileError) as refused:
        read(tmp_path / "study.toml")
    assert sentence in str(refused.value)


def test_jobs_of_a_submit_file_ask_for_what_they_ask_for_there(tmp_path: Path) -> None:
    (tmp_path / "sweep.sub").write_text(
        "executable = /no/such/program\narguments = $(x)\nrequest_cpus = $(x)\nrequest_memory = 2 GB\n"
        "requirements = Speed > 1\nrank = Memory\npriority = 3\nconcurrency_limits = disk:2\n"
        "queue x in (1 2)\naccounting_group = physics\nqueue x in (4)\n"
    )
    work = read_submit(tmp_path / "sweep.sub", duration=Constant(60), at=np.array([0, 5]), user="bob")
    assert work.cores.tolist() == [1, 2, 4, 1, 2, 4]
    assert work.memory.tolist() == [2048] * 6
    assert work.priority.tolist() == [3] * 6
    assert work.work.tolist() == [60_000_000] * 6
    assert [work.users[user] for user in work.user.tolist()] == ["bob", "bob", "physics.bob"] * 2
    assert "Speed > 1" in work.kinds[0].requirements
    assert (work.kinds[0].rank, work.kinds[0].concurrency_limits) == ("Memory", "disk:2")


def test_a_plain_submit_file_is_for_both_models(tmp_path: Path) -> None:
    (tmp_path / "plain.sub").write_text("executable = /bin/sleep\nqueue 5\n")
    for model in ("wrench", "kettle"):
        (tmp_path / "study.toml").write_text(
            f'model = "{model}"\n[platform]\ncores = 2\n'
            '[workload]\nsubmit = "plain.sub"\nduration = "1 min"\nafter = "1 h"\n'
        )
        result = read(tmp_path / "study.toml").simulation.run()
        assert (result.figures().ended, result.figures().makespan) == (5, 180.0)
        assert result.submitted.tolist() == [3_600_000_000] * 5


@pytest.mark.parametrize(
    "statement",
    [
        "include : touch ran |",
        "include command : touch ran",
        "include command into kept : touch ran",
        "queue x from touch ran |",
        "line = touch ran\ninclude : $(line) |",
    ],
)
def test_a_simulation_runs_no_program(tmp_path: Path, statement: str) -> None:
    """Who simulates a study of somebody else has nothing of it carried out."""
    (tmp_path / "sweep.sub").write_text(f"executable = /bin/sleep\n{statement}\nqueue\n")
    with pytest.raises(WorkflowError, match="'touch ran' is not run here"):
        read_submit(tmp_path / "sweep.sub", duration=Constant(60))
    assert ["sweep.sub"] == [path.name for path in tmp_path.iterdir()]


def test_the_same_submit_file_has_the_same_jobs(tmp_path: Path) -> None:
    """What it draws follows from the seed."""
    (tmp_path / "drawn.sub").write_text(
        "executable = /bin/sleep\nrequest_memory = $RANDOM_INTEGER(1,100000)\nqueue 3\n"
    )
    first, again, other = (
        read_submit(tmp_path / "drawn.sub", duration=Constant(60), seed=seed).memory.tolist()
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_submit_file_that_cannot_be_submitted_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.sub").write_text("executable = /bin/sleep\nrequest_cpus = many\nqueue\n")
    (tmp_path / "study.toml").write_text('[platform]\n[workload]\nsubmit = "bad.sub"\n')
    with pytest.raises(SimulationFileError, match=r"bad\.sub"):
        read(tmp_path / "study.toml")


_PROMINENCE: Final = """\
{"name": "w", "jobs": [
   {"name": "make", "resources": {"cpus": 2, "memory": 1, "walltime": 5}, "tasks": [{"image": "a", "runtime": "singularity"}]},
   {"name": "use", "resources": {"cpusRange": [1, 4], "memoryPerCpu": 2, "walltime": 10},
    "tasks": [{"image": "a", "runtime": "singularity"}]}],
 "factories": [{"name": "f", "type": "repeat", "jobs": ["use"], "number": 3}],
 "dependencies": {"make": ["use"]}}
"""


def test_a_prominence_workflow_has_the_jobs_of_its_factories(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text(_PROMINENCE)
    work = read_prominence(path)
    assert work.cores.tolist() == [2, 1, 1, 1]
    assert work.memory.tolist() == [1000, 2000, 2000, 2000]
    assert work.limit.tolist() == work.work.tolist() == [300_000_000, *[600_000_000] * 3]
    assert work.waits is not None
    assert work.waits.counts.tolist() == [0, 1, 1, 1]
    assert read_prominence(path, duration=Constant(7), at=np.array([0, 9])).work.tolist() == [7_000_000] * 8


def test_a_prominence_job_is_a_workload(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(
        '{"resources": {"cpus": 1, "memory": 1, "walltime": 1}, "tasks": [{"image": "a", "runtime": "singularity"}]}'
    )
    (tmp_path / "study.toml").write_text('[platform]\n[workload]\nprominence = "job.json"\ntimes = 3\n')
    assert read(tmp_path / "study.toml").simulation.run().figures().makespan == 180.0
    (tmp_path / "job.json").write_text('{"resources": {"cpus": 0}}')
    with pytest.raises(SimulationFileError, match=r"job\.json: /resources"):
        read(tmp_path / "study.toml")
