from collections.abc import Sequence
from datetime import UTC
from pathlib import PurePosixPath

import msgspec

from kettle.userlog import FileTransfer, Line, Suspended, Tail, UserLogProjector, parse
from kettle.wire.ads.types import Ad, Expr, Scalar
from kettle.wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobAssigned,
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
    encode,
    tag_of,
)
from kettle.wire.frames import Entry, Frame

AT = 1_790_000_000
ASSIGNED = JobAssigned(attempt=1, claim="c#1", slot="slot1_1@ep", startd="ep")
STARTED = JobStarted(attempt=1, pid=1, at=AT + 2.0)
USAGE = Usage(wall=10.0, user_cpu=4.0, system_cpu=1.0, memory_kib=2049, disk_kib=50, sent=3, received=5)
DONE = JobCompleted(attempt=1, exit_code=0, at=AT + 11.0, usage=USAGE)


def cluster(
    rows: int = 1, ad: Ad | None = None, columns: Sequence[str] = (), items: list[list[Scalar]] | None = None
) -> ClusterSubmitted:
    base: Ad = {"Iwd": "/home/a", "userlog": "job.log", "RequestCpus": 1, "RequestMemory": Expr("1+1")}
    return ClusterSubmitted(
        cluster=5,
        owner="a",
        ad=base if ad is None else ad,
        columns=list(columns),
        rows=items if items is not None else [[] for _ in range(rows)],
    )


class Shard:
    """Feeds a projector one frame per call, a second apart."""

    def __init__(self) -> None:
        self.projector = UserLogProjector("ap:9618", zone=UTC)
        self.number = 0
        self.position = 1

    def frame(self, *events: Event, proc: int = 0) -> Frame:
        self.number += 1
        entries = [Entry(_stream(e, proc), 1, tag_of(e), encode(e)) for e in events]
        frame = Frame("schedd.ap", 1, self.number, self.position, (AT + self.number) * 1_000_000, entries)
        self.position += len(entries)
        return frame

    def feed(self, *events: Event, proc: int = 0) -> list[Line]:
        return self.projector.feed(self.frame(*events, proc=proc))


def _stream(event: Event, proc: int) -> str:
    match event:
        case ClusterSubmitted():
            return "cluster/5"
        case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
            return "factory/5"
        case ClaimGranted() | ClaimEnded():
            return f"claim/{event.claim}"
        case _:
            return f"job/5.{proc}"


def numbers(lines: Sequence[Line]) -> list[str]:
    return [line.text[:3] for line in lines]


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
    assert len(UserLogProjector("ap").snapshot()) == len(shard.projector.snapshot())
    assert [] == shard.feed(ASSIGNED, STARTED, DONE)
    assert [] == Shard().feed(cluster(ad={"UserLog": "relative.log"}))


def test_held_while_running() -> None:
    """The hold of a running job is written when its attempt has ended, after the eviction, which has its code."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    assert [] == shard.feed(JobHeld(code=1, subcode=4, reason="mine"))
    lines = shard.feed(JobVacated(attempt=1, code=1022, reason="vacated", usage=USAGE))
    assert ["004", "012"] == numbers(lines)
    assert "Job was evicted. Code 1 Subcode 4" in lines[0].text
    assert "\tReason: mine\n" in lines[0].text


def test_terminated_and_requeued() -> None:
    """A job that ran to its end and stays in the queue is evicted, with how it ended; its next run is told anew."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    (line,) = shard.feed(
        JobVacated(attempt=1, code=1005, reason="OnExitRemove was false", exit_code=3, usage=USAGE)
    )
    assert "Job was evicted. Code 1005 Subcode 0\n\t(0) Job terminated and was requeued\n" in line.text
    assert "\t(1) Normal termination (return value 3)\n\tOnExitRemove was false\n" in line.text
    assert ["001", "005"] == numbers(shard.feed(ASSIGNED, STARTED, DONE))


def test_held_at_its_exit() -> None:
    """A job that is held for how it ended is evicted with the code of its policy, then held with the hold's."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    lines = shard.feed(
        JobVacated(attempt=1, code=1000, reason="it failed", exit_code=3),
        JobHeld(code=3, subcode=4, reason="it failed"),
    )
    assert ["004", "012"] == numbers(lines)
    assert "requeued" not in lines[0].text
    assert "\tit failed\n\tCode 3 Subcode 4\n" in lines[1].text


def test_removed_while_running() -> None:
    """A removed job is evicted with code 1023, then aborted; then nothing of it is kept."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobRemoved(reason="no more"))
    lines = shard.feed(JobVacated(attempt=1, code=1022, reason="vacated"))
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
    failed = (JobVacated(attempt=1, code=6, reason="no exec"), JobHeld(code=6, reason="no exec"))
    assert ["000", "012"] == numbers(shard.feed(cluster(), ASSIGNED, *failed))


def test_totals_over_attempts() -> None:
    """Totals include the attempts that were evicted."""
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED, JobVacated(attempt=1, code=1004, reason="v", usage=USAGE))
    (line, *_) = reversed(shard.feed(ASSIGNED, STARTED, DONE))
    assert "\t\tUsr 0 00:00:08, Sys 0 00:00:02  -  Total Remote Usage" in line.text
    assert "\t6  -  Total Bytes Sent By Job" in line.text


def test_a_cluster_is_kept_while_one_of_its_jobs_lives() -> None:
    """State goes when the last job goes: a projector does not grow with the history."""
    shard = Shard()
    empty = len(shard.projector.snapshot())
    shard.feed(cluster(rows=2))
    shard.feed(ASSIGNED, STARTED, DONE)
    kept = len(shard.projector.snapshot())
    shard.feed(JobRemoved(), proc=1)
    assert empty < kept
    assert empty == len(shard.projector.snapshot())


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
    frame = shard.frame(JobVacated(attempt=1, code=1, reason="h", usage=USAGE))
    assert shard.projector.feed(frame) == other.feed(frame)
    assert shard.number == other.frame


def test_every_line_can_be_read() -> None:
    """What the projector writes, the reader reads, submit notes included."""
    ad: Ad = {"Iwd": "/w", "UserLog": "l", "SubmitEventNotes": "DAG Node: A", "RequestCpus": Expr("x")}
    shard = Shard()
    lines = shard.feed(cluster(ad=ad), ASSIGNED, STARTED)
    lines += shard.feed(JobCompleted(attempt=1, exit_signal=9))
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
    lost = JobVacated(attempt=1, code=1008, reason="the lease ran out")
    shard = Shard()
    shard.feed(cluster(), ASSIGNED, STARTED)
    lines = shard.feed(JobDisconnected(attempt=1, reason="it is silent"), lost)
    assert ["022", "024"] == numbers(lines)
    last = " Job reconnection failed\n    the lease ran out\n    Can not reconnect to slot1_1@ep, rescheduling job\n"
    assert last in lines[1].text
    assert ["001", "004"] == numbers(shard.feed(ASSIGNED, STARTED, lost))


def test_files_that_were_moved_on_their_own() -> None:
    """Before the job's start and before its end: queued, started with the wait and the host, finished; as HTCondor reads it."""
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
    lines = shard.feed(JobCompleted(attempt=1, exit_code=0, at=AT + 19.0, usage=USAGE, output=went))
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
    """The cluster is submitted, each job when it is made; when the rest is given up, the cluster goes with its last job."""
    shard = Shard()
    empty = len(shard.projector.snapshot())
    [line] = shard.feed(FactorySubmitted(**msgspec.structs.asdict(cluster(rows=3))))
    assert "035 (005.-01.000) 2026-09-21 14:13:21 Cluster submitted from host: <ap:9618>\n...\n" == line.text
    assert ["000", "000"] == numbers(shard.feed(FactoryMaterialized(cluster=5, owner="a", first=0, count=2)))
    assert [] == shard.feed(FactoryChanged(cluster=5, first=2, max_idle=9))
    assert [] == shard.feed(FactoryClosed(cluster=5, owner="a", first=2, count=1, reason="no more"))
    assert ["009"] == numbers(shard.feed(JobRemoved(), proc=0))
    aborted, removed = shard.feed(JobRemoved(), proc=1)
    assert "009" == aborted.text[:3]
    assert "\tMaterialized 2 jobs from 3 items.\tIncomplete\n\tno more\n" in removed.text
    assert empty == len(shard.projector.snapshot())


def test_a_factory_that_is_stopped_and_goes_on() -> None:
    """That no more jobs are made is told, that they are again too; other changes of how they are made are not."""
    shard = Shard()
    shard.feed(FactorySubmitted(**msgspec.structs.asdict(cluster(rows=1))))
    stopped = FactoryChanged(cluster=5, first=0, paused=1, reason="mine")
    [line] = shard.feed(stopped)
    assert line.text.endswith("Job Materialization Paused\n\tmine\n\tPauseCode 1\n\tHoldCode 0\n...\n")
    assert [] == shard.feed(stopped)
    assert ["038"] == numbers(shard.feed(FactoryChanged(cluster=5, first=0, reason="go")))
    shard.feed(FactoryMaterialized(cluster=5, owner="a", first=0, count=1))
    assert "from 1 items.\tComplete\n" in shard.feed(JobRemoved())[-1].text


def test_the_form_is_the_jobs_own() -> None:
    """`log_xml` counts, then what the access point preferred when the job was submitted, whatever it prefers later."""
    xml: Ad = {"Iwd": "/w", "UserLog": "x", "UserLogUseXML": True}
    assert Shard().feed(cluster(ad=xml))[0].text.startswith('<c>\n    <a n="MyType"><s>SubmitEvent</s></a>\n')
    shard = Shard()
    shard.projector = UserLogProjector("ap:9618", zone=UTC, options="JSON, UTC, SUB_SECOND")
    [line] = shard.feed(cluster())
    assert '"EventTime": "2026-09-21T14:13:21.000Z",\n' in line.text
    again = UserLogProjector("ap:9618", zone=UTC, snapshot=shard.projector.snapshot(), options="LEGACY")
    [line] = again.feed(shard.frame(JobRemoved(reason="r")))
    assert line.text.startswith('{\n  "MyType": "JobAbortedEvent",\n')


def test_notes_of_a_submission() -> None:
    """Both notes, each where readers look for it."""
    ad: Ad = {"Iwd": "/w", "UserLog": "l", "SubmitEventNotes": "DAG Node: A", "SubmitEventUserNotes": "mine"}
    assert "\n    DAG Node: A\n    mine\n...\n" in Shard().feed(cluster(ad=ad))[0].text
    [line] = Shard().feed(cluster(ad={**ad, "SubmitEventNotes": "", "UserLogUseXML": True}))
    assert '<a n="UserNotes"><s>mine</s></a>' in line.text
    assert "LogNotes" not in line.text


def test_attributes_of_the_slot_in_the_event_of_its_start() -> None:
    """Those that `ulog_execute_attrs` names and the slot has, under the slot's spelling, in the order of the list."""
    shard = Shard()
    shard.feed(cluster(ad={"Iwd": "/w", "UserLog": "l", "UserLogExecuteEventAttrs": "arch, HasGPU,no"}))
    slot: Ad = {"Cpus": 1, "Arch": "X86_64", "HasGpu": False, "Start": Expr("true")}
    granted = ClaimGranted(
        claim="c#1", startd="ep", slot="s", slot_ad=slot, submitter="a", autocluster=1, lease=60.0
    )
    snapshot = UserLogProjector(
        "ap:9618", zone=UTC, snapshot=(shard.feed(granted), shard.projector.snapshot())[1]
    )
    snapshot.feed(shard.frame(ASSIGNED))
    [line] = snapshot.feed(shard.frame(STARTED))
    assert line.text.endswith('\tCpus = 1\n\tArch = "X86_64"\n\tHasGpu = false\n...\n')


def test_attributes_of_the_job_with_each_event() -> None:
    """Event 028 follows each event: what it said, and what the job's ad says then, evaluated."""
    shard = Shard()
    ad: Ad = {
        "Iwd": "/w",
        "UserLog": "l",
        "JobAdInformationAttrs": "jobstatus Twice, Nothing",
        "RequestCpus": 2,
    }
    lines = shard.feed(cluster(ad={**ad, "Twice": Expr("RequestCpus * 2")}))
    assert ["000", "028"] == numbers(lines)
    assert "028 (005.000.000) 2026-09-21 14:13:21 Job ad information event triggered.\n" in lines[1].text
    for said in ("JobStatus = 1\n", "Twice = 4\n", 'SubmitHost = "<ap:9618>"\n'):
        assert said in lines[1].text
    assert "Nothing" not in lines[1].text
    empty = len(Shard().projector.snapshot())
    lines = shard.feed(JobHeld(code=1, reason="mine"))
    assert "JobStatus = 5\n" in lines[1].text
    assert 'TriggerEventTypeName = "ULOG_JOB_HELD"\nTriggerEventTypeNumber = 12\n' in lines[1].text
    shard.feed(JobRemoved())
    assert empty == len(shard.projector.snapshot())


def test_the_log_of_a_workflow() -> None:
    """A second file, always in the classic form, with the events that its reader asks for."""
    shard = Shard()
    ad: Ad = {"Iwd": "/w", "UserLog": "l", "UserLogUseXML": True, "DAGManNodesLog": "/d/nodes.log"}
    own, nodes = shard.feed(cluster(ad={**ad, "DAGManNodesMask": "0,5,9"}))
    assert (PurePosixPath("/w/l"), PurePosixPath("/d/nodes.log")) == (own.path, nodes.path)
    assert nodes.text.startswith("000 (005.000.000)")
    assert ["/w/l"] == [str(line.path) for line in shard.feed(JobHeld(code=1, reason="mine"))]
    assert ["/w/l", "/d/nodes.log"] == [str(line.path) for line in shard.feed(JobRemoved())]
    [only] = Shard().feed(cluster(ad={"Iwd": "/w", "DAGManNodesLog": "nodes.log"}))
    assert PurePosixPath("/w/nodes.log") == only.path


def test_nothing_is_told_of_what_was_before() -> None:
    """A log that begins late begins there, and knows the jobs that were there already."""
    shard = Shard()
    shard.projector = UserLogProjector("ap:9618", zone=UTC, since=2)
    assert [] == shard.feed(cluster())
    assert [] == shard.feed(ASSIGNED, STARTED)
    assert ["005"] == numbers(shard.feed(DONE))
    assert 1 == shard.projector.lines


def test_what_an_older_version_kept() -> None:
    """
    A shadow of a new version goes on from the state of an old one: with the classic form, and without what that did not keep.
    """
    shard = Shard()
    granted = ClaimGranted(
        claim="c#1", startd="ep", slot="s", slot_ad={"Cpus": 1}, submitter="a", autocluster=1, lease=60.0
    )
    shard.feed(cluster(), granted)
    state = msgspec.msgpack.decode(shard.projector.snapshot())
    for name in ("told", "since", "lines"):
        del state[name]
    for kept in state["clusters"].values():
        for name in ("options", "late", "made", "items", "paused", "closed"):
            del kept[name]
    for claim in state["claims"].values():
        del claim["said"]
    old = msgspec.msgpack.encode(state)

    shard.projector = UserLogProjector("ap:9618", zone=UTC, snapshot=old, options="JSON")
    lines = [*shard.feed(ASSIGNED), *shard.feed(STARTED), *shard.feed(DONE)]
    assert ["001", "005"] == numbers(lines)
    assert 2 == shard.projector.lines
