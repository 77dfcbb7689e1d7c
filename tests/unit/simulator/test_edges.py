"""
What is at the edge of what can be: nothing to do, nothing in the way, everything at once; and what a run says of itself.
"""

import json
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kettle_services.cli.__main__ import main
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.domain.clock import CHARGES, COMES, CYCLE, ENDS, PLANS, ROUTES, Clock
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.invented.play import LOOKS
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.distributions import Uniform
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.events import Event, JobAssigned, JobCompleted, JobVacated
from kettle_wire.simulations import SimulationProgress

USUAL: Final = rules(NegotiatorSettings(), worklife=0.0, factors={})
MODELS: Final = {"wrench": None, "kettle": USUAL}
_US: Final = 1_000_000


def run(model: str, platform: Platform, work: Workload) -> Result:
    by: PoolRules | None = MODELS[model]
    return Simulation(platform=platform, workload=work, rules=by).run()


@pytest.mark.parametrize("model", MODELS)
def test_jobs_of_no_length_end_when_they_begin(model: str) -> None:
    result = run(model, Platform.star(hosts=1), Workload.generated(3, duration=0))
    assert 3 == result.figures().ended
    assert result.starts.tolist() == result.ends.tolist()


@pytest.mark.parametrize("model", MODELS)
def test_links_that_take_no_time_are_as_none(model: str) -> None:
    work = Workload.generated(6, duration=10, reads=1_000_000, writes=1_000)
    wide = run(model, Platform.star(hosts=2, link="1e9 Gbit/s", latency=0), work)
    none = run(model, Platform.star(hosts=2), work)
    assert none.starts.tolist() == [round(at / _US) * _US for at in wide.starts.tolist()]


@pytest.mark.parametrize("model", MODELS)
def test_jobs_of_one_moment_begin_in_the_order_of_their_numbers(model: str) -> None:
    result = run(model, Platform.star(hosts=1), Workload.generated(60, duration=1))
    assert sorted(result.starts.tolist()) == result.starts.tolist()


def test_what_is_due_at_one_moment_has_an_order() -> None:
    """
    Jobs end, others come, they get routes, what was used is charged, a cycle sees all that, and machines are planned for the rest.
    """
    clock, found = Clock(0), list[str]()
    for turn, name in [
        (PLANS, "plans"), (CYCLE, "cycle"), (ENDS, "ends"), (CHARGES, "charges"), (COMES, "comes"), (ROUTES, "routes"),
        (COMES, "comes second"),
    ]:  # fmt: skip
        clock.at(5, lambda name=name: found.append(name), turn=turn)  # type: ignore[misc]
    clock.run(6)
    assert ["ends", "comes", "comes second", "routes", "charges", "cycle", "plans"] == found


def test_core_hours_are_the_sum_of_all_attempts() -> None:
    """Runs that were lost with their hosts are told apart, and both together are what the events say."""
    began: dict[str, int] = {}
    whole = 0

    def note(at: int, _shard: str, stream: str, event: Event) -> None:
        nonlocal whole
        match event:
            case JobAssigned():
                began[stream] = at
            case JobCompleted() | JobVacated():
                whole += at - began.pop(stream)
            case _:
                pass

    platform = Platform.star(hosts=3, cores=2)
    going = msgspec.structs.replace(platform.hosts[0], leaves=130 * _US)
    platform = msgspec.structs.replace(platform, hosts=(going, *platform.hosts[1:]))
    work = Workload.generated(40, duration=Uniform(20, 60), seed=5)
    figures = Simulation(platform=platform, workload=work, rules=USUAL).run(note).figures()
    assert not began
    assert figures.lost_core_hours > 0
    assert figures.core_hours + figures.lost_core_hours == pytest.approx(whole / _US / 3600)


@pytest.mark.parametrize("model", MODELS)
def test_who_watches_is_told_how_many_have_ended(model: str) -> None:
    told: list[int] = []
    work = Workload.generated(LOOKS, duration=1, every=1)
    Simulation(platform=Platform.star(hosts=2), workload=work, rules=MODELS[model]).run(
        watch=lambda ended, jobs: told.append(ended * (jobs == LOOKS))
    )
    assert LOOKS - 1 <= len(told) <= LOOKS
    assert sorted(told) == told
    assert told[-1] > 0.9 * LOOKS


def test_progress_is_lines_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").write_text("[platform]\n[[workload]]\njobs = 5\nduration = 1\nevery = 1\n")
    said = ["simulate", "run", str(tmp_path / "a.toml"), "--json", "--progress", "--seed", "1", "--seed", "2"]
    assert 0 == main(said)
    out, err = capsys.readouterr()
    lines = [msgspec.json.decode(line, type=SimulationProgress) for line in err.splitlines()]
    assert {(1, 2), (2, 2)} == {(line.run, line.runs) for line in lines}
    assert (0, 5) == (lines[0].ended, lines[0].jobs)
    assert 2 == len(json.loads(out)["runs"])


def test_a_run_says_before_how_much_memory_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A million jobs on a million cores took 4.8 GB with Kettle's deciders; it is told where that may be too much.
    """
    work, platform = Workload.generated(1_000_000, duration=600), Platform.star(hosts=25_000, cores=40)
    assert 4.5e9 < Simulation(platform=platform, workload=work, rules=USUAL).memory < 7e9
    assert 3e8 < Simulation(platform=platform, workload=work).memory < 5e8
    file = tmp_path / "a.toml"
    file.write_text("[platform]\n[[workload]]\njobs = 5\nduration = 1\n")
    assert 0 == main(["simulate", "check", str(file)])
    assert "It needs about 60 MiB of memory." in capsys.readouterr().out
    monkeypatch.setattr("kettle_services.cli.simulation.running.available_memory", lambda: 1 << 20)
    assert 0 == main(["simulate", "run", str(file)])
    assert "It needs about 60 MiB of memory, and this machine has 1 MiB left." in capsys.readouterr().err
