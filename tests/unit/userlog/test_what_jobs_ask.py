"""What descriptions ask of job event logs: forms, notes, attributes, further files."""

from datetime import UTC
from pathlib import PurePosixPath

import msgspec

from kettle.userlog import UserLogProjector, attributes, parse
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.events import (
    ClaimGranted,
    JobHeld,
    JobRemoved,
)

from .shard import ASSIGNED, DONE, STARTED, Shard, cluster, memory, numbers


def test_the_form_is_the_jobs_own() -> None:
    """
    `log_xml` counts, then what the access point preferred when the job was submitted, whatever it prefers later.
    """
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


def test_attributes_in_the_event_of_a_submission() -> None:
    """
    As an ad in place of the first note, which readers give back as such; words that are given count more.
    """
    ad: Ad = {"Iwd": "/w", "UserLog": "l", "SubmitEventNotesAttrs": "Project, args, None", "Project": 'a "b"'}
    columns: Ad = {"SubmitEventUserNotes": "mine", "Args": "x y"}
    [line] = Shard().feed(cluster(ad={**ad, **columns}))
    note = r'[ Project = "a \"b\""; Args = "x y" ]'
    assert f"\n    {note}\n    mine\n...\n" in line.text
    [event] = parse(line.text)
    assert Expr(note) == attributes(event)["StructuredNotes"]
    [line] = Shard().feed(cluster(ad={**ad, "SubmitEventNotes": "[ broken"}))
    assert "\n    [ broken\n...\n" in line.text


def test_attributes_of_the_slot_in_the_event_of_its_start() -> None:
    """
    Those that `ulog_execute_attrs` names and the slot has, under the slot's spelling, in the order of the list.
    """
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
    empty = memory(Shard().projector)
    lines = shard.feed(JobHeld(code=1, reason="mine"))
    assert "JobStatus = 5\n" in lines[1].text
    assert 'TriggerEventTypeName = "ULOG_JOB_HELD"\nTriggerEventTypeNumber = 12\n' in lines[1].text
    shard.feed(JobRemoved())
    assert empty == memory(shard.projector)


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
