"""The reader of job event logs says what HTCondor's says."""

import pickle
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.bindings.enumerations import JobEventType
from kettle.bindings.errors import HTCondorException
from kettle.bindings.job_event_log import JobEventLog
from kettle.userlog import LogReader, format_of, heading, parse, render

from . import oracle

USAGE: Final = "Usr 0 00:00:12, Sys 1 02:03:04"
BYTES: Final = "\t{}  -  {} Bytes Sent By Job\n\t20  -  {} Bytes Received By Job\n"
RUN: Final = f"\t\t{USAGE}  -  Run Remote Usage\n\t\t{USAGE}  -  Run Local Usage\n"
TOTAL: Final = f"\t\t{USAGE}  -  Total Remote Usage\n\t\t{USAGE}  -  Total Local Usage\n"
TABLE: Final = (
    "\tPartitionable Resources :    Usage  Request Allocated Assigned\n"
    "\t   Cpus                 :     0.05        1         1 \n"
    "\t   Disk (KB)            :    40        1024   1048576 \n"
    '\t   Gpus (Average)       :     0.50        1         1 "GPU-ab12"\n'
    "\t   Memory (MB)          :     2         128       128 \n"
    "\t   TimeExecute (s)      :    12                       \n"
)
EVENTS: Final = {
    "submit": "000 Job submitted from host: <10.0.0.1:9618?alias=ap>\n",
    "submit with notes": "000 Job submitted from host: <10.0.0.1:9618>\n    3\n    mine\n",
    "submit of a node": "000 Job submitted from host: <10.0.0.1:9618>\n    DAG Node: X\n",
    "execute": '001 Job executing on host: <10.0.0.9:9618>\n\tSlotName: slot1_1@h\n\tDir = "/x"\n\tCpus = 1\n',
    "execute, no more": "001 Job executing on host: <10.0.0.9:9618>\n",
    "checkpointed": f"003 Job was checkpointed.\n\t{USAGE}  -  Run Remote Usage\n\t{USAGE}  -  Run Local Usage\n"
    "\t1024  -  Run Bytes Sent By Job For Checkpoint\n",
    "evicted": f"004 Job was evicted.\n\t(0) CPU times\n{RUN}{BYTES.format(10, 'Run', 'Run')}\tReason: user request\n",
    "evicted with a code": f"004 Job was evicted. Code 1004 Subcode 7\n\t(1) Job was checkpointed.\n{RUN}"
    f"{BYTES.format(10, 'Run', 'Run')}\tReason: vacated\n",
    "requeued": f"004 Job was evicted.\n\t(0) Job terminated and was requeued\n{RUN}{BYTES.format(1, 'Run', 'Run')}"
    "\t(1) Normal termination (return value 3)\n\tOnExitRemove was false\n",
    "requeued with a code": f"004 Job was evicted. Code 5 Subcode 1\n\t(0) Job terminated and was requeued\n{RUN}"
    f"{BYTES.format(1, 'Run', 'Run')}\t(1) Normal termination (return value 3)\n\tReason: OnExitRemove was false\n",
    "requeued, signal unknown": f"004 Job was evicted.\n\t(0) Job terminated and was requeued\n{RUN}"
    f"{BYTES.format(1, 'Run', 'Run')}\t(0) Abnormal termination (signal -1)\n\t(0) No core file\n",
    "terminated, signal unknown": f"005 Job terminated.\n\t(0) Abnormal termination (signal -1)\n\t(0) No core file\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}",
    "terminated": f"005 Job terminated.\n\t(1) Normal termination (return value 3)\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}{TABLE}",
    "terminated by a signal": f"005 Job terminated.\n\t(0) Abnormal termination (signal 9)\n\t(0) No core file\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}",
    "image size": "006 Image size of job updated: 12345\n\t3  -  MemoryUsage of job (MB)\n"
    "\t2048  -  ResidentSetSize of job (KB)\n",
    "shadow exception": "007 Shadow exception!\n\tFailed to connect\n\t3  -  Run Bytes Sent By Job\n"
    "\t4  -  Run Bytes Received By Job\n",
    "shadow exception, no more": "007 Shadow exception!\n\tFailed to connect\n",
    "executable error": "002 (0) Job file not executable.\n",
    "node executing": "014 Node 3 executing on host: <10.0.0.9:9618>\n\tSlotName: slot1@x\n\tCpus = 1\n",
    "node terminated": f"015 Node 3 terminated.\n\t(0) Abnormal termination (signal 9)\n\t(1) Corefile in: /x/core\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}{TABLE}".replace("By Job", "By Node"),
    "remote error": "021 Error from starter on slot1@h:\n\tcannot do it\n\tmore of it\n\tCode 7 Subcode 2\n",
    "remote warning": "021 Warning from starter on slot1@h:\n\tcannot do it\n",
    "grid resource up": "025 Grid Resource Back Up\n    GridResource: batch slurm\n",
    "grid resource down": "026 Detected Down Grid Resource\n    GridResource: batch slurm\n",
    "grid submit": "027 Job submitted to grid resource\n    GridResource: batch slurm\n    GridJobId: batch slurm 12\n",
    "status unknown": "029 The job's remote status is unknown\n",
    "status known": "030 The job's remote status is known again\n",
    "stage in": "031 Job is performing stage-in of input files\n",
    "attribute update": "033 Changing job attribute Foo from 1 to 2\n",
    "skipped by its script": "034 PRE script return value is PRE_SKIP value\n    DAG Node: X\n",
    "space reserved": "041 Bytes reserved: 100\n\tReservation Expiration: 1790000000\n\tReservation UUID: abc\n\tTag: t\n",
    "space released": "042 Reservation UUID: abc\n",
    "file complete": "043 Bytes: 12\n\tChecksum Value: abc\n\tChecksum Type: MD5\n\tUUID: u\n",
    "file used": "044 Checksum Value: abc\n\tChecksum Type: MD5\n\tTag: u\n",
    "file removed": "045 Bytes: 12\n\tChecksum Value: abc\n\tChecksum Type: MD5\n\tTag: u\n",
    "dataflow job skipped": "046 Dataflow job was skipped.\n\tbecause\n",
    "generic": "008 some generic text\n",
    "aborted": "009 Job was aborted.\n\tvia condor_rm (by user alice)\n",
    "suspended": "010 Job was suspended.\n\tNumber of processes actually suspended: 3\n",
    "unsuspended": "011 Job was unsuspended.\n",
    "held": "012 Job was held.\n\tvia condor_hold (by user alice)\n\tCode 1 Subcode 2\n",
    "held for no reason": "012 Job was held.\n\tReason unspecified\n\tCode 0 Subcode 0\n",
    "released": "013 Job was released.\n\tvia condor_release (by user alice)\n",
    "post script": "016 POST Script terminated.\n\t(1) Normal termination (return value 3)\n    DAG Node: X\n",
    "disconnected": "022 Job disconnected, attempting to reconnect\n    Socket closed unexpectedly\n"
    "    Trying to reconnect to slot1@ep9 <10.0.0.9:9618>\n",
    "reconnected": "023 Job reconnected to slot1@ep9\n    startd address: <10.0.0.9:9618>\n"
    "    starter address: <10.0.0.9:9618>\n",
    "reconnect failed": "024 Job reconnection failed\n    Job disconnected too long\n"
    "    Can not reconnect to slot1@ep9, rescheduling job\n",
    "ad": '028 Job ad information event triggered.\nFoo = 3\nBar = "x"\nCurrentTime = time()\nTriggerEventTypeName = "ULOG_EXECUTE"\n',
    "transfer": "040 Started transferring input files\n\tSeconds spent in queue: 3\n\tTransferring to host: <10.0.0.9:9618>\n",
}


WRITTEN_OTHERWISE: Final = frozenset({21, 41, 42, 43, 44, 45})
"""Of these HTCondor does not write what it reads: a line end, or `Message` for `Warning`."""


def written(path: Path, *texts: str) -> Path:
    head = "{} (042.007.000) 2026-11-20 17:00:00 {}...\n"
    path.write_text("".join(head.format(text[:3], text[4:]) for text in texts))
    return path


def seen(event: Any) -> dict[str, Any]:
    own = {
        key: str(event[key]) if {"ClassAd", "ExprTree"} & {type(event[key]).__name__} else event[key]
        for key in event
    }
    return own | {
        "": [
            int(event.type),
            event.type.name,
            event.cluster,
            event.proc,
            event.timestamp,
            "" if event.type in WRITTEN_OTHERWISE else str(event).split("\n")[0],
        ]
    }


@oracle.needed
@pytest.mark.parametrize("text", EVENTS.values(), ids=EVENTS.keys())
def test_an_event_has_the_attributes_that_it_has_in_htcondor(text: str, tmp_path: Path) -> None:
    log = written(tmp_path / "job.log", text)
    [theirs] = oracle.module("htcondor2").JobEventLog(str(log)).events(stop_after=0)
    [ours] = JobEventLog(str(log)).events(stop_after=0)
    assert seen(theirs) == seen(ours)


def missed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What one reader says and the other does not; the text of an event is in its form."""
    return {name: value for name, value in one.items() if name and shown(other.get(name)) != shown(value)}


def shown(value: Any) -> str:
    """As one line: a value in XML or JSON has one, so that readers find the end of an event."""
    return str(value).replace("\n", " ")


@oracle.needed
@pytest.mark.parametrize("form", ["XML", "JSON"])
@pytest.mark.parametrize("text", EVENTS.values(), ids=EVENTS.keys())
def test_an_event_says_the_same_in_another_form(text: str, form: str, tmp_path: Path) -> None:
    """
    HTCondor reads in XML and JSON, as Kettle writes it, the kind of event and all attributes that it reads in the text.
    """
    log = written(tmp_path / "job.log", text)
    [event] = parse(log.read_text())
    other = tmp_path / "other.log"
    other.write_text(render(event, None, format_of(form)))
    [theirs] = oracle.module("htcondor2").JobEventLog(str(other)).events(stop_after=0)
    [ours] = JobEventLog(str(other)).events(stop_after=0)
    of_text = seen(next(JobEventLog(str(log)).events(stop_after=0)))
    assert missed(of_text, seen(ours)) == {}
    assert missed(seen(theirs), seen(ours)) == {}
    assert [int(theirs.type), theirs.timestamp] == [int(ours.type), ours.timestamp]


GOOD: Final = "009 (042.008.000) 2026-11-20 17:00:01 Job was aborted.\n...\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "011 (042.007.000) 2026-13-20 17:00:00 Job was unsuspended.\n...\n",
            "line 1: event 011: month must be",
        ),
        (
            "011 (042.007.000) 2026-11-20 25:00:00 Job was unsuspended.\n...\n",
            "line 1: event 011: hour must be",
        ),
        (
            f"011 ({'9' * 10_000}.007.000) 2026-11-20 17:00:00 Job was unsuspended.\n...\n",
            "the number 9{20}... is too large",
        ),
        (
            f"006 (042.007.000) 2026-11-20 17:00:00 Image size of job updated: {'9' * 10_000}\n...\n",
            "line 1: event 006: the number 9{20}... is too large",
        ),
        (
            "021 (042.007.000) 2026-11-20 17:00:00 Nothing\n...\n",
            "line 1: event 021: it does not say from which",
        ),
        ("999 (042.007.000) 2026-11-20 17:00:00 What may come\n...\n", "kind 999"),
    ],
)
def test_a_wrong_event_is_named_and_the_next_is_read(text: str, says: str, tmp_path: Path) -> None:
    """A month of 13 or a number of 10,000 digits is an error of that event only."""
    path = tmp_path / "job.log"
    path.write_text(text + GOOD)
    log = JobEventLog(str(path)).events(stop_after=0)
    with pytest.raises(HTCondorException, match=says):
        next(log)
    assert [(9, 8)] == [(int(event.type), event.proc) for event in log]


@pytest.mark.parametrize("before", ["  ", "\t", "\n", "\n\n  "])
def test_blanks_before_an_event_end_nothing(before: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(GOOD + before + GOOD + GOOD)
    assert [9, 9, 9] == [int(event.type) for event in JobEventLog(str(path)).events(stop_after=0)]
    assert [9, 9, 9] == [heading(block).number for block in LogReader(path).all()]


def test_a_reader_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Also as a copy out of a pickle; an event that is not written to its end is not there yet."""
    path = written(tmp_path / "job.log", EVENTS["submit"], EVENTS["execute"])
    log = JobEventLog(str(path))
    assert JobEventType.SUBMIT is next(log).type
    copied = pickle.loads(pickle.dumps(log))
    assert [1] == [event.type for event in copied.events(stop_after=0)]
    with path.open("a") as file:
        file.write("009 (042.007.000) 2026-11-20 17:00:00 Job was aborted.\n")
        file.flush()
        assert [1] == [event.type for event in log.events(stop_after=0)]
        file.write("...\n")
    assert [9] == [event.type for event in log.events(stop_after=0)]


def test_a_copy_of_a_reader_ends_when_the_reader_does(tmp_path: Path) -> None:
    """HTMap keeps its reader in a file between two runs, and reads on without saying again for how long."""
    path = written(tmp_path / "job.log", EVENTS["submit"])
    log = JobEventLog(str(path)).events(stop_after=0)
    copied = pickle.loads(pickle.dumps(log))
    assert [0] == [event.type for event in copied]


def test_a_reader_waits_for_what_comes(tmp_path: Path) -> None:
    path = written(tmp_path / "job.log")
    log = JobEventLog(str(path))
    writing = threading.Thread(target=written, args=(path, EVENTS["submit"]))
    writing.start()
    assert 42 == next(log.events(stop_after=None)).cluster
    writing.join()
    log.close()
    with pytest.raises(StopIteration):
        next(log)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HTCondorException, match="No such file"):
        JobEventLog(str(tmp_path / "nothing"))
    (tmp_path / "text").write_text("hello\n...\n")
    with pytest.raises(HTCondorException, match="no event"):
        next(JobEventLog(str(tmp_path / "text")))
