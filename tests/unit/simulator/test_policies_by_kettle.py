"""Rules of a pool in files with the model kettle: groups, limits, preemption, speeds, hosts that leave."""

import json
from pathlib import Path

import numpy as np
import pytest

from kettle.archive import archived_frames
from kettle_services.cli.__main__ import main
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import JobTooLargeError
from kettle_services.simulator.simulation_file import SimulationFileError, read


def _run(directory: Path, text: str, before: str = 'model = "kettle"\n') -> Result:
    path = directory / "study.toml"
    path.write_text(before + text)
    return read(path).simulation.run()


def _busy(result: Result, user: str) -> int:
    """The most jobs of a user that ran at the same time."""
    chosen = result.workload.user == result.workload.users.index(user)
    times = sorted(
        [(end, -1) for end in result.ends[chosen].tolist()]
        + [(at, 1) for at in result.starts[chosen].tolist()]
    )
    return int(np.cumsum([change for _, change in times]).max())


def test_groups_have_their_quotas(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        """
        negotiator.groups = { physics = { quota = 3 }, chem = { quota = 1 } }
        [platform]
        cores = 4
        [[workload]]
        jobs = 12
        duration = 60
        user = "physics.ada"
        [[workload]]
        jobs = 12
        duration = 60
        user = "chem.bob"
        """,
    )
    assert (_busy(found, "physics.ada"), _busy(found, "chem.bob")) == (3, 1)


def test_no_more_jobs_run_than_a_concurrency_limit_permits(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        """
        negotiator.concurrency_limits = { matlab = 2 }
        [platform]
        cores = 8
        [[workload]]
        jobs = 8
        duration = 60
        concurrency_limits = "matlab"
        [[workload]]
        jobs = 4
        duration = 60
        user = "bob"
        """,
    )
    assert (_busy(found, "user"), _busy(found, "bob")) == (2, 4)


def test_a_job_takes_half_as_long_on_a_host_that_is_twice_as_fast(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        """
        [[platform]]
        speed = 2.0
        [[platform]]
        cores = 1
        [[workload]]
        jobs = 2
        duration = 60
        """,
    )
    assert sorted((found.ends - found.starts).tolist()) == [30_000_000, 60_000_000]


def test_jobs_can_ask_for_fast_hosts(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        """
        [[platform]]
        speed = 2.0
        [[platform]]
        cores = 4
        [[workload]]
        jobs = 2
        duration = 60
        requirements = "TARGET.Speed > 1"
        """,
    )
    assert sorted((found.ends - found.starts).tolist()) == [30_000_000, 30_000_000]


def test_who_has_the_better_priority_may_take_what_others_have(tmp_path: Path) -> None:
    text = """
        factors = { bob = 1000000 }
        negotiator.preemption_requirements = "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"
        machines.user_preemption = %s
        [platform]
        cores = 3
        [[workload]]
        jobs = 2
        duration = 10000
        user = "bob"
        [[workload]]
        jobs = 3
        duration = 60
        every = 10
        user = "ada"
        """
    left, taken = (_run(tmp_path, text % said) for said in ("false", "true"))
    bob = left.workload.user == left.workload.users.index("bob")
    assert left.starts[bob].tolist() == [0, 0]
    assert left.starts[~bob].tolist()[1] == 60_000_000, "when the first of ada's has ended"
    assert taken.starts[~bob].tolist()[1] == 10_000_000
    assert 0 < taken.starts[bob].max() < 200_000_000, "a job of bob had to begin again"


def test_hosts_come_and_go(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        """
        [[platform]]
        leaves = 90
        [[platform]]
        joins = 200
        [[workload]]
        jobs = 2
        duration = 60
        """,
    )
    assert found.starts.tolist() == [0, 200_000_000]


def test_a_pool_in_which_nothing_more_can_happen_ends(tmp_path: Path) -> None:
    found = _run(tmp_path, "[platform]\nleaves = 90\n[workload]\njobs = 3\nduration = 60\n")
    assert found.ends.tolist() == [60_000_000, -1, -1]
    assert found.starts.tolist()[2] == -1


def test_it_can_end_before_the_jobs_do(tmp_path: Path) -> None:
    found = _run(
        tmp_path, "[platform]\n[workload]\njobs = 3\nduration = 60\n", 'model = "kettle"\nuntil = "100 s"\n'
    )
    assert found.ends.tolist() == [60_000_000, -1, -1]
    assert found.starts.tolist() == [0, 60_000_000, -1]
    assert (found.figures().makespan, found.figures().utilisation) == (100.0, 1.0)
    assert found.figures().core_hours == pytest.approx(100 / 3600)


def test_hosts_fail_and_their_jobs_begin_again_elsewhere(tmp_path: Path) -> None:
    """
    The first host is away from 30 s to 200 s: its job of 60 s waits for the second one, and has lost 30 s.
    """
    (tmp_path / "outages.csv").write_text("host1,30,200\n")
    found = _run(
        tmp_path,
        """
        [platform]
        hosts = 2
        outages = "outages.csv"
        [workload]
        jobs = 2
        duration = 60
        """,
    )
    assert sorted(found.ends.tolist()) == [60_000_000, 120_000_000]
    assert [(0, 30_000_000)] == [(start, end) for _, start, end in found.lost.tolist()]
    assert found.figures().lost_core_hours == pytest.approx(30 / 3600)
    assert found.hosts is not None
    assert found.hosts.tolist() == [1, 1]


def test_hosts_that_fail_at_random_fail_as_in_the_other_model(tmp_path: Path) -> None:
    text = """
        [platform]
        hosts = 3
        mtbf = 100
        repair = 10
        [workload]
        jobs = 30
        duration = 50
        """
    mine, others = _run(tmp_path, text), _run(tmp_path, text, 'model = "wrench"\n')
    assert (mine.ends >= 0).all()
    assert len(mine.lost) > 5
    assert mine.figures().makespan == pytest.approx(others.figures().makespan, rel=0.15)


def test_a_pool_whose_hosts_always_fail_too_early_ends(tmp_path: Path) -> None:
    """
    A job of a year on a host that fails once a day: it is lost again and again, until the simulation is over.
    """
    text = '[platform]\nmtbf = "1 d"\nrepair = "1 h"\n[workload]\njobs = 1\nduration = "365 d"\n'
    found = _run(tmp_path, text, 'model = "kettle"\nuntil = "30 d"\n')
    assert found.ends.tolist() == [-1]
    assert len(found.lost) > 10
    assert found.figures().makespan == 30 * 86_400


def test_jobs_wait_for_those_before_them(tmp_path: Path) -> None:
    """A diamond, twice, on three cores: at 90 s one of the second one has to wait until 120 s."""
    (tmp_path / "flow.dag").write_text(
        "".join(f"JOB {name} {name}.sub\n" for name in "ABCD") + "PARENT A CHILD B C\nPARENT B C CHILD D\n"
    )
    found = _run(
        tmp_path,
        """
        [platform]
        cores = 3
        [workload]
        dag = "flow.dag"
        duration = 60
        times = 2
        every = 30
        """,
    )
    minute = 60_000_000
    assert found.starts.tolist()[0] == 0
    assert found.ends.max() == found.figures().makespan * 1e6
    waits = found.workload.waits
    assert waits is not None
    for job in range(len(found.workload)):
        parents = waits.parents[waits.starts[job] : waits.starts[job + 1]]
        if len(parents):
            assert found.submitted[job] == found.ends[parents].max()
        assert found.starts[job] >= found.submitted[job] >= 0
    assert ((found.ends - found.starts) == minute).all()
    assert found.figures().makespan == 240.0


def test_hosts_have_a_price(tmp_path: Path) -> None:
    """
    Two hosts for a tenth of an hour at 1.5, and one that comes at half of it at 10; others have no price.
    """
    found = _run(
        tmp_path,
        """
        [[platform]]
        hosts = 2
        price = 1.5
        [[platform]]
        joins = 180
        price = 10
        [[platform]]
        [[workload]]
        jobs = 1
        duration = 360
        """,
    )
    assert found.figures().cost == pytest.approx(0.1 * 3 + 0.05 * 10)
    assert found.figures("user").cost is None


def test_latency_and_start_are_waited_for(tmp_path: Path) -> None:
    found = _run(
        tmp_path,
        "[platform]\n[workload]\njobs = 1\nduration = 60\n[kettle]\nlatency = 2\nstart = 0.5\n",
    )
    assert (found.starts.tolist(), found.ends.tolist()) == ([2_500_000], [62_500_000])


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ('requirements = "TARGET.Speed > 3"', "job 0: no host meets TARGET.Speed > 3"),
        ('requirements = "TARGET.OpSys == \\"WINDOWS\\""', "job 0: no host meets TARGET.OpSys"),
        ('memory = "8 GiB"', "job 0: no host has 1 cores and 8192 MiB of memory"),
    ],
)
def test_a_job_that_no_host_takes_is_told_before_as_kettle_why_says_it(
    tmp_path: Path, says: str, why: str
) -> None:
    with pytest.raises(JobTooLargeError) as refused:
        _run(tmp_path, f'[platform]\nmemory = "4 GiB"\n[workload]\njobs = 1\nduration = 60\n{says}\n')
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('model = "kettle"\n[machines]\nrank = "1 +"', "machines.rank: it is no expression"),
        ('until = "soon"\nmodel = "kettle"', "until: "),
        ('[workload]\nrank = "Memory"', 'by the model kettle only: model = "kettle"'),
        ('model = "kettle"\n[platform]\njoins = 5\nleaves = 5', "hosts leave after they have joined"),
        ('model = "kettle"\n[workload]\nrank = "1 +"', "rank is no expression"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "study.toml"
    tables = {"workload": "jobs = 1\nduration = 1", "platform": "cores = 1"}
    for name, usual in tables.items():
        text = (
            text.replace(f"[{name}]", f"[{name}]\n{usual}")
            if f"[{name}]" in text
            else f"{text}\n[{name}]\n{usual}"
        )
    path.write_text(text)
    with pytest.raises(SimulationFileError) as refused:
        read(path)
    assert sentence in str(refused.value)


async def test_events_are_written_as_a_pool_records_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.toml"
    path.write_text('model = "kettle"\n[platform]\n[workload]\njobs = 2\nduration = 60\n')
    assert 0 == main(["simulate", "run", str(path), "--events", str(tmp_path / "events"), "--json"])
    assert json.loads(capfd.readouterr().out)["runs"][0]["all"]["ended"] == 2
    frames = [frame async for frame in archived_frames(tmp_path / "events", "schedd.simulated")]
    assert [(frame.at, [entry.type.partition("/")[0] for entry in frame.entries]) for frame in frames] == [
        (0, ["cluster.submitted", "claim.granted", "job.assigned", "job.started"]),
        (60_000_000, ["job.completed", "job.assigned", "job.started"]),
        (120_000_000, ["job.completed", "claim.ended"]),
    ]
    path.write_text(path.read_text().replace("kettle", "wrench"))
    assert 2 == main(["simulate", "run", str(path), "--events", str(tmp_path / "more")])
