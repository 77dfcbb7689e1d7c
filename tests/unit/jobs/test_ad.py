import msgspec
import pytest

from kettle.jobs import apply, ended, job_ad, job_ads
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.codes import JobStatus
from kettle_wire.events import (
    ClusterSubmitted,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDisconnected,
    JobEvent,
    JobHeld,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobVacated,
    Usage,
)
from kettle_wire.tasks import Step

QUEUED = 1_790_000_000
SUBMITTED = ClusterSubmitted(
    cluster=7,
    owner="alice",
    ad={"Cmd": "/bin/true", "requestcpus": 2, "Out": "o.$(ClusterId)", "UserLog": "/tmp/$(ClusterId).log"},
    columns=["Args", "out"],
    rows=[["a", "first"], ["b $(ClusterId)", "second"]],
)
ASSIGNED = JobAssigned(attempt=1, claim="c#1", slot="slot1_1@ep", startd="ep")
STARTED = JobStarted(attempt=1, pid=42, at=QUEUED + 11.5)
USAGE = Usage(wall=20.0, user_cpu=8.0, system_cpu=2.0, memory_kib=2049, disk_kib=50, sent=10, received=20)


def after(*events: JobEvent, proc: int = 0) -> Ad:
    """The ad of a job after events that were recorded 10, 20, … seconds after its submission."""
    ad = job_ad(SUBMITTED, QUEUED * 1_000_000, proc, schedd="ap")
    for number, event in enumerate(events, 1):
        apply(ad, event, (QUEUED + 10 * number) * 1_000_000)
    return ad


def part(ad: Ad, *names: str) -> dict[str, object]:
    return {name: ad[name] for name in names}


def found(ad: Ad, *names: str) -> dict[str, object]:
    """The attributes that exist."""
    return {name: ad[name] for name in names if name in ad}


def test_submission_makes_the_ad() -> None:
    """
    The item's columns replace the cluster's attributes whatever their case, and the cluster's number is put in.
    """
    ad = after(proc=1)
    assert {
        "ClusterId": 7,
        "ProcId": 1,
        "Args": "b 7",
        "Out": "second",
        "UserLog": "/tmp/7.log",
        "Owner": "alice",
        "User": "alice",
        "RequestCpus": 2,
        "JobStatus": 1,
        "QDate": QUEUED,
        "GlobalJobId": f"ap#7.1#{QUEUED}",
        "TotalSubmitProcs": 2,
    } == part(
        ad, "ClusterId", "ProcId", "Args", "Out", "UserLog", "Owner", "User", "RequestCpus", "JobStatus", "QDate",
        "GlobalJobId", "TotalSubmitProcs",
    )  # fmt: skip
    assert len({name.lower() for name in ad}) == len(ad)


def test_cluster_number_inside_an_expression() -> None:
    """The macro is also replaced in the text of an expression."""
    submitted = ClusterSubmitted(
        cluster=3, owner="a", ad={"Requirements": Expr('TARGET.Tag == "$(ClusterId)"')}, columns=[], rows=[[]]
    )
    assert Expr('TARGET.Tag == "3"') == job_ad(submitted, 0, 0)["Requirements"]


def test_a_submitter_cannot_lie_about_itself() -> None:
    """Identity and history of a job are never taken from the submitted ad, however they are spelled."""
    lie: Ad = {
        "owner": "root",
        "USER": "root@x",
        "jobstatus": 4,
        "numjobstarts": 99,
        "holdReason": "x",
        "clusterid": 1,
    }
    ad = job_ad(ClusterSubmitted(cluster=9, owner="eve", ad=lie, columns=[], rows=[[]]), 0, 0)
    assert {"Owner": "eve", "User": "eve", "JobStatus": 1, "NumJobStarts": 0, "ClusterId": 9} == part(
        ad, "Owner", "User", "JobStatus", "NumJobStarts", "ClusterId"
    )
    assert not {"owner", "USER", "jobstatus", "holdReason", "HoldReason", "clusterid"} & set(ad)


def test_the_owner_may_have_a_domain() -> None:
    """A User that names the owner in a domain stays."""
    ad = job_ad(ClusterSubmitted(cluster=9, owner="eve", ad={"user": "eve@uni"}, columns=[], rows=[[]]), 0, 0)
    assert "eve@uni" == ad["User"]


def test_no_such_job() -> None:
    """A process number beyond the items is an error, not an empty ad."""
    with pytest.raises(IndexError):
        job_ad(SUBMITTED, 0, 2)


def test_a_run_to_the_end() -> None:
    """A completed job carries its exit, what it used, and where it ran."""
    ad = after(ASSIGNED, STARTED, JobCompleted(attempt=1, exit=ExitRecord(code=3, at=1.0), usage=USAGE))
    assert {
        "JobStatus": 4,
        "LastJobStatus": 2,
        "EnteredCurrentStatus": QUEUED + 30,
        "CompletionDate": QUEUED + 30,
        "NumShadowStarts": 1,
        "NumJobStarts": 1,
        "JobStartDate": QUEUED + 10,
        "JobCurrentStartDate": QUEUED + 10,
        "JobCurrentStartExecutingDate": QUEUED + 11,
        "LastRemoteHost": "slot1_1@ep",
        "RemoteWallClockTime": 20.0,
        "CumulativeSlotTime": 40.0,
        "RemoteUserCpu": 8.0,
        "RemoteSysCpu": 2.0,
        "CpusUsage": 0.5,
        "ResidentSetSize": 2049,
        "MemoryUsage": 3,
        "DiskUsage": 50,
        "BytesSent": 10.0,
        "ExitBySignal": False,
        "ExitCode": 3,
    } == part(
        ad, "JobStatus", "LastJobStatus", "EnteredCurrentStatus", "CompletionDate", "NumShadowStarts",
        "NumJobStarts", "JobStartDate", "JobCurrentStartDate", "JobCurrentStartExecutingDate", "LastRemoteHost",
        "RemoteWallClockTime", "CumulativeSlotTime", "RemoteUserCpu", "RemoteSysCpu", "CpusUsage",
        "ResidentSetSize", "MemoryUsage", "DiskUsage", "BytesSent", "ExitBySignal", "ExitCode",
    )  # fmt: skip
    assert "RemoteHost" not in ad
    assert ended(ad)


def test_killed_by_a_signal() -> None:
    """A job that a signal ended has no exit code."""
    ad = after(ASSIGNED, STARTED, JobCompleted(attempt=1, exit=ExitRecord(signal=9)))
    assert {"ExitBySignal": True, "ExitSignal": 9} == part(ad, "ExitBySignal", "ExitSignal")
    assert "ExitCode" not in ad


def test_vacated_waits_again() -> None:
    """A vacated job is idle again; an attempt that nobody measured costs the time since its assignment."""
    ad = after(ASSIGNED, STARTED, JobVacated(attempt=1, ending=Ending(code=1008, reason="lost")))
    assert {
        "JobStatus": 1, "NumVacates": 1, "VacateReason": "lost", "VacateReasonCode": 1008, "CurrentHosts": 0,
        "RemoteWallClockTime": 20.0,
    } == part(
        ad, "JobStatus", "NumVacates", "VacateReason", "VacateReasonCode", "CurrentHosts", "RemoteWallClockTime"
    )  # fmt: skip


def test_a_second_run_keeps_the_first_start() -> None:
    """JobStartDate is of the first run, JobLastStartDate of the one before, sums go on."""
    vacated = JobVacated(attempt=1, ending=Ending(code=1004, reason=""), usage=USAGE)
    ad = after(ASSIGNED, vacated, ASSIGNED, JobCompleted(attempt=2, exit=ExitRecord(code=0), usage=USAGE))
    assert {
        "JobStartDate": QUEUED + 10, "JobLastStartDate": QUEUED + 10, "JobCurrentStartDate": QUEUED + 30,
        "RemoteWallClockTime": 40.0, "CumulativeRemoteUserCpu": 16.0, "RemoteUserCpu": 8.0,
    } == part(
        ad, "JobStartDate", "JobLastStartDate", "JobCurrentStartDate", "RemoteWallClockTime",
        "CumulativeRemoteUserCpu", "RemoteUserCpu",
    )  # fmt: skip


def test_held_while_running_stays_held() -> None:
    """A hold is the status at once; the end of the attempt does not make the job idle."""
    ad = after(
        ASSIGNED, JobHeld(code=1, reason="mine"), JobVacated(attempt=1, ending=Ending(code=1, reason="held"))
    )
    assert {"JobStatus": JobStatus.HELD, "HoldReason": "mine", "NumHolds": 1, "NumSystemHolds": 0} == part(
        ad, "JobStatus", "HoldReason", "NumHolds", "NumSystemHolds"
    )


def test_an_attempt_that_a_hold_or_removal_ended_says_why() -> None:
    """
    The reason of the eviction is that of the hold, with its codes, or of the removal, and both are counted.
    """
    held = JobHeld(code=3, subcode=7, reason="too big")
    ad = after(ASSIGNED, held, JobVacated(attempt=1, ending=Ending(code=1022, reason="x")))
    assert {"VacateReason": "too big", "VacateReasonCode": 3, "VacateReasonSubCode": 7} == part(
        ad, "VacateReason", "VacateReasonCode", "VacateReasonSubCode"
    )
    assert {
        "NumHoldsByReason": Expr("[ JobPolicy = 1 ]"),
        "NumVacatesByReason": Expr("[ JobPolicy = 1 ]"),
    } == part(ad, "NumHoldsByReason", "NumVacatesByReason")
    ad = after(
        ASSIGNED, JobRemoved(reason="no more"), JobVacated(attempt=1, ending=Ending(code=1008, reason="x"))
    )
    assert {"VacateReason": "no more", "VacateReasonCode": 1023} == part(
        ad, "VacateReason", "VacateReasonCode"
    )


def test_reasons_are_counted_by_name() -> None:
    """Each name once, in the order in which it came; a code that has no name by its number."""
    ad = after(*(JobHeld(code=code, reason="") for code in (1, 34, 1, 999)))
    assert Expr("[ UserRequest = 2; JobOutOfResources = 1; Code999 = 1 ]") == ad["NumHoldsByReason"]


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    [
        (3, None, {"ExitBySignal": False, "ExitCode": 3, "ExitStatus": 3}),
        (None, 9, {"ExitBySignal": True, "ExitSignal": 9, "ExitStatus": 0}),
    ],
)
def test_a_job_that_exited_and_stays_is_told_apart(
    code: int | None, number: int | None, shown: dict[str, object]
) -> None:
    """Its ad says how its program ended and how often it did; the job waits again."""
    requeued = JobVacated(
        attempt=1,
        ending=Ending(code=1005, reason="again"),
        exit=ExitRecord(code=code, signal=number),
        usage=USAGE,
    )
    ad = after(ASSIGNED, STARTED, requeued)
    assert {**shown, "JobStatus": 1, "NumJobCompletions": 1, "CompletionDate": 0} == part(
        ad, *shown, "JobStatus", "NumJobCompletions", "CompletionDate"
    )
    assert len({"ExitCode", "ExitSignal"} & ad.keys()) == 1


def test_release_remembers_the_hold() -> None:
    """A released job is idle and its hold attributes are its last ones."""
    ad = after(JobHeld(code=6, subcode=2, reason="no such file"), JobReleased(reason="again"))
    assert {
        "JobStatus": 1, "LastHoldReason": "no such file", "LastHoldReasonCode": 6, "LastHoldReasonSubCode": 2,
        "ReleaseReason": "again", "NumSystemHolds": 1,
    } == part(
        ad, "JobStatus", "LastHoldReason", "LastHoldReasonCode", "LastHoldReasonSubCode", "ReleaseReason",
        "NumSystemHolds",
    )  # fmt: skip
    assert "HoldReason" not in ad


def test_removed_leaves_with_its_attempt() -> None:
    """A removed job has left the queue when its attempt has ended, even if that ended by itself."""
    removed = (ASSIGNED, STARTED, JobRemoved(reason="no more"))
    assert not ended(after(*removed))
    for end in (
        JobVacated(attempt=1, ending=Ending(code=1023, reason="")),
        JobCompleted(attempt=1, exit=ExitRecord(code=0)),
    ):
        ad = after(*removed, end)
        assert ended(ad)
        assert {"JobStatus": 3, "RemoveReason": "no more", "CompletionDate": 0} == part(
            ad, "JobStatus", "RemoveReason", "CompletionDate"
        )


def test_jobs_of_a_cluster_share_nothing_that_changes() -> None:
    """
    The ads of a cluster are alike but for the columns, whatever becomes of one of them, and in one order.
    """
    submitted = ClusterSubmitted(
        cluster=9, owner="eve", ad={"Out": "o.$(ClusterId)"}, columns=["Args", "user", "TotalSubmitProcs"],
        rows=[["a", "eve@uni", 7], ["b", "ada", 7]],
    )  # fmt: skip
    made = job_ads(submitted, 5_000_000)
    first = made(0, "ap")
    apply(first, JobAssigned(attempt=1, claim="c", slot="s", startd="d"), 6_000_000)
    second = made(1, "ap")
    assert ["b", "eve", 2, "o.9", 1, "ap#9.1#5"] == [
        second[name] for name in ("Args", "User", "TotalSubmitProcs", "Out", "JobStatus", "GlobalJobId")
    ]
    assert list(made(0, "ap").items()) == list(job_ad(submitted, 5_000_000, 0, schedd="ap").items())
    assert ["Out", "Args", "User", "TotalSubmitProcs"] == list(second)[:4]


def test_a_suspended_job_has_a_status_of_its_own() -> None:
    """JobStatus 7, and the seconds that it was suspended, no matter what ends the suspension."""
    suspended = JobSuspended(attempt=1, processes=2)
    still = after(ASSIGNED, STARTED, suspended)
    assert {
        "JobStatus": 7,
        "LastJobStatus": 2,
        "LastSuspensionTime": QUEUED + 30,
        "TotalSuspensions": 1,
    } == part(still, "JobStatus", "LastJobStatus", "LastSuspensionTime", "TotalSuspensions")

    vacated = JobVacated(attempt=1, ending=Ending(code=1014, reason="drained"), usage=USAGE)
    for ending, status in ((JobContinued(attempt=1), 2), (JobHeld(code=1, reason="x"), 5), (vacated, 1)):
        ad = after(ASSIGNED, STARTED, suspended, ending)
        assert {"JobStatus": status, "LastSuspensionTime": 0, "CumulativeSuspensionTime": 10} == part(
            ad, "JobStatus", "LastSuspensionTime", "CumulativeSuspensionTime"
        )


def test_a_disconnected_job_runs_and_says_since_when() -> None:
    """Each time that it is reached again counts; no end of the attempt leaves the date behind."""
    silent = JobDisconnected(attempt=1, reason="it is silent")
    ad = after(ASSIGNED, STARTED, silent)
    names = ("JobStatus", "JobDisconnectedDate", "JobCurrentReconnectAttempt")
    assert {"JobStatus": 2, "JobDisconnectedDate": QUEUED + 30, "JobCurrentReconnectAttempt": 1} == part(
        ad, *names
    )
    again = after(ASSIGNED, STARTED, silent, JobReconnected(attempt=1), silent, JobReconnected(attempt=1))
    assert {"JobStatus": 2, "NumJobReconnects": 2} == found(again, *names, "NumJobReconnects")
    lost = after(ASSIGNED, STARTED, silent, JobVacated(attempt=1, ending=Ending(code=1008, reason="gone")))
    assert {"JobStatus": 1, "VacateReasonCode": 1008} == found(lost, *names, "VacateReasonCode")


def test_checkpoints_are_counted_over_all_attempts() -> None:
    """The first has the number 0; the time that execution may take starts again with each."""
    first = JobCheckpointed(attempt=1, number=1, at=77.9, usage=Usage(sent=10))
    ad = after(ASSIGNED, STARTED, first)
    names = ("NumCkpts", "CheckpointNumber", "LastCkptTime", "BytesSent", "TransferOutFinished")
    assert {
        "NumCkpts": 1, "CheckpointNumber": 0, "LastCkptTime": 77, "BytesSent": 10.0, "TransferOutFinished": QUEUED + 30,
    } == part(ad, *names)  # fmt: skip
    second = JobCheckpointed(attempt=2, number=1, at=99.0, usage=Usage(sent=5))
    ad = after(ASSIGNED, STARTED, first, second)
    assert {"NumCkpts": 2, "CheckpointNumber": 1, "BytesSent": 15.0} == part(ad, *names[:2], "BytesSent")


def test_a_job_that_waits_after_a_failed_start_says_until_when() -> None:
    """And how often it had to."""
    ad = after(ASSIGNED, JobVacated(attempt=1, ending=Ending(code=1034, reason="refused"), cool_down=20.0))
    assert {"JobCoolDownExpiration": QUEUED + 40, "NumJobCoolDowns": 1} == part(
        ad, "JobCoolDownExpiration", "NumJobCoolDowns"
    )


COMMITTED = ("CommittedTime", "CommittedSlotTime", "CommittedSuspensionTime")
COMPLETED = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=USAGE)
EVICTED = JobVacated(attempt=1, ending=Ending(code=1011, reason=""), usage=USAGE)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((ASSIGNED, STARTED, COMPLETED), (20, 40, 0)),
        ((ASSIGNED, STARTED, EVICTED), (0, 0, 0)),
        ((ASSIGNED, STARTED, EVICTED, ASSIGNED, STARTED, COMPLETED), (20, 40, 0)),
        ((ASSIGNED, JobSuspended(attempt=1), JobContinued(attempt=1), COMPLETED), (30, 60, 10)),
        (
            (ASSIGNED, JobSuspended(attempt=1), JobContinued(attempt=1), EVICTED, ASSIGNED, COMPLETED),
            (10, 20, 0),
        ),
        ((ASSIGNED, JobCheckpointed(attempt=1, number=1), STARTED, EVICTED), (10, 20, 0)),
        (
            (ASSIGNED, JobCheckpointed(attempt=1, number=1), STARTED, EVICTED, ASSIGNED, COMPLETED),
            (20, 40, 0),
        ),
        (
            (
                ASSIGNED,
                JobVacated(
                    attempt=1, ending=Ending(code=1005, reason=""), exit=ExitRecord(code=1), usage=USAGE
                ),
            ),
            (10, 20, 0),
        ),
    ],
)
def test_what_was_not_for_nothing_is_committed(
    events: tuple[JobEvent, ...], expected: tuple[int, ...]
) -> None:
    """
    The time of runs that came to their end, and of others up to their last checkpoint; two cores count twice.
    """
    assert dict(zip(COMMITTED, expected, strict=True)) == part(after(*events), *COMMITTED)
    assert "UncommittedSuspensionTime" not in after(*events)


def test_the_lease_was_renewed_when_the_machine_was_last_heard_of() -> None:
    """From the assignment on; a run that was lost in silence leaves the time of before."""
    lost = JobVacated(attempt=1, ending=Ending(code=1008, reason=""))

    assert QUEUED + 10 == after(ASSIGNED)["LastJobLeaseRenewal"]
    assert QUEUED + 20 == after(ASSIGNED, EVICTED)["LastJobLeaseRenewal"]
    assert QUEUED + 10 == after(ASSIGNED, STARTED, lost)["LastJobLeaseRenewal"]


def test_the_steps_of_the_newest_attempt_are_in_the_ad() -> None:
    """One behind the other; those of the next attempt take the place of those of the last."""
    one, two = (Step(kind="task", outcome="done", task=task) for task in (0, 1))
    ad: Ad = {}
    apply(ad, JobStepped(attempt=1, first=1, steps=[one]), 0)
    apply(ad, JobStepped(attempt=1, first=2, steps=[two]), 0)
    assert [one, two] == msgspec.json.decode(str(ad["KettleSteps"]), type=list[Step])

    apply(ad, JobStepped(attempt=2, first=1, steps=[two]), 0)
    assert [two] == msgspec.json.decode(str(ad["KettleSteps"]), type=list[Step])
