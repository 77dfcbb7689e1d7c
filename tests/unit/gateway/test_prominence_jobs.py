"""Jobs and workflows in PROMINENCE's words."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.jobs.private_attributes import for_others
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.instances import HELD, PARAMETERS
from kettle.prominence.job_ads import DOCUMENT, QUEUE_TIME_REASON
from kettle.prominence.job_documents import read_job
from kettle.prominence.nodes import WorkflowNode
from kettle.prominence.substitution import substituted, substituted_length
from kettle_services.gateway.domain.public_json import is_private
from kettle_services.gateway.prominence.job_states import described, listed, told
from kettle_services.gateway.prominence.numbers import job_of, number_of, numbers_of
from kettle_services.gateway.prominence.submitting import bounded, table_of
from kettle_services.gateway.prominence.workflow_states import SIZE, WORKFLOW
from kettle_services.gateway.prominence.workflow_states import described as described_workflow
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Expr
from kettle_wire.codes import HoldCode
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import Job, State
from kettle_wire.tasks import ATTRIBUTE, STEPS_ATTRIBUTE, Step

SUBMITTED = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = json.dumps({"name": "demo", "tasks": [{"image": "i"}], "outputFiles": ["made"], "outputDirs": ["d"]})


def job(state: State, *steps: Step, proc: int = 0, **attributes: Any) -> Job:
    ad = {DOCUMENT: TEXT, STEPS_ATTRIBUTE: msgspec.json.encode(steps).decode(), SIZE: 2, **attributes}
    return Job(
        id=f"7.{proc}@schedd",
        schedd="schedd",
        cluster=7,
        proc=proc,
        owner="ada",
        state=state,
        submitted=SUBMITTED,
        attributes=ad,
    )


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (job("idle"), "idle", ""),
        (job("held", HoldReasonCode=int(HoldCode.SpoolingInput)), "idle", ""),
        (job("suspended"), "running", ""),
        (job("held", HoldReasonCode=int(HoldCode.JobOutOfResources)), "killed", "memory"),
        (job("held", HoldReasonCode=int(HoldCode.JobExecuteExceeded)), "killed", "Walltime"),
        (job("held", HoldReasonCode=1, HoldReason="by hand"), "failed", "by hand"),
        (job("removed", RemoveReason="Job deleted by user"), "deleted", "by user"),
        (job("removed", RemoveReason=f"{QUEUE_TIME_REASON}."), "failed", QUEUE_TIME_REASON),
        (job("removed", RemoveReason=f"{HELD}it was slow", LastHoldReasonCode=int(HoldCode.JobExecuteExceeded)), "killed", "Walltime"),
        (job("removed", RemoveReason=f"{HELD}no program", LastHoldReasonCode=6), "failed", "no program"),
        (job("completed", ExitCode=0), "completed", ""),
        (job("completed", Step(kind="task", outcome="failed", task=0, code=3), ExitCode=1), "failed", "non-zero"),
        (job("completed", Step(kind="task", outcome="ended", task=0), ExitCode=1), "killed", "Walltime"),
        (job("completed", Step(kind="pull", outcome="failed", name="i"), ExitCode=1), "failed", "image pull"),
        (job("completed", Step(kind="send", outcome="failed", name="o"), ExitCode=1), "failed", "Stageout"),
        (job("completed", Step(kind="fetch", outcome="failed", name="a"), ExitCode=1), "failed", "Artifact"),
    ],
)  # fmt: skip
def test_a_state_has_a_word_and_a_reason(found: Job, status: str, reason: str) -> None:
    """Whatever became of a job is one of PROMINENCE's states, with the reason that its users know."""
    assert status == told(found).status
    assert reason in told(found).reason
    assert bool(reason) == bool(told(found).reason)
    assert status == listed(found)["status"]


def test_a_description_tells_what_the_job_has_cost() -> None:
    """
    Its core time at the price that its machine told; where machines cost nothing there is no word of it.
    """
    ran = {"ExitCode": 0, "JobStartDate": 5, "CompletionDate": 1805, "CpusProvisioned": 2}
    ran["LastRemoteWallClockTime"] = 1800
    priced = job("completed", MachineAttrKettlePrice0=0.05, MachineAttrKettleCurrency0="EUR", **ran)
    shown = described(priced, lambda _name, _directory: "")
    assert {"amount": 0.05, "currency": "EUR"} == shown["execution"]["cost"]
    assert "cost" not in described(job("completed", **ran), lambda _name, _directory: "")["execution"]


def test_a_description_tells_how_the_tasks_went() -> None:
    """The last try of each task, its image, and where results are that are there."""
    steps = (
        Step(kind="pull", outcome="done", task=0, began=1.0, ended=3.0),
        Step(kind="task", outcome="begun", task=0),
        Step(kind="task", outcome="failed", task=0, code=2, began=3.0, ended=4.0),
        Step(
            kind="task",
            outcome="done",
            task=0,
            retry=1,
            code=0,
            began=4.0,
            ended=6.0,
            user_cpu=1.5,
            memory_kib=9,
        ),
    )
    found = job("completed", *steps, ExitCode=0, JobStartDate=5, CompletionDate=9, CpusProvisioned=2)
    shown = described(found, lambda name, directory: "" if directory else f"at {name}")
    assert [{"name": "made", "url": "at made"}] == shown["outputFiles"]
    assert [{"name": "d", "url": ""}] == shown["outputDirs"]
    assert {"createTime": int(SUBMITTED.timestamp()), "startTime": 5, "endTime": 9} == shown["events"]
    assert [
        {
            "imagePullStatus": "completed",
            "imagePullTime": 2.0,
            "exitCode": 0,
            "retries": 1,
            "wallTimeUsage": 2.0,
            "cpuTimeUsage": 1.5,
            "maxResidentSetSizeKB": 9,
        }
    ] == shown["execution"]["tasks"]
    assert (7, 0) == (shown["id"], shown["exitCode"])


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (("idle", "idle"), "idle"),
        (("completed", "idle"), "running"),
        (("running", "removed"), "running"),
        (("completed", "completed"), "completed"),
        (("completed", "removed"), "deleted"),
    ],
)
def test_a_workflow_is_as_its_jobs_are(states: tuple[State, State], status: str) -> None:
    """It is active as long as one of them is, and else as the worst of them."""
    document = json.dumps({"name": "w", "jobs": []})
    jobs = [
        job(
            state,
            proc=proc,
            ExitCode=0,
            CompletionDate=9,
            **{WORKFLOW: Expr("undefined") if proc else document, PARAMETERS: Expr("undefined")},
        )
        for proc, state in enumerate(states)
    ]
    shown = described_workflow(jobs)
    assert shown is not None
    assert (7, "w", status, 2) == (shown["id"], shown["name"], shown["status"], shown["progress"]["total"])
    assert (
        ("endTime" in shown["events"])
        == (status not in {"idle", "running"})
        == (shown["progress"]["queued"] == 0)
    )


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_a_number_is_one_job(cluster: int, proc: int) -> None:
    """A job is found again by its number, and one that was submitted alone has that of its cluster."""
    assert JobId(cluster, proc) == job_of(number_of(cluster, proc))
    assert cluster == number_of(cluster, 0)


@pytest.mark.parametrize("text", ["", "1,", "1;2", "-1", "1" * 20, "\u0661"])
def test_what_is_no_number_is_refused(text: str) -> None:
    """Numbers are ASCII digits with commas between them."""
    with pytest.raises(RequestRefused, match="numbers with commas"):
        numbers_of(text)


VALUES = st.sampled_from([0, 1, True, False, 1.0, "1", "", Expr("undefined")])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=4))
def test_a_table_has_what_the_ads_had(ads: list[dict[str, Any]]) -> None:
    """Each job gets its own values, with their types, and undefined where others have one."""
    common, columns, rows = table_of(ads)
    for ad, row in zip(ads, rows, strict=True):
        again = {**common, **dict(zip(columns, row, strict=True))}
        for name, value in again.items():
            said = ad.get(name, Expr("undefined"))
            assert (type(said), said) == (type(value), value)
        assert ad.keys() <= again.keys()


def test_a_few_words_do_not_become_more_than_there_is_memory_for() -> None:
    """A long value that is named often, or is in many instances, is refused before it is put in."""
    task = {"image": "i", "runtime": "singularity", "cmd": "$x" * 10_000}
    job = read_job(json.dumps({"tasks": [task], "resources": {"cpus": 1, "memory": 1}}).encode())
    assert 1 == len(list(bounded([WorkflowNode(job, 0, {"x": "v" * 1000})])))
    with pytest.raises(DocumentRefused, match="more than 64 MiB together"):
        list(bounded([WorkflowNode(job, 0, {"x": "v" * 10_000})]))
    with pytest.raises(DocumentRefused, match="more than 64 MiB together"):
        list(bounded([WorkflowNode(job, number, {"y": "v" * 1_000_000}) for number in range(100)]))


@given(st.text("$x{}y ", max_size=30))
def test_the_length_of_a_text_with_its_values_is_known_before(text: str) -> None:
    """Also where a name is none of a parameter."""
    parameters = {"x": "long", "xy": ""}
    assert len(substituted(text, parameters)) == substituted_length(text, parameters)


def test_documents_and_parameters_are_their_owners_alone() -> None:
    """Tasks are given tokens in their environments, which stand in all of these."""
    names = (DOCUMENT, WORKFLOW, PARAMETERS, ATTRIBUTE)
    assert {} == for_others(dict.fromkeys(names, "secret"))
    assert all(map(is_private, names))
