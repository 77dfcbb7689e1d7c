from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest

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
    Other,
    Reconnected,
    ReconnectFailed,
    Released,
    Resource,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
    parse,
    render,
)
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

SAMPLE = (Path(__file__).parent / "data" / "eventlog-sample.log").read_text()
"""62 events, one or more of every kind, each of which HTCondor's own reader accepts."""

HOST = "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap.example>"
NOON = 1789992000
"""2026-09-21 12:00:00 UTC."""


def aligned(line: str) -> str:
    """
    A line of a table without its alignment.

    The sample was typed by hand: its rows stand where a reader finds them, not exactly where a writer puts them.
    """
    return " ".join(line.split()) if line.startswith("\t   ") else line


def test_every_event_is_read() -> None:
    """All 62 events of the sample are found, those that we write as what they are."""
    kinds = Counter(type(event) for event in parse(SAMPLE, UTC))
    assert {
        Submitted: 3, Executing: 2, Evicted: 3, Terminated: 3, ImageSize: 2, Aborted: 2, Held: 2, Released: 2,
        Checkpointed: 1, Suspended: 1, Unsuspended: 1, Disconnected: 1, Reconnected: 1, ReconnectFailed: 1,
        FileTransfer: 3, Generic: 1, JobAdInformation: 1, ClusterSubmit: 1, ClusterRemove: 2, FactoryPaused: 1,
        FactoryResumed: 1, Other: 27,
    } == dict(kinds)  # fmt: skip


def test_the_sample_is_written_back() -> None:
    """What is read and written again is the sample, byte for byte but for the alignment inside tables."""
    written = "".join(render(event, UTC) for event in parse(SAMPLE, UTC))
    assert [aligned(line) for line in SAMPLE.splitlines()] == [aligned(line) for line in written.splitlines()]
    assert written == "".join(render(event, UTC) for event in parse(written, UTC))


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (
            1,
            Submitted(
                job=JobId(43, 0),
                at=NOON + 2,
                host=HOST,
                notes=[
                    "DAG Node: A",
                    "user note line",
                    "WARNING: Committed job submission into the queue with the following warning(s): be careful",
                ],
            ),
        ),
        (
            6,
            Executing(
                job=JobId(42, 0),
                at=NOON + 7,
                host="<10.0.0.9:9618?addrs=10.0.0.9-9618&alias=ep9.example>",
                slot="slot1_1@ep9.example",
                attributes=[
                    ("CondorScratchDir", '"/var/lib/condor/execute/dir_1"'),
                    ("Cpus", "1"),
                    ("Disk", "1048576"),
                    ("Memory", "128"),
                ],
            ),
        ),
        (
            11,
            Evicted(
                job=JobId(42, 0),
                at=NOON + 12,
                remote=CpuTimes(12, 1),
                local=CpuTimes(12, 1),
                sent=10,
                received=20,
                reason="user request",
                resources=[
                    Resource(label="Cpus", usage="0.01", request="1", allocated="1"),
                    Resource(label="Disk (KB)", usage="50", request="1024", allocated="1048576"),
                    Resource(label="Memory (MB)", usage="1", request="128", allocated="128"),
                ],
            ),
        ),
        (
            13,
            Evicted(
                job=JobId(42, 0),
                at=NOON + 14,
                requeued=ExitRecord(code=3),
                remote=CpuTimes(12, 1),
                local=CpuTimes(12, 1),
                sent=10,
                received=20,
                reason="OnExitRemove was false",
            ),
        ),
        (
            16,
            Terminated(
                job=JobId(44, 0),
                at=NOON + 17,
                exit=ExitRecord(signal=11, core="/tmp/core"),
                run_remote=CpuTimes(12, 1),
                run_local=CpuTimes(12, 1),
                total_remote=CpuTimes(12, 1),
                total_local=CpuTimes(12, 1),
                sent=100,
                received=200,
                total_sent=300,
                total_received=400,
            ),
        ),
        (25, Held(job=JobId(42, 0), at=NOON + 26, reason="via condor_hold (by user alice)", code=1)),
    ],
)
def test_values(index: int, expected: object) -> None:
    """The values inside an event are read."""
    assert expected == parse(SAMPLE, UTC)[index]


def test_table_with_devices() -> None:
    """The column of assigned devices is read, and rows that have nothing in a column."""
    event = parse(SAMPLE, UTC)[14]
    assert isinstance(event, Terminated)
    assert [
        Resource(label="Gpus (Average)", usage="0.50", request="1", allocated="1", assigned='"GPU-ab12"'),
        Resource(label="Memory (MB)", usage="2", request="128", allocated="128", assigned=""),
        Resource(label="TimeExecute (s)", usage="12", request="", allocated="", assigned=""),
    ] == event.resources[2:5]
    assert "Job terminated of its own accord at 2026-09-21T12:00:00Z with exit-code 0." == event.ticket
