from datetime import UTC
from pathlib import PurePosixPath

import msgspec

from kettle.userlog import FileTransfer, Suspended, Tail, UserLogProjector, parse
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClaimGranted,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDisconnected,
    JobHeld,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobSuspended,
    JobVacated,
    Transfer,
    Usage,
)

from .shard import ASSIGNED, AT, DONE, STARTED, USAGE, Shard, cluster, memory, numbers


def test_a_job_from_submission_to_its_end() -> None:
    """A job's log tells where it ran, what it used, what it had asked for and how it ended."""
    shard = Shard()
    lines = shard.feed(cluster())
    slot: Ad = {"Cpus": 1, "Memory": 128, "Disk": 1024, "MyAddress": "<10.0.0.9:0?alias=ep>"}
    granted = ClaimGranted(
        claim="c#1", startd="ep", slot="slot1_1@ep", slot_ad=slot, submitter="a", autocluster=1, lease=60.0
    )
    lines += shard.feed(granted, ASSIGNED)
    lines += shard.feed(STARTED)
    lines += shard.feed(DONE)
    expected = """\
000 (005.000.000) 2026-09-21 14:13:21 Job submitted from host: <ap:9618>
...
001 (005.000.000) 2026-09-21 14:13:23 Job executing on host: <10.0.0.9:0?alias=ep>
\tSlotName: slot1_1@ep
\tCpus = 1
\tDisk = 1024
\tMemory = 128
...
005 (005.000.000) 2026-09-21 14:13:24 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:00:04, Sys 0 00:00:01  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:00:04, Sys 0 00:00:01  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t3  -  Run Bytes Sent By Job
\t5  -  Run Bytes Received By Job
\t3  -  Total Bytes Sent By Job
\t5  -  Total Bytes Received By Job
\tPartitionable Resources :    Usage  Request Allocated\x20
\t   Cpus                 :     0.50        1         1\x20
\t   Disk (KB)            :    50        1024      1024\x20
\t   Memory (MB)          :     3         128       128\x20
\t   TimeExecute (s)      :     9                      \x20
\t   TimeSlotBusy (s)     :    10                      \x20

\tJob terminated of its own accord at 2026-09-21T14:13:31Z with exit-code 0.
...
"""
    assert expected == "".join(line.text for line in lines)
    assert {PurePosixPath("/home/a/job.log")} == {line.path for line in lines}


def test_paths_of_items() -> None:
    """Each job has its own file where the items say so, with the cluster's number put in."""
    ad: Ad = {"Iwd": "/w"}
    lines = Shard().feed(
        cluster(ad=ad, columns=["UserLog", "Args"], items=[["$(ClusterId).0", "x"], ["/l/1", "y"]])
    )
    assert ["/w/5.0", "/l/1"] == [str(line.path) for line in lines]


def test_no_log_no_memory() -> None:
    """Jobs without a log, and jobs whose file is relative to nothing, yield no line."""
    shard = Shard()
    assert [] == shard.feed(cluster(ad={"Iwd": "/w"}))
    assert memory(UserLogProjector("ap")) == memory(shard.projector)
    assert [] == shard.feed(ASSIGNED, STARTED, DONE)
    assert [] == Shard().feed(cluster(ad={"UserLog": "relative.log"}))


def test_held_while_running() -> None:
    """
    The hold of a running job is written when its attempt has ended, after the eviction, which has its code.
    """
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    assert [] == shard.feed(JobHeld(code=1, subcode=4, reason="mine"))
    lines = shard.feed(JobVacated(attempt=1, ending=Ending(code=1022, reason="vacated"), usage=USAGE))
    assert ["004", "012"] == numbers(lines)
    assert "Job was evicted. Code 1 Subcode 4" in lines[0].text
    assert "\tReason: mine\n" in lines[0].text


def test_terminated_and_requeued() -> None:
    """
    A job that ran to its end and stays in the queue is evicted, with how it ended; its next run is written again.
    """
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    (line,) = shard.feed(
        JobVacated(
            attempt=1,
            ending=Ending(code=1005, reason="OnExitRemove was false"),
            exit=ExitRecord(code=3),
            usage=USAGE,
        )
    )
    assert "Job was evicted. Code 1005 Subcode 0\n\t(0) Job terminated and was requeued\n" in line.text
    assert "\t(1) Normal termination (return value 3)\n\tOnExitRemove was false\n" in line.text
    assert ["001", "005"] == numbers(shard.feed(ASSIGNED, STARTED, DONE))


def test_held_at_its_exit() -> None:
    """
    A job that is held for how it ended is evicted with the code of its policy, then held with the hold's.
    """
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    lines = shard.feed(
        JobVacated(attempt=1, ending=Ending(code=1000, reason="it failed"), exit=ExitRecord(code=3)),
        JobHeld(code=3, subcode=4, reason="it failed"),
    )
    assert ["004", "012"] == numbers(lines)
    assert "requeued" not in lines[0].text
    assert "\tit failed\n\tCode 3 Subcode 4\n" in lines[1].text


def test_removed_while_running() -> None:
    """A removed job is evicted with code 1023, then aborted; then nothing of it is kept."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobRemoved(reason="no more"))
    lines = shard.feed(JobVacated(attempt=1, ending=Ending(code=1022, reason="vacated")))
    assert ["004", "009"] == numbers(lines)
    assert "Code 1023 Subcode 0" in lines[0].text
    assert "\tno more\n" in lines[1].text
    assert [] == shard.feed(JobHeld(code=1, reason="late"))


def test_removed_and_finished_is_one_end() -> None:
    """A job that exits while it is being removed has one terminal event: aborted."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobRemoved(reason="no more"))
    assert ["004", "009"] == numbers(shard.feed(DONE))


def test_held_and_finished_is_finished() -> None:
    """A job that completes although it was to be held never was held for those who read its log."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobHeld(code=1, reason="mine"))
    assert ["005"] == numbers(shard.feed(DONE))


def test_idle_jobs() -> None:
    """Nothing is evicted where nothing runs."""
    shard = Shard()
    lines = shard.feed(
        cluster(), JobHeld(code=1, reason="h"), JobReleased(reason="r"), JobRemoved(reason="x")
    )
    assert ["000", "012", "013", "009"] == numbers(lines)


def test_an_attempt_that_never_began() -> None:
    """The eviction of an attempt whose start was never written is not written; a hold for its failure is."""
    shard = Shard()
    failed = (
        JobVacated(attempt=1, ending=Ending(code=6, reason="no exec")),
        JobHeld(code=6, reason="no exec"),
    )
    assert ["000", "012"] == numbers(shard.feed(cluster(), ASSIGNED, *failed))


def test_totals_over_attempts() -> None:
    """Totals include the attempts that were evicted."""
    shard = Shard()
    shard.feed(
        cluster(), ASSIGNED, STARTED, JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=USAGE)
    )
    (line, *_) = reversed(shard.feed(ASSIGNED, STARTED, DONE))
    assert "\t\tUsr 0 00:00:08, Sys 0 00:00:02  -  Total Remote Usage" in line.text
    assert "\t6  -  Total Bytes Sent By Job" in line.text


def test_a_cluster_is_kept_while_one_of_its_jobs_lives() -> None:
    """State goes when the last job goes: a projector does not grow with the history."""
    shard = Shard()
    empty = memory(shard.projector)
    shard.feed(cluster(rows=2))
    shard.feed(ASSIGNED, STARTED, DONE)
    kept = memory(shard.projector)
    shard.feed(JobRemoved(), proc=1)
    assert empty < kept
    assert empty == memory(shard.projector)


def test_a_frame_again_is_nothing() -> None:
    """A frame that was fed before yields no line."""
    shard = Shard()
    frame = shard.frame(cluster())
    assert 1 == len(shard.projector.feed(frame))
    assert [] == shard.projector.feed(frame)


def test_going_on_from_a_snapshot() -> None:
    """A projector from a snapshot says the same as the one that was never stopped."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobHeld(code=1, reason="h"))
    other = UserLogProjector("ap:9618", zone=UTC, snapshot=shard.projector.snapshot())
    frame = shard.frame(JobVacated(attempt=1, ending=Ending(code=1, reason="h"), usage=USAGE))
    assert shard.projector.feed(frame) == other.feed(frame)
    assert shard.number == other.frame


def test_every_line_can_be_read() -> None:
    """What the projector writes, the reader reads, submit notes included."""
    ad: Ad = {"Iwd": "/w", "UserLog": "l", "SubmitEventNotes": "DAG Node: A", "RequestCpus": Expr("x")}
    shard = Shard()
    lines = shard.feed(cluster(ad=ad), ASSIGNED, STARTED)
    lines += shard.feed(JobCompleted(attempt=1, exit=ExitRecord(signal=9)))
    events = parse("".join(line.text for line in lines), UTC)
    assert [0, 1, 5] == [event.number for event in events]
    assert "    DAG Node: A\n" in lines[0].text
    assert "(signal 9)" in lines[2].text


def test_redelivered_lines_are_found() -> None:
    """Each event in the tail answers for one delivery; a torn last event is not there."""
    tail = Tail("a\n...\nb\nc\n...\na\n...\ntorn")
    assert [True, True, False, True, False] == [
        tail.already_written(text)
        for text in ("a\n...\n", "a\n...\n", "a\n...\n", "b\nc\n...\n", "torn\n...\n")
    ]


def test_suspended_and_continued() -> None:
    """The log tells both, with the number of processes; not of an attempt that never began."""
    shard = Shard()
    shard.feed(cluster())
    assert [] == shard.feed(ASSIGNED, JobSuspended(attempt=1, processes=3))
    lines = shard.feed(STARTED, JobSuspended(attempt=1, processes=3), JobContinued(attempt=1))
    assert ["001", "010", "011"] == numbers(lines)
    text = "".join(line.text for line in lines)
    assert "Job was suspended.\n\tNumber of processes actually suspended: 3\n...\n" in text
    assert "Job was unsuspended.\n...\n" in text
    assert [3] == [event.processes for event in parse(text) if isinstance(event, Suspended)]


def test_a_machine_that_does_not_answer_and_answers_again() -> None:
    """The log names the slot and its address, and goes on as if nothing had been."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED)
    lines = shard.feed(
        STARTED, JobDisconnected(attempt=1, reason="it is silent"), JobReconnected(attempt=1), DONE
    )
    assert ["001", "022", "023", "005"] == numbers(lines)
    text = "".join(line.text for line in lines)
    where = "slot1_1@ep <0.0.0.0:0?alias=ep>"
    assert (
        f" Job disconnected, attempting to reconnect\n    it is silent\n    Trying to reconnect to {where}\n"
        in text
    )
    assert (
        " Job reconnected to slot1_1@ep\n    startd address: <0.0.0.0:0?alias=ep>\n    starter address: <"
        in text
    )


def test_a_machine_that_is_not_heard_of_again() -> None:
    """Instead of an eviction the log says that the job is rescheduled; what ended otherwise is evicted."""
    lost = JobVacated(attempt=1, ending=Ending(code=1008, reason="the lease ran out"))
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    lines = shard.feed(JobDisconnected(attempt=1, reason="it is silent"), lost)
    assert ["022", "024"] == numbers(lines)
    last = " Job reconnection failed\n    the lease ran out\n    Can not reconnect to slot1_1@ep, rescheduling job\n"
    assert last in lines[1].text
    assert ["001", "004"] == numbers(shard.feed(ASSIGNED, STARTED, lost))


def test_files_that_were_moved_on_their_own() -> None:
    """
    Before the job's start and before its end: queued, started with the wait and the host, finished; as HTCondor reads it.
    """
    shard = Shard()
    shard.feed(cluster())
    slot: Ad = {"Cpus": 1, "MyAddress": "<10.0.0.9:9618>"}
    granted = ClaimGranted(
        claim="c#1", startd="ep", slot="slot1_1@ep", slot_ad=slot, submitter="a", autocluster=1, lease=60.0
    )
    shard.feed(granted, ASSIGNED)
    came = Transfer(began=AT + 10.5, ended=AT + 12.0, queued=3.0)
    lines = shard.feed(JobStarted(attempt=1, at=AT + 12.0, input=came))
    expected = """\
040 (005.000.000) 2026-09-21 14:13:27 Entered queue to transfer input files
...
040 (005.000.000) 2026-09-21 14:13:30 Started transferring input files
\tSeconds spent in queue: 3
\tTransferring to host: <10.0.0.9:9618>
...
040 (005.000.000) 2026-09-21 14:13:32 Finished transferring input files
...
"""
    assert expected == "".join(line.text for line in lines[:3])
    assert ["001"] == numbers(lines[3:])

    went = Transfer(began=AT + 20.0, ended=AT + 21.0)
    lines = shard.feed(
        JobCompleted(attempt=1, exit=ExitRecord(code=0, at=AT + 19.0, output=went), usage=USAGE)
    )
    assert ["040", "040", "040", "005"] == numbers(lines)
    assert [4, 5, 6] == [
        event.kind
        for event in parse("".join(line.text for line in lines), UTC)
        if isinstance(event, FileTransfer)
    ]


def test_a_checkpoint() -> None:
    """The log tells what was used up to then, and how large the checkpoint is."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    usage = Usage(user_cpu=61.5, system_cpu=2.0, sent=1024)
    (line,) = shard.feed(JobCheckpointed(attempt=1, number=1, usage=usage))
    assert (
        """\
 Job was checkpointed.
\tUsr 0 00:01:01, Sys 0 00:00:02  -  Run Remote Usage
\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t1024  -  Run Bytes Sent By Job For Checkpoint
...
"""
        in line.text
    )


def test_jobs_that_are_made_little_by_little() -> None:
    """
    The cluster is submitted, each job when it is made; when the rest is given up, the cluster goes with its last job.
    """
    shard = Shard()
    empty = memory(shard.projector)
    [line] = shard.feed(FactorySubmitted(**msgspec.structs.asdict(cluster(rows=3))))
    assert "035 (005.-01.000) 2026-09-21 14:13:21 Cluster submitted from host: <ap:9618>\n...\n" == line.text
    assert ["000", "000"] == numbers(shard.feed(FactoryMaterialized(cluster=5, owner="a", first=0, count=2)))
    assert [] == shard.feed(FactoryChanged(cluster=5, first=2, max_idle=9))
    assert [] == shard.feed(FactoryClosed(cluster=5, owner="a", first=2, count=1, reason="no more"))
    assert ["009"] == numbers(shard.feed(JobRemoved(), proc=0))
    aborted, removed = shard.feed(JobRemoved(), proc=1)
    assert "009" == aborted.text[:3]
    assert "\tMaterialized 2 jobs from 3 items.\tIncomplete\n\tno more\n" in removed.text
    assert empty == memory(shard.projector)


def test_a_factory_that_is_stopped_and_goes_on() -> None:
    """
    That no more jobs are made is told, that they are again too; other changes of how they are made are not.
    """
    shard = Shard()
    shard.feed(FactorySubmitted(**msgspec.structs.asdict(cluster(rows=1))))
    stopped = FactoryChanged(cluster=5, first=0, paused=1, reason="mine")
    [line] = shard.feed(stopped)
    assert line.text.endswith("Job Materialization Paused\n\tmine\n\tPauseCode 1\n\tHoldCode 0\n...\n")
    assert [] == shard.feed(stopped)
    assert ["038"] == numbers(shard.feed(FactoryChanged(cluster=5, first=0, reason="go")))
    shard.feed(FactoryMaterialized(cluster=5, owner="a", first=0, count=1))
    assert "from 1 items.\tComplete\n" in shard.feed(JobRemoved())[-1].text
