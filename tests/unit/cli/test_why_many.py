"""What `kettle why` says of many jobs, and of the files of those that ended."""

import os
from pathlib import Path
from typing import Any

import pytest

from kettle.client import JobId, WhyReport, WhyReports
from kettle.client.explanations import job_files, policies
from kettle.client.explanations.many_jobs import answers, heading, single
from kettle.client.why_report import WhyGroup
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import Explanation, PolicyOutlook, UnmadeReason


def group(first: JobId, last: JobId, jobs: int) -> WhyGroup:
    ad: Ad = {"EnteredCurrentStatus": 40.0, "HoldReasonCode": 99}
    explained = Explanation(job=first, status="held", reason="x", submitter="ada", autocluster=None, ad=ad)
    return WhyGroup(jobs=jobs, last=last, report=WhyReport(job=first, explanation=explained))


def test_jobs_with_one_reason_are_told_together_with_commands_for_all_of_them() -> None:
    """By the number of the cluster, if no other group has jobs of it."""
    alone = answers(WhyReports(groups=[group(JobId(5, 0), JobId(5, 8), 9)]), now=100.0)
    (one,) = alone.groups
    assert heading(one) == "9 jobs, 5.0 to 5.8, are held for the same reason; of the first:"
    assert "kettle release 5," in one.answer.sentences[-1]
    both = [group(JobId(5, 0), JobId(5, 8), 8), group(JobId(5, 3), JobId(5, 3), 1)]
    first, second = answers(WhyReports(groups=both), now=100.0).groups
    assert "kettle release 5.0," in first.answer.sentences[-1]
    assert heading(second).startswith("Job 5.3 has been held")


@pytest.mark.parametrize(
    "narrowed",
    [{"whole": False}, {"more": 1}, {"unmade": [UnmadeReason(cluster=5, unmade=1, reason="max_idle")]}],
)
def test_what_is_about_some_jobs_of_a_cluster_has_no_commands_for_all(narrowed: dict[str, Any]) -> None:
    """Others may be there that run, or have another reason."""
    (one,) = answers(WhyReports(groups=[group(JobId(5, 3), JobId(5, 7), 2)], **narrowed), now=100.0).groups
    assert "kettle release 5.3," in one.answer.sentences[-1]


def test_the_newest_of_very_many_are_not_all() -> None:
    """Nothing is said of those that are not known."""
    ended: list[Ad] = [{"ClusterId": 5, "ProcId": proc, "JobStatus": 4, "ExitCode": 0} for proc in range(3)]
    (told,) = answers(WhyReports(groups=[], ended=ended, ended_more=True), now=100.0).others
    assert "Of the newest 3 jobs that have left the queue 3 exited with code 0 (as 5.0)." == told


def test_those_that_are_not_in_the_queue_are_counted() -> None:
    """Those to come with their reason, those that have left by how they ended, with one of each."""
    ended: list[Ad] = [
        {"ClusterId": 5, "ProcId": proc, "JobStatus": 4, "ExitCode": code}
        for proc, code in enumerate((0, 0, 1))
    ]
    ended.append({"ClusterId": 5, "ProcId": 3, "JobStatus": 4, "ExitSignal": 9})
    ended.append({"ClusterId": 5, "ProcId": 4, "JobStatus": 3, "ExitCode": 7})
    unmade = [UnmadeReason(cluster=6, unmade=1, reason="max_idle")]
    told = answers(WhyReports(groups=[], more=3, unmade=unmade, ended=ended), now=100.0)
    assert told.others == [
        "3 jobs more have other reasons.",
        "1 job of cluster 6 is not in the queue yet: max_idle.",
        (
            "5 jobs have left the queue: 2 exited with code 0 (as 5.0), 1 exited with code 1 (as 5.2), "
            "1 was killed by signal 9 (as 5.3), 1 were removed (as 5.4)."
        ),
    ]
    assert not single(WhyReports(groups=[], ended=ended))


def test_the_end_of_a_file_is_safe_for_a_terminal(tmp_path: Path) -> None:
    """The last lines, short ones, without what a terminal would carry out."""
    (file := tmp_path / "err").write_bytes(b"x\n" * 5000 + b"\x1b[31mred\x1b[0m \xff" + b"y" * 500)
    *_, last = job_files.tail(file) or []
    assert "\\x1b[31mred\\x1b[0m �" == last[: last.index("y")]
    assert len(last) < 250
    assert 10 == len(job_files.tail(file) or [])


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """Neither a pipe, which would keep us waiting, nor a directory, nor what is not there."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "absent"):
        assert job_files.tail(tmp_path / name) is None
    ad: Ad = {"Iwd": str(tmp_path), "Err": "absent", "Out": "/dev/null"}
    assert [
        f"What it wrote to its standard error is in {tmp_path}/absent, which cannot be read here."
    ] == list(job_files.shown(ad, failed=True))
    assert [] == list(job_files.shown(ad, failed=False))


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (
            PolicyOutlook(name="PeriodicRelease", action="release", expression="E", delay=0),
            "It is released by itself at the next look, because PeriodicRelease (E) is true.",
        ),
        (
            PolicyOutlook(name="PeriodicRemove", action="remove", expression="E", delay=90),
            "It is removed by itself in 1 min 30 s, when PeriodicRemove (E) becomes true, if nothing else changes.",
        ),
        (
            PolicyOutlook(
                name="P", action="release", expression="A && B", false=["B"], values={"N": "3", "M": '"x"'}
            ),
            'It is released by itself when P (A && B) is true; now it is not in B: N is 3, M is "x".',
        ),
        (
            PolicyOutlook(name="P", action="release", expression="E", never="the job was held by hand"),
            "Its P (E) does not count: the job was held by hand.",
        ),
    ],
)
def test_each_policy_has_its_sentence(policy: PolicyOutlook, sentence: str) -> None:
    """What it waits for, or when it comes."""
    assert [sentence] == list(policies.sentences([policy]))


def test_what_is_undefined_is_told_of_jobs_whose_ad_a_route_has_changed() -> None:
    """Of others only what time makes true."""
    lost, late, plain = (
        PolicyOutlook(name=name, action="hold", expression="E", delay=delay, false=["E"], values=values)
        for name, delay, values in (
            ("Lost", None, {"N": "undefined"}),
            ("Late", 9.0, {}),
            ("Plain", None, {"N": "1"}),
        )
    )
    assert [lost, late] == policies.to_come([lost, late, plain], {"RouteName": "Slurm"})
    assert [late] == policies.to_come([lost, late, plain], {})
    assert ["It is held by itself when Lost (E) is true; now it is not: N is undefined."] == list(
        policies.sentences([lost])
    )
