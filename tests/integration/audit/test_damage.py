"""Each kind of damage, and the checks that find it."""

import pytest

from kettle.testing.services import Backend
from kettle_wire.events import (
    ClaimEnded,
    Event,
    JobStarted,
    encode,
    tag_of,
)

from .life import SHARD, assigned, audit, damage, firsts, granted, live_through


@pytest.fixture
async def backend(backend: Backend) -> Backend:
    return await live_through(backend)


OF_AP = "shard = (SELECT id FROM log.shard WHERE name = 'schedd.ap')"
EVENT = f"UPDATE log.event SET {{}} WHERE pos = {{}} AND {OF_AP}"
DELETE = f"DELETE FROM log.event WHERE {{}} AND {OF_AP}"
INSERT = f"""
INSERT INTO log.event (shard, frame, pos, epoch, ver, at, stream, type, data, meta)
SELECT shard, frame + 1, pos + 1, epoch, {{}}, at, '{{}}', '{{}}', $1, meta FROM log.event WHERE pos = 12 AND {OF_AP}
"""
ADVANCE = "UPDATE log.shard SET head = 13, frame = 8 WHERE name = 'schedd.ap'"


def swapped(position: int, event: Event) -> tuple[str, bytes]:
    """Another event in the place of the one that was recorded."""
    return EVENT.format(f"data = $1, type = '{tag_of(event)}'", position), encode(event)


def added(stream: str, version: int, event: Event) -> list[str | tuple[str, bytes]]:
    """An event that nobody recorded, numbered as it should be."""
    return [(INSERT.format(version, stream, tag_of(event)), encode(event)), ADVANCE]


Damage = str | tuple[str, bytes]
STRANGER = "INSERT INTO jobs.depth VALUES ('schedd.ap', 'eve', 1, 0, 0, 0)"
REVIVED = """
INSERT INTO log.working_set SELECT shard, 'job/1.0', 5, state FROM log.working_set WHERE stream = 'job/1.1'
"""


@pytest.mark.parametrize(
    ("statements", "found", "sentence"),
    [
        pytest.param(
            [DELETE.format("pos = 4")],
            {"positions": 5, "versions": 5, "bus": 3},
            "position 5 follows position 3",
            id="an event is lost",
        ),
        pytest.param(
            [DELETE.format("frame = 3")],
            {"positions": 6, "frames": 6, "versions": 6, "bus": 3, "attempts": 6},
            "frame 4 follows frame 2",
            id="a frame is lost",
        ),
        pytest.param(
            [DELETE.format("frame = 7")],
            {"head": 11, "bus": 7},
            "the shard is at frame 7, position 12; its last event is in frame 6 at position 11",
            id="the last frame is lost",
        ),
        pytest.param(
            [EVENT.format("epoch = 0", 6)],
            {"frames": 6, "bus": 4},
            "frame 4 of epoch 0 follows one of 1",
            id="an old epoch",
        ),
        pytest.param(
            [EVENT.format("epoch = 9", 12)],
            {"head": 12, "bus": 7},
            "the last event is of epoch 9, the shard of 1",
            id="an epoch that never was",
        ),
        pytest.param(
            [EVENT.format("at = at + interval '2 h'", 5)],
            {"frames": 5},
            "frame 3 has two times or two epochs",
            id="two times in a frame",
        ),
        pytest.param(
            [EVENT.format("at = at - interval '1 s'", 6)],
            {"times": 6, "bus": 4},
            "frame 4 is 0.999999 s earlier than the one before it",
            id="time runs backwards",
        ),
        pytest.param(
            [EVENT.format("ver = ver + 3", 10)],
            {"versions": 10, "bus": 6},
            "version 9 of job/1.0 follows version 5",
            id="a version is swapped",
        ),
        pytest.param(
            [EVENT.format("data = 'x'", 9)],
            {"events": 9, "bus": 5},
            "job/1.0: cannot read a recorded event",
            id="an event is garbled",
        ),
        pytest.param(
            [EVENT.format("type = 'job.held/1'", 9)],
            {"events": 9, "bus": 5},
            "the type is job.held/1, the event job.started/1",
            id="the type beside an event is another",
        ),
        pytest.param(
            [swapped(6, assigned(3, "c"))],
            {"attempts": 6, "bus": 4},
            "attempt 3 of job/1.0 follows attempt 1",
            id="an attempt is left out",
        ),
        pytest.param(
            [swapped(5, JobStarted(attempt=1))],
            {"attempts": 6, "bus": 3},
            "attempt 2 of job/1.0 begins while attempt 1 lives",
            id="two attempts overlap",
        ),
        pytest.param(
            [swapped(9, JobStarted(attempt=9))],
            {"attempts": 9, "bus": 5},
            "attempt 9 of job/1.0 starts and does not live",
            id="an attempt that never began",
        ),
        pytest.param(
            added("job/1.0", 6, assigned(3, "c")),
            {"attempts": 13, "claims": 13},
            "JobAssigned of job/1.0 comes after the job was over",
            id="a job runs again after its end",
        ),
        pytest.param(
            added("claim/c", 3, ClaimEnded(claim="c", reason="again")),
            {"claims": 13},
            "claim c ends and does not live",
            id="a claim ends twice",
        ),
        pytest.param(
            added("claim/e", 2, ClaimEnded(claim="e", reason="too early")),
            {"claims": 13},
            "claim e ends while an attempt of job/1.1 lives on it",
            id="a claim ends under an attempt",
        ),
        pytest.param(
            [swapped(8, assigned(1, "c"))],
            {"claims": 8, "bus": 5},
            "job/1.1 is given claim c, on which an attempt of job/1.0 lives",
            id="two jobs on one claim",
        ),
        pytest.param(
            [swapped(7, granted("c")[1])],
            {"claims": 7, "bus": 5},
            "claim c is granted and lives already",
            id="a claim is granted twice",
        ),
        pytest.param(
            ["UPDATE log.shard SET head = head + 1 WHERE name = 'schedd.ap'"],
            {"head": 12},
            "the shard is at frame 7, position 13; its last event is in frame 7 at position 12",
            id="the head is wrong",
        ),
        pytest.param(
            [EVENT.format("meta = 'm'", 6)], {"bus": 4}, "frame 4 is ", id="what only the hash sees"
        ),
        pytest.param(
            ["UPDATE log.working_set SET state = '7' WHERE stream = 'cluster/1'"],
            {"working_set": 1},
            "the state of cluster/1 is not",
            id="a state is changed",
        ),
        pytest.param(
            ["UPDATE log.working_set SET ver = 7 WHERE stream = 'job/1.1'"],
            {"working_set": 8},
            "job/1.1 has version 7",
            id="a version of the working set is changed",
        ),
        pytest.param(
            ["DELETE FROM log.working_set WHERE stream = 'job/1.1'"],
            {"working_set": 8},
            "lacks job/1.1",
            id="a live job is forgotten",
        ),
        pytest.param(
            ["UPDATE log.working_set SET stream = 'job/1.0' WHERE stream = 'job/1.1'"],
            {"working_set": 8},
            "lacks job/1.1",
            id="another job lives",
        ),
        pytest.param(
            [REVIVED],
            {"working_set": 10},
            "the working set has job/1.0, which is over or never was",
            id="a job that is over lives on",
        ),
        pytest.param(
            ["DELETE FROM jobs.history WHERE proc = 0"],
            {"projection.jobs": 10},
            "jobs.history (cluster 1, proc 0) is missing",
            id="history lacks a job",
        ),
        pytest.param(
            ["UPDATE jobs.history SET owner = 'eve'"],
            {"projection.jobs": 10},
            "jobs.history (cluster 1, proc 0) has another owner",
            id="history has another owner",
        ),
        pytest.param(
            ["UPDATE jobs.history SET ad = decode('80', 'hex') WHERE proc = 2"],
            {"projection.jobs": 11},
            "jobs.history (cluster 1, proc 2) has another ad",
            id="history has another ad",
        ),
        pytest.param(
            [STRANGER],
            {"projection.jobs": 0},
            "jobs.depth (owner eve) should not be there",
            id="a projection has a row out of nothing",
        ),
        pytest.param(
            ["UPDATE jobs.live SET status = 1 WHERE proc = 1"],
            {"projection.jobs": 8},
            "jobs.live (cluster 1, proc 1) has another status",
            id="a live job has another status",
        ),
        pytest.param(
            ["UPDATE jobs.claim SET ended_at = NULL WHERE claim = 'c'"],
            {"projection.jobs": 12},
            "jobs.claim (claim c) has another ended_at",
            id="a claim does not end",
        ),
        pytest.param(
            ["UPDATE jobs.usage SET wall = wall + 1"],
            {"usage": 10, "projection.jobs": 11},
            "alice has used Sum(jobs_completed=1, attempts=2, wall=4000000, slot_time=8000000, cpu=1000000) by the",
            id="usage is more than the attempts",
        ),
        pytest.param(
            ["DELETE FROM jobs.usage"],
            {"usage": 10, "projection.jobs": 11},
            "jobs.usage (owner alice) is missing",
            id="usage is lost",
        ),
        pytest.param(
            ["UPDATE log.projection SET frame = 9 WHERE name = 'jobs'"],
            {"projection.jobs": 0},
            "it has applied frame 9, the log ends with frame 7",
            id="a projection is ahead of the log",
        ),
        pytest.param(
            ["UPDATE log.projection SET frame = 6, error = 'at frame 7' WHERE name = 'jobs'"],
            {"projection.jobs": 0},
            "it stopped at frame 7",
            id="a projection stopped",
        ),
    ],
)  # fmt: skip
async def test_damage_is_found(
    backend: Backend, statements: list[Damage], found: dict[str, int], sentence: str
) -> None:
    """Each kind of damage is found at its place by the checks whose claims it breaks, and by no other."""
    await damage(backend, *statements)
    report = await audit(backend)
    assert {name: (SHARD, position) for name, position in found.items()} == firsts(report)
    assert not report.clean
    assert any(sentence in check.first.sentence for check in report.checks if check.first is not None)
