"""What we write, in each form, read by HTCondor's own reader and by ours."""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.bindings.job_event_log import JobEventLog
from kettle.userlog import (
    Aborted,
    Checkpointed,
    ClusterRemove,
    ClusterSubmit,
    CpuTimes,
    Disconnected,
    Evicted,
    Executing,
    FactoryPaused,
    FactoryResumed,
    FileTransfer,
    Generic,
    Held,
    ImageSize,
    JobAdInformation,
    LogEvent,
    Reconnected,
    ReconnectFailed,
    Released,
    Resource,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
    format_of,
    parse,
    render,
)
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

htcondor2 = pytest.importorskip("htcondor2", reason="HTCondor's bindings, from the package htcondor")

JOB: Final[dict[str, Any]] = {"job": JobId(42, 7), "at": 1_790_000_000}
CLUSTER: Final[dict[str, Any]] = {"job": JobId(42, -1), "at": 1_790_000_000}
HOST: Final = "<10.0.0.9:9618?alias=ep>"
USED: Final[dict[str, Any]] = {
    "remote": CpuTimes(12, 93784),
    "local": CpuTimes(1, 2),
    "sent": 10,
    "received": 20,
}
TABLE: Final = [
    Resource(label="Cpus", usage="0.05", request="1", allocated="1", assigned=""),
    Resource(label="Disk (KB)", usage="40", request="1024", allocated="1048576", assigned=""),
    Resource(label="Gpus (Average)", usage="0.50", request="1", allocated="1", assigned='"GPU-ab12"'),
    Resource(label="Memory (MB)", usage="2", request="128", allocated="128", assigned=""),
    Resource(label="TimeExecute (s)", usage="12", assigned=""),
]
PLAIN: Final = [Resource(label="Cpus", usage="0.05", request="1", allocated="1")]
INFORMATION: Final[Ad] = {
    "Cluster": 42, "EventTime": "2026-09-21T14:13:20", "EventTypeNumber": 28, "Foo": 'a "text" <&> ü', "JobStatus": 2,
    "MyType": "JobAdInformationEvent", "Proc": 7, "Share": 0.5, "Subproc": 0, "TriggerEventTypeNumber": 12, "Yes": True,
}  # fmt: skip
FORMS: Final = ("", "XML", "JSON")

EVENTS: Final[dict[str, LogEvent]] = {
    "submitted": Submitted(**JOB, host=HOST),
    "submitted with notes": Submitted(**JOB, host=HOST, notes=["3", "mine"]),
    "submitted as a node": Submitted(**JOB, host=HOST, notes=["DAG Node: X", "mine", "WARNING: look"]),
    "executing": Executing(**JOB, host=HOST, slot="slot1_1@h", attributes=[("Dir", '"/x y"'), ("Cpus", "1")]),
    "executing, no more": Executing(**JOB, host=HOST),
    "checkpointed": Checkpointed(**JOB, remote=CpuTimes(1, 2), sent=1024),
    "evicted": Evicted(**JOB, **USED, code=1004, subcode=7, reason="vacated"),
    "evicted with a table": Evicted(**JOB, **USED, code=1004, reason="vacated", resources=PLAIN),
    "requeued": Evicted(**JOB, **USED, code=1005, requeued=ExitRecord(code=3), reason="once more"),
    "requeued after a signal": Evicted(**JOB, **USED, requeued=ExitRecord(signal=9), reason="once more"),
    "terminated": Terminated(**JOB, exit=ExitRecord(code=3), total_sent=3, received=4, resources=TABLE),
    "terminated by a signal": Terminated(**JOB, exit=ExitRecord(signal=11, core="/tmp/core")),
    "image size": ImageSize(**JOB, image_kib=12345, memory_mib=3, resident_kib=2048, proportional_kib=2000),
    "generic": Generic(**JOB, info="some text"),
    "aborted": Aborted(**JOB, reason="via condor_rm (by user alice)"),
    "suspended": Suspended(**JOB, processes=3),
    "unsuspended": Unsuspended(**JOB),
    "held": Held(**JOB, reason='ünder <a> & "b"', code=1, subcode=2),
    "held for no reason": Held(**JOB),
    "released": Released(**JOB, reason="via condor_release (by user alice)"),
    "disconnected": Disconnected(**JOB, slot="slot1@ep9", host=HOST, reason="it is silent"),
    "reconnected": Reconnected(**JOB, slot="slot1@ep9", host=HOST),
    "reconnect failed": ReconnectFailed(**JOB, slot="slot1@ep9", reason="too long"),
    "job ad": JobAdInformation(**JOB, attributes=INFORMATION),
    "cluster submitted": ClusterSubmit(**CLUSTER, host=HOST),
    "cluster removed": ClusterRemove(**CLUSTER, jobs=2, items=5, completion=2, reason="no more"),
    "factory paused": FactoryPaused(**CLUSTER, reason="mine", code=1),
    "factory resumed": FactoryResumed(**CLUSTER, reason="mine"),
    **{f"transfer {kind}": FileTransfer(**JOB, kind=kind) for kind in range(1, 7)},
    "transfer with its wait": FileTransfer(**JOB, kind=2, queued=3, host=HOST),
}  # fmt: skip


def seen(event: Any) -> dict[str, Any]:
    own = {key: str(event[key]) if "ClassAd" in type(event[key]).__name__ else event[key] for key in event}
    return own | {"": [int(event.type), event.cluster, event.proc, event.timestamp]}


def missed(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """What HTCondor's reader says and ours does not."""
    return {key: (value, ours.get(key)) for key, value in theirs.items() if ours.get(key) != value}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_htcondor_reads_what_we_write(event: LogEvent, form: str, tmp_path: Path) -> None:
    """
    HTCondor reads an event of the same kind, of the same job, at the same time, with the same attributes.
    """
    log = tmp_path / "log"
    log.write_text(render(event, None, format_of(form)))
    with htcondor2.JobEventLog(str(log)) as reader:
        [theirs] = [seen(event) for event in reader.events(stop_after=0)]
    [ours] = [seen(event) for event in JobEventLog(str(log)).events(stop_after=0)]

    assert [event.number, event.job.cluster, event.job.proc, event.at] == theirs[""]
    assert {} == missed(theirs, ours)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_what_we_write_we_read(event: LogEvent, form: str) -> None:
    """An event comes back as it was, in every form."""
    text = render(event, UTC, format_of(form))
    [read] = parse(text, UTC)
    assert render(event, UTC) == render(read, UTC)
    assert text == render(read, UTC, format_of(form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options", ["", "UTC", "SUB_SECOND", "UTC SUB_SECOND", "LEGACY", "LEGACY, SUB_SECOND"]
)
def test_htcondor_reads_our_times(form: str, options: str, tmp_path: Path) -> None:
    """
    Each way to show a time is read as that time.

    That of a date without its year is that of this year.
    """
    written = format_of(f"{form} {options}")
    log = tmp_path / "log"
    log.write_text(render(Unsuspended(job=JobId(1, 0), at=1_790_000_000.25), None, written))
    with htcondor2.JobEventLog(str(log)) as reader:
        [theirs] = reader.events(stop_after=0)
    [ours] = JobEventLog(str(log)).events(stop_after=0)
    assert theirs.timestamp == ours.timestamp
    assert theirs["EventTime"] == ours["EventTime"]
    if "LEGACY" not in options:
        assert 1_790_000_000 == ours.timestamp
