"""`kettle log` beside a real database and bus, as people type it."""

import asyncio
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kettle.client import PoolFile
from kettle.eventsourcing.log import FencedError, StoredEvent
from kettle.eventsourcing.working_set import Checkpointer
from kettle.projections import PROJECTIONS, prepare
from kettle.storage import PgWorkingSet
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, Owner, owned
from kettle_services.cli.__main__ import main
from kettle_services.cli.log.databases import places
from kettle_services.cli.log.event_pages import PAGE_ROWS, EventFilter, read
from kettle_services.cli.log.folds import schedd_fold
from kettle_services.cli.log.frame_search import frame_at
from kettle_services.cli.times import micros, precise
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    CycleNegotiated,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobStarted,
    MachineJoined,
    MachineLeft,
    Usage,
)

AP1, AP2 = "schedd.ap1", "schedd.ap2"
START = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
AT = int(START.timestamp()) * 1_000_000
SECOND = 1_000_000


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Of a stream of JSON values."""
        return [json.loads(line) for line in self.out.splitlines()]


Kettle = Callable[..., asyncio.Future[Said]]


def submitted(cluster: int, owner: str, jobs: int) -> tuple[str, Event]:
    return f"cluster/{cluster}", ClusterSubmitted(
        cluster=cluster, owner=owner, ad={"RequestCpus": 2}, columns=[], rows=[[] for _ in range(jobs)]
    )


def granted(claim: str, owner: str) -> tuple[str, Event]:
    slot = f"slot1_{claim}@node"
    return f"claim/{claim}", ClaimGranted(
        claim=claim, startd="node", slot=slot, slot_ad={}, submitter=owner, autocluster=1, lease=60.0
    )


def assigned(claim: str, attempt: int = 1) -> JobAssigned:
    return JobAssigned(attempt=attempt, claim=claim, slot=f"slot1_{claim}@node", startd="node")


LIFE: dict[str, list[list[tuple[str, Event]]]] = {
    AP1: [
        [submitted(1, "ada", 3)],
        [granted("c", "ada"), ("job/1.0", assigned("c"))],
        [("job/1.0", JobStarted(attempt=1)), ("job/1.1", JobHeld(code=1, reason="by hand", by="ada"))],
        [("job/1.0", JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(wall=10.0, user_cpu=4.0)))],
        [submitted(2, "bob", 1), ("claim/c", ClaimEnded(claim="c", reason="no jobs"))],
    ],
    AP2: [[submitted(1, "bob", 1)], [granted("d", "bob"), ("job/1.0", assigned("d"))]],
    "collector": [
        [("machine/node", MachineJoined(machine="node", cpus=8, memory=1024))],
        [("machine/node", MachineLeft(machine="node", reason="drained"))],
    ],
    "negotiator": [[("cycle/1", CycleNegotiated(cycle=1, started=AT / 1e6, duration=0.1, slots=4, idle=3))]],
}
"""Frame n of a shard is of the nth second."""


@pytest.fixture
async def pool(backend: Backend, tmp_path: Path) -> Backend:
    """A log with the life of a pool, and the pool's file."""
    for shard, frames in LIFE.items():
        async with owned(backend, shard) as owner:
            for number, changes in enumerate(frames, 1):
                await owner.record(*changes, at_us=AT + number * SECOND)
    addresses = backend.place.addresses
    PoolFile(pool=backend.subjects.pool, nats_url=addresses.nats_url, database_url=backend.dsn).save(tmp_path)
    return backend


@pytest.fixture
def kettle(pool: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kettle:
    """`kettle log`, in a thread of its own, as it has an event loop of its own."""
    for name in [name for name in os.environ if name.startswith("KETTLE_") and not name.endswith("_BIN")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path))
    monkeypatch.setenv("KETTLE_NATS_CREDENTIALS", pool.place.addresses.nats_credentials)
    monkeypatch.setenv("TZ", "UTC")

    def run(words: tuple[str, ...]) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = main(["log", *words])
            except SystemExit as ended:
                status = int(str(ended.code))
        return Said(status, out.getvalue(), err.getvalue())

    return lambda *words: asyncio.ensure_future(asyncio.to_thread(run, words))


def where(said: Said) -> list[tuple[str, int, str]]:
    return [(line["shard"], line["position"], line["type"]) for line in said.lines]


async def test_everything_in_the_order_of_time(kettle: Kettle) -> None:
    """Events of all shards come by time, and those of one shard in their order."""
    said = await kettle("show", "--json")
    assert 0 == said.status
    assert 14 == len(said.lines)
    assert sorted(said.lines, key=lambda line: line["at"]) == said.lines
    assert [1, 2, 3, 4, 5, 6, 7, 8] == [line["position"] for line in said.lines if line["shard"] == AP1]
    first = said.lines[0]
    assert {
        "at": "2026-11-20T14:00:01.000000Z", "shard": "collector", "frame": 1, "position": 1, "epoch": 1,
        "stream": "machine/node", "version": 1, "type": "machine.joined/1",
        "sentence": "node joined with 8 cores, 1024 MiB",
        "event": {"event": "machine.joined/1", "machine": "node", "cpus": 8, "memory": 1024},
    } == first  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([AP2], [1, 2, 3]),
        ([AP1, "--frame", "2:3"], [2, 3, 4, 5]),
        ([AP1, "--frame", "4:"], [6, 7, 8]),
        ([AP1, "--frame", ":1"], [1]),
        ([AP1, "--frame", "4"], [6]),
        ([AP1, "--job", "1.0"], [1, 3, 4, 6]),
        ([AP1, "--cluster", "1"], [1, 3, 4, 5, 6]),
        ([AP1, "--stream", "claim/c"], [2, 8]),
        ([AP1, "--type", "job.held"], [5]),
        ([AP1, "--type", "job.held/1", "--type", "claim"], [2, 5, 8]),
        ([AP1, "--type", "job.*"], [3, 4, 5, 6]),
        ([AP1, "--type", "job.held/2"], []),
        ([AP1, "--owner", "bob"], [7]),
        ([AP1, "--owner", "ada", "--frame", "4:"], [6, 8]),
        ([AP1, "--since", "2026-11-20T14:00:03Z"], [4, 5, 6, 7, 8]),
        ([AP1, "--since", "2026-11-20T14:00:02.5Z", "--until", "2026-11-20T14:00:04Z"], [4, 5, 6]),
        ([AP1, "--since", "2026-11-20T15:00:00Z"], []),
        ([AP1, "--until", "2026-11-20T14:00:00Z"], []),
        ([AP1, "--limit", "2"], [1, 2]),
    ],
)
async def test_filters(kettle: Kettle, words: list[str], expected: list[int]) -> None:
    """Each filter leaves the events that it names, and filters add up."""
    said = await kettle("show", *words, "--json")
    assert 0 == said.status
    assert expected == [line["position"] for line in said.lines]


async def test_lines_for_people(kettle: Kettle) -> None:
    """
    A line has time, shard, frame and position, stream, version, type and a sentence; --long has the fields below.
    """
    said = await kettle("show", AP1, "--frame", "4", "--long")
    line, *fields = said.out.splitlines()
    assert (
        "2026-11-20 14:00:04.000000  schedd.ap1          4:6  job/1.0          3  job.completed/2      "
        "exited with code 0 after 10.0 s; used 4.00 s CPU"
    ) == line
    assert '    exit = {"code": 0}' in fields


async def test_an_event_that_cannot_be_read(pool: Backend, kettle: Kettle) -> None:
    """It is shown as what it is, with type and bytes, among the others."""
    statement = "UPDATE log.event SET data = 'x' WHERE type = 'job.held/1'"
    await pool.log.database.run(lambda c: c.execute(statement))
    said = await kettle("show", AP1, "--frame", "3")
    assert 0 == said.status
    held = said.out.splitlines()[1]
    assert "job.held/1" in held
    assert "UNREADABLE 78: cannot read a recorded event" in held
    (line,) = (await kettle("show", AP1, "--type", "job.held", "--json")).lines
    assert "78" == line["unreadable"]


async def test_pages_and_archived_pieces_make_no_difference(pool: Backend, tmp_path: Path) -> None:
    """A long range is read page by page, without a gap and without a repetition."""
    total = 2 * PAGE_ROWS + 7
    async with owned(pool, "schedd.long") as owner:
        await owner.record(*[submitted(number, "ada", 1) for number in range(1, total + 1)], at_us=AT)
    async with places(tmp_path, patience=10) as found:
        (place,) = found.named(["schedd.long"])
        rows = [row async for row in read(place, EventFilter(after=0, until=1))]
    assert list(range(1, total + 1)) == [row.position for row in rows]


async def test_following(pool: Backend, kettle: Kettle, tmp_path: Path) -> None:
    """With --follow what is recorded later is shown, too."""
    following = kettle("show", AP1, "--frame", "6:", "--follow", "--limit", "2", "--json")
    async with owned(pool, AP1) as owner:
        for cluster in (3, 4):
            await owner.record(submitted(cluster, "ada", 1), at_us=AT + 60 * SECOND)
        async with asyncio.timeout(PATIENCE_S):
            said = await following
    assert ["cluster/3", "cluster/4"] == [line["stream"] for line in said.lines]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["show", "schedd.ap9"],
            "there is no shard 'schedd.ap9'; there are: collector, negotiator, schedd.ap1",
        ),
        (["show", "--frame", "1:2"], "frames are numbered in each shard: name one"),
        (["show", "--frame", "x"], "'x' is no range of frames"),
        (["show", "--job", "12"], "'12' is not a job id"),
        (["show", "--since", "noon"], "'noon' is no moment: write it as 2026-11-20T14:00:00Z"),
        (["at", "-10x"], "'10x' is no moment: write it as 2026-11-20T14:00:00Z"),
        (["rebuild", "job"], "there is no projection 'job'; did you mean jobs?"),
        (["rebuild", "working_set"], "a working set is one shard's"),
        (["archive", "--older-than", "many"], "'many' is no span of time"),
    ],
)
async def test_mistakes(kettle: Kettle, words: list[str], sentence: str) -> None:
    """What makes no sense is refused with a sentence and exit status 2."""
    said = await kettle(*words)
    assert 2 == said.status
    assert sentence in said.err


async def test_the_frame_of_a_moment(pool: Backend, tmp_path: Path) -> None:
    """The last frame that is not later is found, at, before and between the times of frames."""
    async with places(tmp_path, patience=10) as found:
        (place,) = found.named([AP1])
        for offset, frame in ((0, 0), (1, 1), (1.5, 1), (3, 3), (4.999999, 4), (5, 5), (3600, 5)):
            assert frame == await frame_at(place.log, AP1, 5, AT + round(offset * SECOND))


async def test_at_a_moment(kettle: Kettle) -> None:
    """Queue, claims, machines, usage and the last cycle are as the log says they were, and where is said."""
    said = await kettle("at", "2026-11-20T14:00:03.5Z", "--json")
    then = json.loads(said.out)
    assert [
        ("collector", 2, "2026-11-20T14:00:02.000000Z", 2, ""),
        ("negotiator", 1, "2026-11-20T14:00:01.000000Z", 1, ""),
        (AP1, 3, "2026-11-20T14:00:03.000000Z", 5, "2026-11-20T14:00:04.000000Z"),
        (AP2, 2, "2026-11-20T14:00:02.000000Z", 2, ""),
    ] == [(s["shard"], s["frame"], s["at"], s["frames"], s["next_at"]) for s in then["shards"]]
    assert [
        (AP1, "1.0", "ada", "running", "slot1_c@node", AT // SECOND + 2),
        (AP1, "1.1", "ada", "held", "", AT // SECOND + 3),
        (AP1, "1.2", "ada", "idle", "", AT // SECOND + 1),
        (AP2, "1.0", "bob", "running", "slot1_d@node", AT // SECOND + 2),
    ] == [(j["shard"], j["job"], j["owner"], j["status"], j["slot"], j["since"]) for j in then["jobs"]]
    assert [(AP1, "c", "1.0"), (AP2, "d", "1.0")] == [
        (c["shard"], c["claim"], c["job"]) for c in then["claims"]
    ]
    assert [] == then["machines"]
    assert 1 == then["cycle"]["cycle"]
    assert [("ada", 1, 2.0, 1, 1, 0.0), ("bob", 1, 2.0, 0, 0, 0.0)] == [
        (o["owner"], o["running"], o["running_cores"], o["idle"], o["held"], o["wall"])
        for o in then["owners"]
    ]


async def test_before_and_after(kettle: Kettle) -> None:
    """
    Before its first frame a shard is empty; at the end usage is the sum, and who has fewest running is first.
    """
    before = json.loads((await kettle("at", "2026-11-20 13:00", "--json")).out)
    assert ([], [], [], []) == tuple(before[name] for name in ("jobs", "claims", "machines", "owners"))
    assert {0} == {shard["frame"] for shard in before["shards"]}
    end = json.loads((await kettle("at", "2026-11-21 00:00", "--json")).out)
    assert [("ada", 0, 10.0, 20.0, 4.0, 1), ("bob", 1, 0.0, 0.0, 0.0, 0)] == [
        (o["owner"], o["running"], o["wall"], o["slot_time"], o["cpu"], o["jobs_completed"])
        for o in end["owners"]
    ]


async def test_at_for_people(kettle: Kettle) -> None:
    """The tables say the same, of one owner if that is wanted."""
    said = await kettle(
        "at", "2026-11-20T14:00:01Z", "--owner", "ada", "--shard", AP1, "--shard", "collector"
    )
    closed = precise(micros(datetime(2026, 11, 20, 14, 0, 1, tzinfo=UTC)))
    assert f"schedd.ap1: frame 1 of 5, closed at {closed}; the next came at" in said.out
    assert "3 jobs in the queue." in said.out
    assert "1 machine in the pool." in said.out
    assert "bob" not in said.out


async def test_check(pool: Backend, kettle: Kettle) -> None:
    """A clean log is said to be clean; a damaged one is not, with the place and what to do."""
    said = await kettle("check")
    assert "The log is clean: 14 events in 10 frames of 4 shards." in said.out
    assert 0 == said.status
    await pool.log.database.run(
        lambda c: c.execute("UPDATE log.event SET meta = 'm' WHERE type = 'job.held/1'")
    )
    said = await kettle("check", "--shard", AP1)
    assert 1 == said.status
    assert "bus: first in schedd.ap1 at position 3: frame 3 is " in said.out
    assert f"delete the stream {pool.subjects.event_stream(AP1)}" in said.out
    report = json.loads((await kettle("check", "--json")).out)
    assert ["bus"] == [check["name"] for check in report["checks"] if check["problems"]]


async def test_projections_and_their_repair(pool: Backend, kettle: Kettle) -> None:
    """Lags are told, a damaged table is found, and a rebuild repairs it."""
    for make in PROJECTIONS.values():
        await prepare(make(), pool.log.database, [pool.log])
    said = await kettle("projections", "--json")
    assert {("jobs", AP1, 5, 5), ("machines", "collector", 2, 2)} <= {
        (lag["projection"], lag["shard"], lag["frame"], lag["head"]) for lag in json.loads(said.out)
    }
    await pool.log.database.run(lambda c: c.execute("UPDATE jobs.usage SET wall = 7 WHERE owner = 'ada'"))
    said = await kettle("check")
    assert 1 == said.status
    assert "usage: first in schedd.ap1 at position 6: ada has used" in said.out
    assert "kettle log rebuild jobs" in said.out
    said = await kettle("rebuild", "jobs")
    assert said.out.startswith("jobs is rebuilt as version ")
    assert 0 == (await kettle("check")).status


async def test_a_stopped_projection(pool: Backend, kettle: Kettle) -> None:
    """A stopped projection is reported with its reason and by the exit status."""
    for make in PROJECTIONS.values():
        await prepare(make(), pool.log.database, [pool.log])
    await pool.log.database.run(
        lambda c: c.execute(
            "UPDATE log.projection SET error = 'at frame 6, position 9: boom' WHERE name = 'jobs'"
        )
    )
    said = await kettle("projections")
    assert 1 == said.status
    assert "jobs stopped in schedd.ap1 at frame 6, position 9: boom" in said.out


async def test_the_repair_of_a_working_set(pool: Backend, kettle: Kettle) -> None:
    """The owner of a working set that was forgotten is fenced at its next save; the log has all it needs."""
    async with owned(pool, AP1) as owner:
        checkpointer = await _saved(pool, owner)
        await pool.log.database.run(lambda c: c.execute("UPDATE log.working_set SET state = 'x'"))
        assert 1 == (await kettle("check", "--shard", AP1)).status
        assert 0 == (await kettle("rebuild", "working_set", "--shard", AP1)).status
        checkpointer.mark(6, {})
        with pytest.raises(FencedError):
            await checkpointer.flush()
    assert (0, []) == await PgWorkingSet(pool.log.database).load(AP1)
    async with owned(pool, AP1) as owner:
        await _saved(pool, owner)
    assert 0 == (await kettle("check")).status


async def _saved(pool: Backend, owner: Owner) -> Checkpointer:
    """What an owner does when it starts: fold what its working set does not know, and save it."""
    working_set = PgWorkingSet(pool.log.database)
    cursor, _ = await working_set.load(AP1)
    checkpointer = Checkpointer(working_set, AP1, epoch=owner.shard.tenure.epoch, frame=cursor)
    fold = schedd_fold(AP1)
    rows: dict[str, StoredEvent | None] = {}
    versions: Counter[str] = Counter()
    for number, changes in enumerate(LIFE[AP1], 1):
        for stream, event in changes:
            versions[stream] += 1
            for name, state in fold(stream, event, AT + number * SECOND):
                rows[name] = None if state is None else StoredEvent(name, versions[stream], state)
    puts = {name: (row.version, row.state) for name, row in rows.items() if row is not None}
    checkpointer.mark(len(LIFE[AP1]), puts, [name for name, row in rows.items() if row is None])
    await checkpointer.flush()
    return checkpointer


async def test_the_archive(kettle: Kettle, tmp_path: Path) -> None:
    """A dry run tells what stays and why; an empty archive is sound."""
    said = await kettle("archive", "--dry-run", "--older-than", "1d")
    assert 0 == said.status
    assert "newest: piece 0 is the newest: it always stays" in said.out
    assert f"0 events in 0 pieces would be moved to {tmp_path / 'archive'}." in said.out
    said = await kettle("archive", "--verify")
    assert "The archive is sound: 0 pieces in 0 files" in said.out


def test_places_are_not_named_on_the_command_line() -> None:
    """A database's address may hold a password: no option takes one."""
    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        main(["log", "check", "--help"])
    assert "--database" not in said.getvalue()
