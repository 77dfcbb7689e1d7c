"""The reader of job event logs says what HTCondor's says."""

import pickle
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.bindings.enumerations import JobEventType
from kettle.bindings.errors import HTCondorException
from kettle.bindings.job_event_log import JobEventLog

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
    "terminated": f"005 Job terminated.\n\t(1) Normal termination (return value 3)\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}{TABLE}",
    "terminated by a signal": f"005 Job terminated.\n\t(0) Abnormal termination (signal 9)\n\t(0) No core file\n{RUN}{TOTAL}"
    f"{BYTES.format(1, 'Run', 'Run')}{BYTES.format(2, 'Total', 'Total')}",
    "image size": "006 Image size of job updated: 12345\n\t3  -  MemoryUsage of job (MB)\n"
    "\t2048  -  ResidentSetSize of job (KB)\n",
    "shadow exception": "007 Shadow exception!\n\tFailed to connect\n\t3  -  Run Bytes Sent By Job\n"
    "\t4  -  Run Bytes Received By Job\n",
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
    "ad": '028 Job ad information event triggered.\nFoo = 3\nBar = "x"\nTriggerEventTypeName = "ULOG_EXECUTE"\n',
    "transfer": "040 Started transferring input files\n\tSeconds spent in queue: 3\n\tTransferring to host: <10.0.0.9:9618>\n",
}


def written(path: Path, *texts: str) -> Path:
    head = "{} (042.007.000) 2026-11-20 17:00:00 {}...\n"
    path.write_text("".join(head.format(text[:3], text[4:]) for text in texts))
    return path


def seen(event: Any) -> dict[str, Any]:
    own = {key: str(event[key]) if "ClassAd" in type(event[key]).__name__ else event[key] for key in event}
    return own | {
        "": [
            int(event.type),
            event.type.name,
            event.cluster,
            event.proc,
            event.timestamp,
            str(event).split("\n")[0],
        ]
    }


@oracle.needed
@pytest.mark.parametrize("text", EVENTS.values(), ids=EVENTS.keys())
def test_an_event_has_the_attributes_that_it_has_in_htcondor(text: str, tmp_path: Path) -> None:
    log = written(tmp_path / "job.log", text)
    [theirs] = oracle.module("htcondor2").JobEventLog(str(log)).events(stop_after=0)
    [ours] = JobEventLog(str(log)).events(stop_after=0)
    assert seen(theirs) == seen(ours)


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
