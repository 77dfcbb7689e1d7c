"""Files of jobs that Kettle's own deciders start: turns in the transfer queue, and shares of the network."""

import random
from pathlib import Path

import numpy as np
import pytest

from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.invented.play import Course
from kettle_services.simulator.platforms.lives import Failures
from kettle_services.simulator.platforms.network import Correction
from kettle_services.simulator.platforms.platform import Level, Platform
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.what_if_file import rules
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.events import Event, JobStarted

_RULES = rules(NegotiatorSettings(), worklife=1200.0, factors={})
_IDEAL = Correction()
_GIGABIT = 125_000_000
"""Bytes a second."""


def _run(
    platform: Platform, work: Workload, *, uploads: int = 0, downloads: int = 0, seed: int = 0
) -> Result:
    course = Course(max_concurrent_uploads=uploads, max_concurrent_downloads=downloads)
    return Simulation(
        platform=platform, workload=work, rules=_RULES, course=course, correction=_IDEAL, seed=seed
    ).run()


def _ends(result: Result) -> list[float]:
    return [round(end, 3) for end in (result.ends / 1e6).tolist()]


def _rack(width: int, cores: int = 1) -> Platform:
    """Hosts with links of their own behind one link that all share."""
    return Platform.tree([Level(width=1, link="1 Gbit/s"), Level(width=width, link="10 Gbit/s")], cores=cores)


def test_a_job_reads_works_and_writes() -> None:
    """
    A second for a gigabit, a minute of work, two seconds for two of them: the next job on that core waits as long.
    """
    work = Workload.generated(2, duration=60, reads=_GIGABIT, writes=2 * _GIGABIT)
    found = _run(Platform.star(hosts=1, link="1 Gbit/s"), work)
    assert [63.0, 126.0] == _ends(found)
    assert [0.0, 63.0] == pytest.approx((found.starts / 1e6).tolist(), abs=1e-3)


def test_what_moves_at_once_shares_a_link() -> None:
    work = Workload.generated(4, duration=10, reads=_GIGABIT)
    assert [14.0] * 4 == _ends(_run(_rack(4), work))


def test_in_the_transfer_queue_jobs_have_their_turns() -> None:
    """One at a time each has all of the link: they begin their work, and end, a second after one another."""
    work = Workload.generated(4, duration=10, reads=_GIGABIT)
    assert [11.0, 12.0, 13.0, 14.0] == _ends(_run(_rack(4), work, uploads=1))
    assert [12.0, 12.0, 14.0, 14.0] == _ends(_run(_rack(4), work, uploads=2))
    back = Workload.generated(4, duration=10, writes=_GIGABIT)
    assert [11.0, 12.0, 13.0, 14.0] == _ends(_run(_rack(4), back, downloads=1))
    assert [14.0] * 4 == _ends(_run(_rack(4), back, uploads=1))


def test_users_have_turns_one_after_the_other() -> None:
    """Bob's only job is read as the third one at the latest, however many Ada has."""
    ada = Workload.generated(5, duration=10, reads=_GIGABIT, user="ada")
    bob = Workload.generated(1, duration=10, reads=_GIGABIT, user="bob")
    found = _run(_rack(6), ada + bob, uploads=1)
    [end] = found.ends[found.workload.user == found.workload.users.index("bob")].tolist()
    assert end / 1e6 <= 13.001
    assert 16.0 == pytest.approx(found.ends.max() / 1e6, abs=1e-3)


def test_what_is_on_its_way_is_lost_with_its_host(tmp_path: Path) -> None:
    """
    The only host goes while the first job reads, and the second waits for its turn; both begin again when it is back.
    """
    (tmp_path / "outages.csv").write_text("host1,5,20\n")
    study = tmp_path / "study.toml"
    study.write_text(
        'model = "kettle"\n[platform]\ncores = 2\nlink = "1 Gbit/s"\noutages = "outages.csv"\n'
        f"[workload]\njobs = 2\nduration = 60\nreads = {10 * _GIGABIT}\n[kettle]\nmax_concurrent_uploads = 1\n"
    )
    simulation = read(study).simulation
    assert 1 == simulation.course.max_concurrent_uploads
    found = Simulation(
        platform=simulation.platform,
        workload=simulation.workload,
        rules=simulation.rules,
        course=simulation.course,
        correction=_IDEAL,
    ).run()
    assert [90.0, 100.0] == _ends(found)
    assert [(0, 0, 5), (1, 0, 5)] == [
        (job, start // 10**6, end // 10**6) for job, start, end in found.lost.tolist()
    ]


def test_a_program_begins_when_its_files_are_there() -> None:
    told: list[tuple[float, str]] = []

    def note(at: int, _shard: str, stream: str, event: Event) -> None:
        if isinstance(event, JobStarted):
            told.append((at / 1e6, stream))

    work = Workload.generated(2, duration=10, reads=_GIGABIT)
    course = Course(max_concurrent_uploads=1)
    Simulation(platform=_rack(2), workload=work, rules=_RULES, course=course, correction=_IDEAL).run(note)
    assert [(1.0, "job/1.0"), (2.0, "job/1.1")] == [(round(at, 3), stream) for at, stream in told]


@pytest.mark.parametrize("seed", range(20))
def test_without_a_queue_it_is_as_in_the_other_model(seed: int) -> None:
    """
    Jobs that all find a core at once: when each ends follows from the network alone, and that is the same.
    """
    draw = random.Random(seed)
    jobs = draw.randint(1, 12)
    work = Workload(
        submitted=np.sort(np.array([draw.randint(0, 5) * 10**6 for _ in range(jobs)])),
        work=[draw.randint(0, 10**7) for _ in range(jobs)],
        reads=[draw.choice([0, draw.randint(1, 3 * _GIGABIT)]) for _ in range(jobs)],
        writes=[draw.choice([0, draw.randint(1, 3 * _GIGABIT)]) for _ in range(jobs)],
    )
    # One host for each of them, so that it does not matter who has which.
    platform = _rack(jobs)
    other = Simulation(platform=platform, workload=work, correction=_IDEAL, messages=False).run()
    assert _run(platform, work).ends / 1e6 == pytest.approx(other.ends / 1e6, abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_all_jobs_end_whatever_fails(seed: int) -> None:
    """
    Hosts that fail every quarter of an hour, while jobs of some minutes read, work and write: each ends once, and no host has more jobs than cores.
    """
    work = Workload.generated(
        40, duration=200, every="20 s", poisson=True, reads=30 * _GIGABIT, writes=20 * _GIGABIT, seed=seed
    )
    platform = Platform.star(hosts=4, cores=2, link="1 Gbit/s")
    hosts = platform.failing([Failures(mean_up=900.0, mean_down=60.0)] * 4)
    found = _run(hosts, work, uploads=2, downloads=1, seed=seed)
    assert len(found.lost) > 0
    assert (found.ends - found.starts >= 250 * 10**6).all()
    for host in range(4):
        mine = [(int(found.starts[job]), int(found.ends[job])) for job in np.flatnonzero(found.hosts == host)]
        changes = sorted([(end, -1) for _, end in mine] + [(start, 1) for start, _ in mine])
        assert np.cumsum([change for _, change in changes]).max() <= 2


def test_machines_on_demand_have_no_links(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'model = "kettle"\n[platform]\nlink = "1 Gbit/s"\n[workload]\njobs = 1\nduration = 1\nreads = 5\n'
        '[[pool]]\nname = "cloud"\nmax = 2\n[[pool.offer]]\nname = "large"\nprovider = "any"\ncpus = 8\nmemory = 8192\n'
    )
    with pytest.raises(SimulationFileError, match="pool: machines on demand have no links"):
        read(study)
    study.write_text(study.read_text().partition("[[pool]]")[0] + "[kettle]\nmax_concurrent_uploads = -1\n")
    with pytest.raises(SimulationFileError, match=r"kettle\.max_concurrent_uploads"):
        read(study)
