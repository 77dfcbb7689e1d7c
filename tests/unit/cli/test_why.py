"""What `kettle why` says of a job in each state, and what to do next."""

import io
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from kettle.client import JobId, WhyReport
from kettle.client.explanations.job_state import Answer, answer
from kettle.client.jobs.records import JobEvent
from kettle_services.cli.commands import why
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.negotiator import Analysis, Present, Remedy, SuggestedEdit, Tried, UsedUp, Verdict
from kettle_wire.commands.outlooks import OutlookKind, PoolOutlook
from kettle_wire.commands.schedd import Explanation
from kettle_wire.events import JobCompleted, Match, Rejection, Withheld

JOB = JobId(12, 3)


def report(
    status: str,
    verdict: Verdict | None = None,
    *,
    reason: str = "",
    autocluster: int | None = 1,
    ordered: Literal["", "vacate", "vacate_fast", "suspend"] = "",
    **ad: Scalar,
) -> WhyReport:
    said: Ad = {"EnteredCurrentStatus": 40.0, "RequestMemory": 4096, **ad}
    explained = Explanation(
        job=JOB,
        status=status,
        reason=reason,
        submitter="ada",
        autocluster=autocluster,
        ad=said,
        ordered=ordered,
    )
    return WhyReport(job=JOB, explanation=explained, verdict=verdict)


def said(told: WhyReport) -> str:
    return " ".join(answer(told, now=100.0).sentences)


@pytest.mark.parametrize("code", [13, 34])
def test_files_of_a_job_are_quoted_only_where_that_is_meant(code: int, tmp_path: Path) -> None:
    """
    What stands in a file that a job names is said to who may read it himself, and not by a service that may read more.
    """
    (tmp_path / "err").write_text("a secret line\n")
    told = report("held", HoldReasonCode=code, reason="x", ExitCode=1, Err="err", Iwd=str(tmp_path))
    assert "a secret line" in said(told)
    quiet = " ".join(answer(told, now=100.0, files=False).sentences)
    assert "a secret line" not in quiet
    assert str(tmp_path) not in quiet


@pytest.mark.parametrize(
    ("ad", "words"),
    [
        (
            {"DAG_Status": 2},
            "Its DAG is over: node_failed; kettle dag show 12 tells how its nodes have ended.",
        ),
        ({"DAG_Status": 99}, ""),
        ({"DAG_Status": "x"}, ""),
        ({}, ""),
    ],
)
def test_of_a_job_that_ran_a_dag_it_is_said_how_that_ended(ad: Ad, words: str) -> None:
    """Its exit code alone does not tell; other jobs have no DAG, whatever they say."""
    event = JobEvent("job/12.3", 3, 9, 50.0, JobCompleted(attempt=1, exit=ExitRecord(code=1)))
    told = said(WhyReport(job=JOB, events=[event], ended={"ClusterId": 12, "ExitCode": 1, **ad}))
    assert told.startswith("Job 12.3 has left the queue: it exited with code 1.")
    assert bool(words) == ("DAG" in told)
    assert words in told


def rejected(cause: str, **more: Any) -> Rejection:
    fields: dict[str, Any] = {
        "count": 7,
        "asked": 9,
        "given": 2,
        "slots": 40,
        "able": 5,
        "reason": "x",
        **more,
    }
    return Rejection(submitter="ada", schedd="ap", autocluster=1, cause=cause, **fields)


def waiting(rejection: Rejection | None = None, analysis: Analysis | None = None) -> WhyReport:
    return report("idle", Verdict(cycle=8, at=90.0, rejection=rejection, analysis=analysis))


ABLE = Analysis(
    slots=40, able=5, clauses=[Tried(side="job", text="TARGET.Arch", asked=40, passes=5, only=35)]
)
NONE = Analysis(
    slots=40,
    able=0,
    clauses=[
        Tried(side="job", text="TARGET.Memory >= RequestMemory", asked=40, passes=0, only=27),
        Tried(side="slot", text="TARGET.Nice", asked=13, passes=13),
    ],
    remedies=[Remedy(attribute="RequestMemory", asked=4096, most=3072, slots=2, least=2150, least_slots=27)],
)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (report("held", HoldReasonCode=34, reason="too much memory."), ["too much memory (code 34)", "ask for more", "kettle release 12.3"]),
        (report("held", HoldReasonCode=99, reason="x"), ["mend the cause", "kettle rm 12.3"]),
        (report("running", RemoteHost="s@m"), ["is being started on s@m, for 1 min 0 s now", "tried again, or held"]),
        (report("running", RemoteHost="s@m", JobCurrentStartExecutingDate=50), ["runs on s@m", "kettle tail 12.3"]),
        (report("running", RemoteHost="cluster", JobUniverse=9), ["being submitted to the batch system"]),
        (report("running", RemoteHost="cluster", JobUniverse=9, JobCurrentStartExecutingDate=50, GridJobId="batch slurm localhost slurm/20261126/4", GridJobStatus="RUNNING"), ["runs on cluster", "The batch system calls it batch slurm localhost slurm/20261126/4, and says that it is RUNNING; what it writes comes back"]),
        (report("running", RemoteHost="s@m", JobStatus=7), ["is suspended by the policy of s@m"]),
        (report("running", RemoteHost="s@m", JobStatus=7, ordered="suspend"), ["is suspended by its owner on s@m", "kettle continue 12.3"]),
        (report("running", RemoteHost="s@m", ordered="vacate"), ["kettle vacate --fast 12.3 ends it"]),
        (report("running", RemoteHost="s@m", ordered="vacate_fast"), ["told to leave its machine at once"]),
        (report("completed"), ["is completed.", "LeaveJobInQueue", "kettle rm 12.3"]),
        (report("removed", reason="by ada."), ["is removed: by ada.", "kettle rm 12.3"]),
        (report("idle", autocluster=None, reason="it starts at its DeferralTime, 160, in 60 s"), ["The schedd says: it starts at its DeferralTime, 160, in 60 s."]),
        (report("idle", JobUniverse=12, reason="no startd there takes local jobs"), ["no startd there takes local jobs."]),
        (report("idle", Verdict(cycle=None, at=0.0), JobUniverse=9, reason="the batch system clustr does not take it"), ["clustr does not take it."]),
        (report("idle", Verdict(cycle=None, at=0.0), JobUniverse=9), ["about to be submitted there"]),
        (report("idle", Verdict(cycle=None, at=0.0), JobUniverse=7), ["without negotiation: it is about to start"]),
        (report("idle", Verdict(cycle=None, at=0.0), reason="s@m refused jobs like it 3 s ago: START is false"), ["s@m refused jobs like it 3 s ago: START is false.", "No negotiation has looked"]),
        (report("idle", Verdict(cycle=8, at=90.0, matches=[Match(submitter="ada", schedd="ap", autocluster=1, slot="s", startd="m", count=2)])), ["gave 2 places to jobs like this one"]),
        (report("idle"), ["is not known"]),
    ],
)  # fmt: skip
def test_every_state_has_its_answer(told: WhyReport, words: list[str]) -> None:
    """What it is, since when, and what to do."""
    text = said(told)
    assert [] == [word for word in words if word not in text], text


@pytest.mark.parametrize(
    ("rejection", "words"),
    [
        (rejected("busy"), "those that could run it are taken"),
        (rejected("share", used=4.0, share=3.5), "has its share of the pool (ada has 4 of 3.5 in slot weights)"),
        (rejected("ceiling", used=2.0), "kettle userprio --setceiling ada VALUE"),
        (rejected("quota", used=3.0, share=3.0), "quota lets it have (ada has 3 of 3"),
        (rejected("concurrency", limits=["matlab"]), "A concurrency limit is reached: matlab"),
        (rejected("busy", withheld=[Withheld(rule="requirements", slots=6)]), "6 slots of others would suit, which do not make room: preemption_requirements of the pool is not true"),
    ],
)  # fmt: skip
def test_each_reason_of_the_record_has_its_sentence(rejection: Rejection, words: str) -> None:
    """With the present state beside it, and without."""
    for analysis in (ABLE, None):
        text = said(waiting(rejection, analysis))
        assert words in text
        assert "5 of 40 slots could run it; of 9 like it 2 got one in that cycle." in text


DISK = UsedUp(resource="Disk", slots=2, asked=2**20, left=24 * 1024)
CORES = UsedUp(resource="Cpus", slots=1, asked=4, left=3)


@pytest.mark.parametrize(
    ("able", "used_up", "words"),
    [
        (5, [DISK, CORES], "of the 5 slots that could run it 2 have too little disk left (at most 24 MiB, where it asks for 1 GiB) and 1 has too few cores left (3, where it asks for 4)."),
        (1, [CORES], "the slot that could run it has too few cores left (3, where it asks for 4)."),
        (1, [UsedUp(resource="GPUs", slots=1, asked=1, left=0)], "the slot that could run it has too few GPUs left (0, where it asks for 1)."),
    ],
)  # fmt: skip
def test_a_resource_that_is_used_up_is_named(able: int, used_up: list[UsedUp], words: str) -> None:
    """In the place of the sentence that all are taken, and beside the one that a share is used up."""
    analysis = msgspec.structs.replace(ABLE, able=able, used_up=used_up)
    text = said(waiting(rejected("busy"), analysis))
    assert f"It waits for its turn: {words}" in text
    assert "are taken" not in text
    text = said(waiting(rejected("share", used=4.0, share=3.5), analysis))
    assert f"waits for its turn; see kettle fairshare. At this moment {words}" in text


@pytest.mark.parametrize("analysis", [ABLE, None])
@pytest.mark.parametrize(("since", "before"), [(89.0, False), (95.0, True)])
def test_a_negotiation_from_before_the_job_waited_is_not_taken_for_one_about_it(
    analysis: Analysis | None, since: float, before: bool
) -> None:
    """What is on record of jobs like it is said to be older than the job where it is."""
    verdict = Verdict(cycle=8, at=90.0, rejection=rejected("busy"), analysis=analysis)
    text = said(report("idle", verdict, EnteredCurrentStatus=since))
    assert "(cycle 8, 10.0 s ago" in text
    assert before == ("before this one was waiting" in text)
    assert "gave it none" not in text


def test_the_nearest_change_is_named_with_numbers() -> None:
    """How many of how many slots, for how much instead of how much, and how to write it."""
    text = said(waiting(rejected("no_match", able=0), NONE))
    assert (
        "It can run on none of 40 slots: all are refused by the clause TARGET.Memory >= RequestMemory of the job."
        in text
    )
    assert (
        "2 of 40 slots would match if it asked for 3 GiB of memory instead of 4 GiB, 27 if it asked for 2.1 GiB."
        in text
    )
    assert "Next: kettle edit 12.3 RequestMemory=3072;" in text


def test_what_there_is_instead_and_what_lacks_together_is_named() -> None:
    """For clauses of which no amount is a matter."""
    present = [Present(attribute="Arch", values=[('"arm64"', 3), ("undefined", 1)], others=2)]
    clause = Tried(
        side="job", text='TARGET.Arch == "x"', asked=6, passes=0, only=6, without=6, present=present
    )
    text = said(waiting(None, Analysis(slots=6, able=0, clauses=[clause])))
    assert (
        '6 slots more would match without the clause TARGET.Arch == "x"; there Arch is "arm64" in 3, undefined in 1 and something else in 2.'
        in text
    )
    both = Analysis(slots=6, able=0, clauses=[], together=["A", "B"], together_slots=4)
    assert "No single change is enough: 4 slots would need another answer of A and of B together." in said(
        waiting(None, both)
    )
    edit = SuggestedEdit(dropped=["A"], requirements="B", requests={"RequestMemory": 2048}, slots=4)
    text = said(waiting(None, Analysis(slots=6, able=0, clauses=[], together=["A", "B"], edits=[edit])))
    assert (
        "No single change is enough: 4 slots would match without A and if it asked for 2 GiB of memory."
        in text
    )
    assert "Next: kettle edit 12.3 RequestMemory=2048 Requirements=B;" in text


def test_a_slot_that_waits_for_its_owner_is_waited_for() -> None:
    """
    With the clause of the owner's policy and what the machine says of it; nobody is told to remove the job.
    """
    present = [Present(attribute="KeyboardIdle", values=[("4", 2), ("10", 1)])]
    clause = Tried(side="slot", text="KeyboardIdle > 900", asked=3, passes=0, waiting=3, present=present)
    shut = Tried(
        side="slot", text="false (the machine is being drained: kernel)", asked=1, passes=0, waiting=1
    )
    told = answer(waiting(None, Analysis(slots=4, able=0, later=4, clauses=[clause, shut])), now=100.0)
    text = " ".join(told.sentences)
    assert "No slot takes it now, but 4 of 4 slots may later, without anybody's doing." in text
    assert (
        "3 slots wait for their own clause KeyboardIdle > 900; there KeyboardIdle is 4 in 2, 10 in 1." in text
    )
    assert "1 slot waits for something else: false (the machine is being drained: kernel)." in text
    assert "when" == told.outlook
    assert "kettle rm" not in text


@pytest.mark.parametrize(
    ("analysis", "words"),
    [
        (Analysis(slots=3, able=0, clauses=[], fault="RequestCpus is no amount"), "It can match no slot, whatever there is: RequestCpus is no amount."),
        (Analysis(slots=0, able=0, clauses=[]), "There is no slot in the pool"),
        (Analysis(slots=3, able=0, clauses=[]), "no clause refuses all of them, but together they do"),
    ],
)  # fmt: skip
def test_what_nothing_can_run_is_said_to(analysis: Analysis, words: str) -> None:
    """Whose fault it is."""
    assert words in said(waiting(None, analysis))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(told: Answer, out: io.StringIO) -> str:
    why.show(told, Screen(out=out, environ={"TERM": "xterm"}))
    return out.getvalue()


def test_the_table_has_colours_on_a_terminal_only() -> None:
    """Every clause with how many slots pass it alone and how many refuse for it alone, then all together."""
    told = answer(waiting(rejected("no_match", able=0), NONE), now=100.0)
    plain, coloured = shown(told, io.StringIO()), shown(told, Terminal())
    assert "   0 of 40         27  the job's   TARGET.Memory >= RequestMemory\n" in plain
    assert (
        "  13 of 13          -  the slot's  TARGET.Nice\n0 of 40 slots pass all of them together.\n" in plain
    )
    assert "\x1b[" not in plain
    assert "\x1b[1;31m" in coloured


def outlook(kind: OutlookKind, *leases: str) -> PoolOutlook:
    return PoolOutlook(pool="lab", kind=kind, offer="small", leases=list(leases), state="booting", words="x")


def test_a_machine_on_its_way_is_told_before_what_there_is_without_it() -> None:
    """
    Nobody is told to start a machine while one comes; what else keeps the job waiting comes after that. A pool that does nothing is
    told last.
    """
    empty = waiting(analysis=Analysis(slots=0, able=0, clauses=[]))
    coming = msgspec.structs.replace(empty, outlooks=[outlook(OutlookKind.PLANNED, "lab-1-0")])
    first, second, *_ = answer(coming, now=100.0).sentences
    assert first.startswith("Job 12.3 has been idle")
    assert "Pool lab: it is planned on lab-1-0 (booting)." == second
    assert "start a machine" not in said(coming)
    refused = msgspec.structs.replace(
        waiting(analysis=NONE), outlooks=[outlook(OutlookKind.PLANNED, "lab-1-0")]
    )
    text = said(refused)
    assert text.index("lab-1-0") < text.index("TARGET.Memory >= RequestMemory")
    paused = msgspec.structs.replace(empty, outlooks=[outlook(OutlookKind.PAUSED)])
    text = said(paused)
    assert text.index("There is no slot in the pool") < text.index("Pool lab: it is paused x")
