"""Attributes that people set in the ads of jobs in the queue."""

import pytest

from kettle.jobs import apply
from kettle.jobs.editable_attributes import refusal
from kettle_services.schedd.domain.jobs.commands import Assign, End
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.domain.submission import job_edits
from kettle_services.schedd.domain.submission.job_edits import EDITED_BYTES, Edit, check
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import JobStatus
from kettle_wire.events import ClusterSubmitted, Event, JobEdited
from kettle_wire.jobs import JobId

AT = 1_000_000


def queue_of(ad: Ad, count: int = 3) -> tuple[Queue, dict[str, bytes]]:
    queue, rows = Queue("ap"), dict[str, bytes]()
    event = ClusterSubmitted(
        cluster=1,
        owner="anna",
        ad={"Cmd": "x", **ad},
        columns=["Args"],
        rows=[[f"{n}"] for n in range(count)],
    )
    fold(queue, rows, "cluster/1", event)
    return queue, rows


def fold(queue: Queue, rows: dict[str, bytes], stream: str, event: Event) -> None:
    for change in queue.apply(stream, event, AT):
        if change.state is None:
            rows.pop(change.stream, None)
        else:
            rows[change.stream] = change.state


def edit(queue: Queue, rows: dict[str, bytes], proc: int, attributes: Ad) -> None:
    fold(queue, rows, job_stream(JobId(1, proc)), JobEdited(attributes=attributes, by="anna"))


def restored(rows: dict[str, bytes]) -> Queue:
    queue = Queue("ap")
    restore(queue, rows.items())
    return queue


def test_an_edit_is_in_the_ad_and_counted() -> None:
    """Whatever the attribute was before."""
    ad: Ad = {"RequestMemory": 1}
    apply(ad, JobEdited(attributes={"RequestMemory": 2, "Colour": "blue"}, by="anna"), AT)
    apply(ad, JobEdited(attributes={"Colour": Expr("undefined")}, by="anna"), AT)
    assert {"RequestMemory": 2, "Colour": Expr("undefined"), "NumEdits": 2} == ad


@pytest.mark.parametrize(
    "name",
    [
        "Owner", "clusterid", "ProcId", "User", "OsUser", "QDate", "GlobalJobId", "JobStatus", "MyType", "TargetType",
        "NumJobStarts", "NumEdits", "HoldReason", "RemoteHost", "TotalSubmitProcs", "JobSetId", "JobSetName",
        "AccountingGroup", "acctgroup", "AcctGroupUser", "NiceUser", "JobUniverse", "CronMinute", "DeferralTime",
        "JobMaterializeMaxIdle", "Two words", "", "1st", "x" * 200,
    ],
)  # fmt: skip
def test_what_nobody_may_set(name: str) -> None:
    """Each with a sentence that names it."""
    assert name in refusal(name)
    with pytest.raises(Unacceptable):
        check(Edit(attributes={name: 1}, by="anna"))


@pytest.mark.parametrize(
    "name",
    ["Requirements", "RequestMemory", "requestgpus", "Rank", "JobPrio", "PeriodicHold", "OnExitRemove", "LeaveJobInQueue",
     "Cmd", "Arguments", "Environment", "Iwd", "TransferInput", "Colour", "JobBatchName", "ConcurrencyLimits"],
)  # fmt: skip
def test_what_the_owner_may_set(name: str) -> None:
    """What a running job may not set of itself, a person may."""
    assert not refusal(name)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({}, "which attribute"),
        ({"Colour": 1, "COLOUR": 1}, "the same attribute"),
        ({"JobPrio": 1.5}, "whole number"),
        ({"JobPrio": True}, "whole number"),
        ({"JobPrio": 1 << 31}, "whole number"),
        ({"Cmd": Expr("Owner")}, "path in quotes"),
        ({"Cmd": ""}, "path in quotes"),
        ({"Rank": Expr("Memory +")}, "cannot be read"),
        ({"Colour": "a\0b"}, "NUL"),
        ({"Colour": float("nan")}, "finite"),
        ({"ConcurrencyLimits": "a:b:c"}, "ConcurrencyLimits"),
        ({"Colour": "x" * EDITED_BYTES}, "bytes"),
        ({f"A{n}": n for n in range(101)}, "at most 100"),
    ],
)
def test_what_no_job_can_have(attributes: Ad, says: str) -> None:
    """It is refused before any job is looked at."""
    with pytest.raises(Unacceptable, match=says):
        check(Edit(attributes=attributes, by="anna"))
    with pytest.raises(Unacceptable, match="not both"):
        check(Edit(attributes={"JobPrio": 1}, add_to_priority=1, by="anna"))


def test_what_a_job_has_already_records_nothing() -> None:
    """Names are the same in any case, and are recorded as the ad has them; true is not 1."""
    known, ad = {"colour": "Colour"}, {"Colour": 1}

    def decided(attributes: Ad, size: int = 0) -> JobEdited | None:
        return job_edits.decide(Edit(attributes=attributes, by="anna"), ad, known, 0, size)

    assert decided({"COLOUR": 1}) is None
    assert JobEdited(attributes={"Colour": True}, by="anna") == decided({"COLOUR": True})
    assert JobEdited(attributes={"Other": 1}, by="anna") == decided({"Other": 1})
    with pytest.raises(Unacceptable):
        decided({"Other": 1}, size=EDITED_BYTES)


def test_a_priority_is_raised_up_to_its_limit() -> None:
    """By what is added to it."""
    raised = Edit(attributes={}, add_to_priority=5, by="anna")
    assert JobEdited(attributes={"JobPrio": 8}, by="anna") == job_edits.decide(
        raised, {"JobPrio": 3}, {}, 3, 0
    )
    most = (1 << 31) - 1
    assert job_edits.decide(raised, {"JobPrio": most}, {}, most, 0) is None


def test_jobs_are_ordered_by_their_present_priority() -> None:
    """Raised, lowered below what it was, and after a restart."""
    queue, rows = queue_of({})
    edit(queue, rows, 2, {"JobPrio": 5})
    assert JobId(1, 2) == queue.demand.requests("anna")[0][1]
    edit(queue, rows, 2, {"JobPrio": -5})
    for each in (queue, restored(rows)):
        (((priority, _, _), first, number, count),) = each.demand.requests("anna")
        assert (0, JobId(1, 0), 3) == (priority, first, count)
        assert [-5, 0] == [each.priority(JobId(1, proc)) for proc in (2, 1)]
        assert JobId(1, 0) == each.demand.next_job("anna", number)


def test_a_job_that_asks_for_something_else_is_in_another_autocluster() -> None:
    """However the attribute was spelled; who asks for the same as before is back where it was."""
    queue, rows = queue_of({"requestmemory": 5, "JobPrio": 1})
    before = queue.autocluster(JobId(1, 1))
    edit(queue, rows, 1, {"requestmemory": 7})
    edit(queue, rows, 2, {"Colour": "blue"})
    for each in (queue, restored(rows)):
        assert before != each.autocluster(JobId(1, 1))
        assert before == each.autocluster(JobId(1, 2)) == each.autocluster(JobId(1, 0))
        assert {before: 2, each.autocluster(JobId(1, 1)): 1} == {
            number: count for _, _, number, count in each.demand.requests("anna")
        }
    edit(queue, rows, 1, {"requestmemory": 5})
    assert [before] == [number for _, _, number, _ in queue.demand.requests("anna")]
    assert 1 == queue.priority(JobId(1, 1))


def test_what_an_expression_of_an_edit_mentions_counts() -> None:
    """Also a column of the submission, in which the jobs differ."""
    queue, rows = queue_of({})
    assert 1 == len(queue.demand.requests("anna"))
    for proc in (0, 1):
        edit(queue, rows, proc, {"Requirements": Expr("TARGET.Name == MY.Args")})
    assert 3 == len(queue.demand.requests("anna")) == len(restored(rows).demand.requests("anna"))


def test_a_policy_that_was_set_is_looked_at() -> None:
    """Of a cluster that had none when it was submitted, also after a restart."""
    queue, rows = queue_of({})
    assert not queue.clusters[1].periodic
    edit(queue, rows, 1, {"PeriodicHold": Expr("true"), "OnExitRemove": False, "ConcurrencyLimits": "a"})
    for each in (queue, restored(rows)):
        assert JobStatus.IDLE in each.clusters[1].periodic
        assert each.clusters[1].at_exit
        assert each.clusters[1].limited


def test_a_job_that_waits_after_failures_may_run_once_it_was_edited() -> None:
    """Nobody would end another wait, and it may fare better now."""
    queue, rows = queue_of({}, 1)
    job = JobId(1, 0)
    for command in (
        Assign("c", "s", "m"),
        End(attempt=1, claim="c", result=AttemptResult(ending=Ending(code=1027, reason="r")), cool_down=20.0),
    ):
        for event in decide(queue.jobs[job].job, command):
            fold(queue, rows, job_stream(job), event)
    assert {job} == queue.waiting.cooling
    edit(queue, rows, 0, {"Colour": 1})
    assert not queue.waiting.cooling
    assert 1 == len(queue.demand.requests("anna"))
