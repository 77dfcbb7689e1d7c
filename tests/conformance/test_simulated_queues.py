"""
A simulated batch service, first come, first served, held against the same queue in SimPy, a library for simulations.
"""

import json
import random
from pathlib import Path
from typing import Final

from tests.scenario.client_environments import python_with

from kettle.testing.commands.running import execute
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.workloads.workload import Workload

_CASES: Final = 100
_PEER: Final = """\
import json, sys
import simpy

def job(environment, idle, at, work, cores, starts, place):
    yield environment.timeout(at)
    yield idle.get(cores)
    starts[place] = environment.now
    yield environment.timeout(work)
    yield idle.put(cores)

found = []
for cores, jobs in json.load(open(sys.argv[1])):
    environment = simpy.Environment()
    idle = simpy.Container(environment, cores, init=cores)
    starts = [None] * len(jobs)
    for place, (at, work, wanted) in enumerate(jobs):
        environment.process(job(environment, idle, at, work, wanted, starts, place))
    environment.run()
    found.append(starts)
print(json.dumps(found))
"""

Job = tuple[int, int, int]
"""Submitted at, work, cores."""


async def test_jobs_start_as_they_do_in_simpy(tmp_path: Path) -> None:
    """
    A hundred queues of one node, whose jobs take some of its cores, and stand behind the first that does not fit.
    """
    python = await python_with(["simpy==4.1.2"], "simpy", tmp_path)
    draw = random.Random(6)
    cases = [(cores, _jobs(draw, cores)) for cores in (draw.randint(1, 8) for _ in range(_CASES))]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "peer.py").write_text(_PEER)
    ran = await execute([python, str(tmp_path / "peer.py"), str(tmp_path / "cases.json")], tmp_path, {})
    assert 0 == ran.status, ran
    assert json.loads(ran.out) == [_starts(cores, jobs) for cores, jobs in cases]


def _jobs(draw: random.Random, cores: int) -> list[Job]:
    at = 0
    found: list[Job] = []
    for _ in range(draw.randint(1, 60)):
        at += draw.choice([0, 1, 13, 40])
        found.append((at, draw.randint(0, 100), draw.randint(1, cores)))
    return found


def _starts(cores: int, jobs: list[Job]) -> list[int]:
    submitted, work, wanted = zip(*jobs, strict=True)
    simulation = Simulation(
        platform=Platform.star(hosts=1, cores=cores),
        workload=Workload(submitted=submitted, work=work, cores=wanted, grid=True),
    )
    found: list[int] = simulation.run().starts.tolist()
    return found
