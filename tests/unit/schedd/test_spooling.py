"""Jobs whose files are sent to the access point: what their submission becomes."""

from pathlib import Path

import pytest

from kettle.jobs import apply
from kettle.jobs.submitted_ad import job_ad
from kettle.transfer.spooled_jobs import as_submitted, is_spooled
from kettle_services.schedd.domain.jobs.commands import Hold, Release, Remove
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.submission.spooling import STAYS, held, placed, released
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.events import ClusterSubmitted, JobReleased

ROOT = Path("/pool/state/spooled.schedd")
AD: Ad = {"Cmd": "/home/ada/run", "Iwd": "/home/ada", "LeaveJobInQueue": False}


def job(ad: Ad, columns: list[str], rows: list[list[Scalar]], proc: int) -> Ad:
    """The ad of a job of cluster 7, as the queue has it."""
    ad, columns, rows = placed((ad, columns, rows), ROOT)
    return job_ad(ClusterSubmitted(cluster=7, owner="ada", ad=ad, columns=columns, rows=rows), 10**12, proc)


def test_each_job_has_a_place_of_its_own() -> None:
    """Its Iwd, and there the two streams; what the submitter named is kept, and can be had again."""
    own: list[list[Scalar]] = [["out.0", "/x/err"], ["out.1", "/x/err"], ["same", "same"], ["/dev/null", "e"]]
    ads = [job(AD, ["Out", "Err"], own, proc) for proc in range(4)]
    assert [f"{ROOT}/7/{proc}" for proc in range(4)] == [ad["Iwd"] for ad in ads]
    streams = [(ad["Out"], ad["Err"]) for ad in ads]
    assert [("_condor_stdout", "_condor_stderr")] * 2 == streams[:2]
    assert [("_condor_stdout", "_condor_stdout"), ("/dev/null", "_condor_stderr")] == streams[2:]
    there = as_submitted(ads[1])
    assert ("/home/ada", "out.1", "/x/err") == (there["Iwd"], there["Out"], there["Err"])


def test_jobs_that_share_a_log_share_it_in_the_spool() -> None:
    """
    And those of other logs do not, whatever these are called; the cluster's number is put in by the queue.
    """
    logs = ["/a/log", "/a/log", "/b/log"]
    first, second, third = (
        job(AD, ["UserLog"], [[log] for log in logs], proc)["UserLog"] for proc in range(3)
    )
    assert first == second != third
    assert str(first).startswith(f"{ROOT}/7/log.")


def test_results_go_elsewhere_only_by_url() -> None:
    """
    The spool keeps them under their names in the sandbox: the submitter's own machine knows where they go there.
    """
    remaps = r"a = /home/ada/b; c\=d = https://there/x\;y"
    ad = job(AD | {"TransferOutputRemaps": remaps}, [], [[]], 0)
    assert r"c\=d=https://there/x\;y" == ad["TransferOutputRemaps"]
    assert remaps == as_submitted(ad)["TransferOutputRemaps"]


def test_names_count_in_any_case() -> None:
    ad = job({"Cmd": "/run", "IWD": "/home/ada", "out": "o"}, [], [[]], 0)
    assert (f"{ROOT}/7/0", "_condor_stdout") == (ad["Iwd"], ad["Out"])
    assert ("/home/ada", "o") == (ad["SUBMIT_Iwd"], ad["SUBMIT_Out"])
    assert not {"IWD", "out"} & set(ad)


@pytest.mark.parametrize(
    ("said", "expected"),
    [({}, STAYS), ({"LeaveJobInQueue": False}, STAYS), ({"leavejobinqueue": Expr("x")}, Expr("x"))],
)
def test_a_job_stays_until_its_results_are_fetched_unless_it_says_otherwise(said: Ad, expected: Expr) -> None:
    ad = job({"Cmd": "/run", "Iwd": "/", **said}, [], [[]], 0)
    assert expected == ad.get("LeaveJobInQueue", ad.get("leavejobinqueue"))


@pytest.mark.parametrize(
    "said",
    [
        {"JobMaterializeLimit": 3},
        {"ShouldTransferFiles": "no"},
        {"EC2AccessKeyId": "/home/ada/key"},
        {"SUBMIT_Iwd": "/"},
        {"TransferOutputRemaps": "nonsense"},
    ],
)
def test_what_would_open_other_files_is_refused(said: Ad) -> None:
    with pytest.raises(Unacceptable):
        placed((AD | said, [], [[]]), ROOT)
    (name, value), *_ = said.items()
    if name != "JobMaterializeLimit":  # which is the same for all jobs, or refused before
        with pytest.raises(Unacceptable):
            placed((AD, [name], [["YES"], [value]]), ROOT)


def test_only_its_files_release_it() -> None:
    """Neither a person nor a policy does; it can be removed, and a hold by its owner changes nothing."""
    waiting = evolve(Job(), held())
    with pytest.raises(Refused):
        decide(waiting, Release(reason="", by="ada"))
    assert [] == decide(waiting, Hold(reason="", by="ada"))
    assert [] != decide(waiting, Remove(reason="", by="ada"))
    event = released(waiting)
    assert isinstance(event, JobReleased)
    assert "idle" == evolve(waiting, event).status
    assert released(evolve(waiting, event)) is None
    by_hand = evolve(Job(), decide(Job(), Hold(reason="", by="ada"))[0])
    assert released(by_hand) is None


def test_its_ad_says_when_its_files_came() -> None:
    """A hold for files is nothing that counts as one; and a later one does not change the times."""
    ad = job(AD, [], [[]], 0)
    assert not is_spooled(ad)
    apply(ad, held(), 100 * 10**6)
    assert (5, 16, 100, 0) == (ad["JobStatus"], ad["HoldReasonCode"], ad["StageInStart"], ad["NumHolds"])
    assert "NumHoldsByReason" not in ad
    apply(ad, JobReleased(reason="Data files spooled"), 103 * 10**6)
    assert (1, 103) == (ad["JobStatus"], ad["StageInFinish"])
    apply(ad, decide(Job(), Hold(reason="", by="ada"))[0], 104 * 10**6)
    apply(ad, JobReleased(reason=""), 105 * 10**6)
    assert (103, 1) == (ad["StageInFinish"], ad["NumHolds"])
    assert is_spooled(ad)
