"""What an accounting store is told of a job."""

import json
import math

from kettle.jobs.attempts import EndedAttempt
from kettle.projections.accounting_documents import (
    ATTEMPT_FIELDS,
    JOB_FIELDS,
    attempt_record,
    bulk,
    job_record,
)
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.jobs import JobId

AD: Ad = {
    "GlobalJobId": "ap#1.0#1790000000",
    "ClusterId": 1,
    "ProcId": 0,
    "JobStatus": 4,
    "Owner": "ada",
    "QDate": 1790000000,
    "CompletionDate": 1790000060,
    "EnteredCurrentStatus": 1790000061,
    "LastRemoteHost": "slot1_1@ep.example.org",
}


def test_names_and_types_are_those_of_condor_adstash() -> None:
    """
    RecordTime is when it completed; the slot's name is taken apart; the id is GlobalJobId#RecordTime; 0 is no date.
    """
    record = job_record(AD | {"RemoteWallClockTime": 2.9, "LastCkptTime": 0, "ExitBySignal": False})
    assert "ap#1.0#1790000000#1790000060" == record.id
    assert (1790000060, "ap", "slot1_1", "ep.example.org", "Completed", 2, False) == tuple(
        record.document[name]
        for name in (
            "RecordTime",
            "ScheddName",
            "StartdSlot",
            "StartdName",
            "Status",
            "RemoteWallClockTime",
            "ExitBySignal",
        )
    )
    assert "LastCkptTime" not in record.document


def test_a_removed_job_counts_from_its_removal() -> None:
    """It has no CompletionDate; one that never ran has no machine."""
    ad = {name: value for name, value in AD.items() if name != "LastRemoteHost"}
    record = job_record(ad | {"JobStatus": 3, "CompletionDate": 0})
    assert ("ap#1.0#1790000000#1790000061", "Removed", "UNKNOWN") == (
        record.id,
        record.document["Status"],
        record.document["StartdName"],
    )


def test_no_submitter_decides_about_a_type_or_a_field() -> None:
    """
    What is not known is left out, or text if the site wants it; what has the wrong type goes under another name; nothing
    that may be a secret is told, also if it is asked for.
    """
    ad = AD | {
        "Mine": 5,
        "Site": 7,
        "RequestCpus": Expr("ifThenElse(x, 1, 2)"),
        "RequestMemory": "many",
        "Environment": "TOKEN=x",
        "PublicClaimId": "c",
        "DiskUsage": 1 << 80,
        "CpusUsage": math.inf,
        "NumHolds": True,
    }
    document = job_record(ad, ["SITE", "Environment", "publicclaimid"]).document
    assert {"Mine", "Environment", "PublicClaimId", "RequestCpus", "RequestMemory", "CpusUsage"}.isdisjoint(
        document
    )
    assert ("7", "ifThenElse(x, 1, 2)", "many", str(1 << 80), "inf", "True") == tuple(
        document[name]
        for name in (
            "SITE",
            "RequestCpus_EXPR",
            "RequestMemory_STRING",
            "DiskUsage_STRING",
            "CpusUsage_STRING",
            "NumHolds_STRING",
        )
    )


def test_what_is_sent_is_lines_of_json() -> None:
    """Also with line breaks, long text and text that is no UTF-8 in an ad."""
    record = job_record(AD | {"Cmd": "a\nb", "Args": "x" * 1000, "Iwd": "/home/\udcff"})
    action, document, end = bulk("jobs", [record]).split(b"\n")
    assert b"" == end
    assert {"index": {"_index": "jobs", "_id": record.id}} == json.loads(action)
    read = json.loads(document)
    assert ("a\nb", "x" * 253 + "...", "/home/?") == (read["Cmd"], read["Args"], read["Iwd"])


def test_an_attempt() -> None:
    """Its id is the job's and the number of the attempt; times are seconds."""
    one = EndedAttempt(
        job=JobId(1, 0), number=2, owner="ada", group="", project="tau", machine="ep", slot="slot1@ep",
        begun=1_790_000_000_500_000, ended=1_790_000_060_000_000, wall=2_500_000, slot_time=5_000_000, cpu=1_000_000,
        good=0, uncharged=0, completed=False, code=1004, frame=9,
    )  # fmt: skip
    record = attempt_record("ap", one)
    assert "ap#1.0#2" == record.id
    assert (1790000000, 2.5, 5.0, 1004, "tau") == tuple(
        record.document[name]
        for name in (
            "ShadowBday",
            "RemoteWallClockTime",
            "CumulativeSlotTime",
            "VacateReasonCode",
            "ProjectName",
        )
    )
    assert "AcctGroup" not in record.document


def test_templates_of_a_store_have_the_type_of_every_field() -> None:
    """A store that knows them before the first record makes dates of dates, and refuses none of ours."""
    kinds: dict[str, type[int | float | bool | str]] = {
        "date": int,
        "long": int,
        "double": float,
        "boolean": bool,
        "keyword": str,
    }
    values: Ad = {name: kinds[kind](1) for name, kind in JOB_FIELDS.items()}
    job = job_record(values | AD).document
    assert set(JOB_FIELDS) == set(job)
    assert {} == {name: value for name, value in job.items() if type(value) is not kinds[JOB_FIELDS[name]]}
    ended = EndedAttempt(
        job=JobId(1, 0), number=1, owner="ada", group="physics", project="p", machine="m", slot="slot1@m",
        begun=1, ended=2, wall=1, slot_time=1, good=1, cpu=1, uncharged=0, code=0, completed=True, frame=1,
    )  # fmt: skip
    attempt = attempt_record("ap", ended).document
    assert set(ATTEMPT_FIELDS) == set(attempt)
    assert {} == {n: v for n, v in attempt.items() if type(v) is not kinds[ATTEMPT_FIELDS[n]]}
