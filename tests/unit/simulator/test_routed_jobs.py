"""
Jobs that come by the compute entrypoint of a simulated pool: routes, their limits and their transforms, by the entrypoint's own decisions.
"""

from pathlib import Path
from typing import Any

import pytest

from kettle_services.simulator.invented.period_of_workload import SHARD
from kettle_services.simulator.simulation import JobTooLargeError
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_wire.events import Event, JobRouted, JobUnrouted

ROUTES = """\
JOB_ROUTER_ROUTE_NAMES = Large Small
JOB_ROUTER_ROUTE_Large @=end
  UNIVERSE VANILLA
  REQUIREMENTS RequestCpus > 2
  SET Requirements (TARGET.Cpus >= RequestCpus) && (TARGET.Speed =?= 2.0)
@end
JOB_ROUTER_ROUTE_Small @=end
  UNIVERSE VANILLA
  REQUIREMENTS RequestCpus <= 2
  MaxJobs = 2
  MaxIdleJobs = 2
@end
"""
FILE = """\
model = "kettle"
routes = "site.routes"

[[platform]]
cores = 8

[[platform]]
cores = 8
speed = 2.0

[[workload]]
jobs = 6
duration = 10
routed = true
"""


def study(tmp_path: Path, *, more: str = "", routes: str = ROUTES, text: str = FILE) -> Path:
    (tmp_path / "site.routes").write_text(routes)
    path = tmp_path / "study.toml"
    path.write_text(text + more)
    return path


def test_a_route_has_as_many_jobs_as_it_may_and_others_wait(tmp_path: Path) -> None:
    """Sixteen cores are free, and the route has two jobs: six of them take three times as long as one."""
    found: list[tuple[int, Event]] = []

    def record(at: int, shard: str, _stream: str, event: Event) -> None:
        if shard == SHARD:
            found.append((at // 1_000_000, event))

    result = read(study(tmp_path)).simulation.run(record)
    assert [0, 0, 10, 10, 20, 20] == sorted(round(start / 1e6) for start in result.starts.tolist())
    routed = [(at, event.route) for at, event in found if isinstance(event, JobRouted)]
    assert [(0, "Small")] * 2 + [(10, "Small")] * 2 + [(20, "Small")] * 2 == routed
    waits = [event.reason for _, event in found if isinstance(event, JobUnrouted)]
    assert {"Small: it has as many jobs as it may (MaxJobs = 2)" in reason for reason in waits} == {True}
    assert 4 == len(waits)


def test_a_route_says_where_its_jobs_run(tmp_path: Path) -> None:
    more = '\n[[workload]]\njobs = 2\nduration = 10\ncores = 4\nrouted = true\nuser = "pilot"\n'
    result = read(study(tmp_path, more=more)).simulation.run()
    pilots = result.workload.user == result.workload.users.index("pilot")
    assert result.hosts is not None
    assert {1} == set(result.hosts[pilots].tolist())
    assert {5_000_000} == set((result.ends - result.starts)[pilots].tolist())


def test_jobs_beside_them_need_no_route(tmp_path: Path) -> None:
    more = '\n[[workload]]\njobs = 3\nduration = 10\nuser = "local"\n'
    result = read(study(tmp_path, more=more)).simulation.run()
    local = result.workload.user == result.workload.users.index("local")
    assert {0} == set(result.starts[local].tolist())


def test_a_job_that_no_route_takes_is_told_before(tmp_path: Path) -> None:
    simulation = read(study(tmp_path, routes=ROUTES.replace("<= 2", "< 0"))).simulation
    with pytest.raises(JobTooLargeError, match=r"job 0: no route takes it; .*RequestCpus < 0 is false"):
        simulation.check()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"text": FILE.replace("routes =", "rotes =")}, "rotes: there is no such key, did you mean routes?"),
        ({"text": FILE.replace('routes = "site.routes"', "")}, "routed jobs need an entrypoint's routes"),
        ({"text": FILE.replace("site.routes", "other")}, "2: routes: other: No such file"),
        ({"routes": ROUTES.replace("RequestCpus > 2", "(")}, "study.toml:2: routes: site.routes"),
        (
            {"routes": ROUTES.replace("  UNIVERSE VANILLA\n  REQUIREMENTS RequestCpus > 2", 'GridResource = "batch slurm"')},
            "site.routes:2: the route Large leads to a batch system",
        ),
        ({"text": FILE.replace('"kettle"', '"wrench"')}, "routes: this table says nothing to the model wrench"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SimulationFileError) as refused:
        read(study(tmp_path, **said))
    assert sentence in str(refused.value)
