"""
Clusters that are submitted with one event: how they are recorded, and what the working set keeps of them.
"""

import asyncio
import pwd
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError
from kettle.client.jobs.many_submissions import in_common
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.submissions import ALIKE_BYTES, Submissions
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.rows import NEWEST
from kettle_services.schedd.domain.queue.working_set import restore as restore_queue
from kettle_services.schedd.domain.submission.admission import SubmitRequirement
from kettle_services.schedd.domain.submission.submitted_together import recorded_as
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.commands.queue import Submit
from kettle_wire.commands.submissions import MOST_TOGETHER, SubmitAlike, SubmitMany
from kettle_wire.event_expansion import SPAN, stream_of_span
from kettle_wire.events import ClustersSubmitted, ClusterSubmitted, Event, JobRemoved, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import bearer, user

AT = 1_700_000_000_000_000
ACCOUNTS = Accounts(
    privileged=True, directory=lambda name: pwd.struct_passwd((name, "x", 70_000, 70_000, "", "/", ""))
)
ADA = user("ada")


class Kept:
    """A queue, and the rows that its changes leave."""

    def __init__(self) -> None:
        self.queue = Queue("ap")
        self.rows: dict[str, bytes] = {}
        self.written: list[str] = []
        """Names of all rows that ever were."""

    def apply(self, stream: str, event: Event) -> None:
        for change in self.queue.apply(stream, event, AT):
            if change.state is None:
                self.rows.pop(change.stream, None)
            else:
                self.rows[change.stream] = change.state
                self.written.append(change.stream)

    def submit(self, first: int, count: int) -> None:
        for event in recorded_as(first, "ann", {"Cmd": "x"}, ["Args"], [[f"{n}"] for n in range(count)]):
            self.apply(stream_of_span(event.first), event)

    def remove(self, *clusters: int) -> None:
        for cluster in clusters:
            self.apply(f"job/{cluster}.0", JobRemoved(reason="r"))

    def restored(self) -> "Kept":
        again = Kept()
        again.rows = dict(self.rows)
        restore_queue(again.queue, again.rows.items())
        return again


def shown(queue: Queue) -> dict[str, Ad]:
    return {str(job): queue.ad(job) for job in queue.jobs}


def test_they_are_in_the_queue_as_if_each_had_come_alone() -> None:
    """With ids, owners and ads of their own."""
    together, alone = Kept(), Kept()
    together.submit(7, 3)
    for cluster, text in ((7, "0"), (8, "1"), (9, "2")):
        event = ClusterSubmitted(
            cluster=cluster, owner="ann", ad={"Cmd": "x", "Args": text}, columns=[], rows=[[]]
        )
        alone.apply(f"cluster/{cluster}", event)
    assert shown(alone.queue) == shown(together.queue)
    assert (9, alone.queue.tally.by_submitter) == (
        together.queue.newest_cluster,
        together.queue.tally.by_submitter,
    )


def test_the_working_set_has_one_row_of_them_and_says_who_has_left() -> None:
    """A queue that is restored from it goes on as the first one does, to the last row."""
    kept = Kept()
    kept.submit(1, 4)
    assert {"clusters/0", "clusters/0#1", NEWEST} == kept.rows.keys()
    kept.remove(2, 4)
    assert {"clusters/0", "clusters/0#1", "clusters/0#1#left.0", NEWEST} == kept.rows.keys()
    again = kept.restored()
    assert ({"1.0", "3.0"}, shown(kept.queue)) == ({*shown(again.queue)}, shown(again.queue))
    for each in (kept, again):
        each.remove(3, 1)
    assert {"clusters/0", NEWEST} == kept.rows.keys()
    assert (kept.rows, 4) == (again.rows, again.restored().queue.newest_cluster)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_stream_has_a_row_as_long_as_it_may_go_on(*, restarts: bool) -> None:
    """Its next event is the one after the last, also after a restart; and what is over leaves nothing."""
    kept = Kept()
    kept.submit(SPAN - 4, 2)
    kept.remove(SPAN - 4, SPAN - 3)
    kept = kept.restored() if restarts else kept
    assert {"clusters/0", NEWEST} == kept.rows.keys()
    kept.submit(SPAN - 2, 4)
    expected = {f"clusters/0#{SPAN - 2}", f"clusters/{SPAN}#{SPAN}", "clusters/0", f"clusters/{SPAN}", NEWEST}
    assert expected == kept.rows.keys()
    kept = kept.restored() if restarts else kept
    kept.remove(SPAN - 2, SPAN - 1)
    assert {f"clusters/{SPAN}#{SPAN}", f"clusters/{SPAN}", NEWEST} == kept.rows.keys()
    kept.remove(SPAN, SPAN + 1)
    kept = kept.restored() if restarts else kept
    kept.submit(3 * SPAN, 2)
    assert {f"clusters/{3 * SPAN}#{3 * SPAN}", f"clusters/{3 * SPAN}", NEWEST} == kept.rows.keys()


def test_the_queue_of_a_moment_has_them() -> None:
    """It is made from the frames, as others are."""
    kept = Kept()
    kept.submit(1, 3)
    kept.remove(2)
    [event] = recorded_as(1, "ann", {"Cmd": "x"}, ["Args"], [["0"], ["1"], ["2"]])
    replay = Replay("ap")
    told: list[tuple[str, Event]] = [("clusters/0", event), ("job/2.0", JobRemoved(reason="r"))]
    for number, (stream, each) in enumerate(told, 1):
        replay.feed(Frame("schedd.ap", 1, number, number, AT, [Entry(stream, 1, tag_of(each), encode(each))]))
    assert shown(kept.queue) == shown(replay.queue())


# -- what is submitted -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def submissions(tmp_path: Path, **settings: object) -> AsyncGenerator[Submissions]:
    made = msgspec.structs.replace(ScheddSettings(home=str(tmp_path)), **settings)
    log, queue = MemoryLog(), Queue("schedd")
    async with Shard.own(log, "schedd.schedd", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        limits, backlog = QueueLimits(queue, made), Backlog(shard, limit=1000)
        yield Submissions(recorder, limits, backlog, made, ACCOUNTS, AttributeSeal([bytes(32)]))
        committing.cancel()


def alike(ad: Ad | None = None, columns: Sequence[str] = ("Args",), count: int = 3) -> SubmitAlike:
    rows = [[f"{name}{place}" for name in columns] for place in range(count)]
    ids = [f"{place}" for place in range(count)]
    return SubmitAlike(ids=ids, ad={"Cmd": "/bin/true", **(ad or {})}, columns=[*columns], rows=rows)  # type: ignore[arg-type]


async def test_what_is_alike_is_one_event(tmp_path: Path) -> None:
    """With what the schedd adds to each submission."""
    async with submissions(tmp_path) as asked:
        decision = await asked.submit_alike(alike(), ADA, by_job=False)
        assert decision is not None
        [(stream, event)] = decision.changes
        assert isinstance(event, ClustersSubmitted)
        one = (await asked.submit(alike().one(1), ADA)).changes[0][1]
        assert isinstance(one, ClusterSubmitted)
    assert ("clusters/0", 1, "ada") == (stream, event.first, event.owner)
    assert one.ad == event.one(2).ad


@pytest.mark.parametrize(
    ("ad", "columns"),
    [
        ({"JobSetName": "s"}, ["Args"]),
        ({"JobStatus": 5}, ["Args"]),
        ({"JobMaterializeLimit": 2}, ["Args"]),
        ({"JobUniverse": 5}, ["JobUniverse"]),
        ({"Owner": "eve"}, ["Args"]),
        ({"ClusterId": 3}, ["Args"]),
        ({"Cmd": ""}, ["Args"]),
    ],
)
async def test_what_is_more_than_itself_or_may_be_refused_is_looked_at_alone(
    tmp_path: Path, ad: Ad, columns: list[str]
) -> None:
    """Each is then what it would be alone, and refused by itself."""
    async with submissions(tmp_path) as asked:
        assert await asked.submit_alike(alike(ad, columns), ADA, by_job=False) is None


async def test_a_site_that_looks_at_submissions_looks_at_each(tmp_path: Path) -> None:
    """As it does at those of somebody who has shown a token, and those of who may have only so many jobs."""
    required = (SubmitRequirement(name="R", expression="Cmd =!= undefined"),)
    async with submissions(tmp_path, submit_requirements=required) as asked:
        assert await asked.submit_alike(alike(), bearer("ada"), by_job=False) is None
    async with submissions(tmp_path, max_jobs_per_owner=2) as asked:
        assert await asked.submit_alike(alike(), ADA, by_job=False) is None
    async with submissions(tmp_path) as asked:
        at_home = alike({"JobUniverse": 12})
        assert await asked.submit_alike(at_home, ADA, by_job=True) is None
        assert await asked.submit_alike(at_home, ADA, by_job=False) is not None


async def test_a_short_message_does_not_become_a_long_log(tmp_path: Path) -> None:
    """What is said once counts for each."""
    async with submissions(tmp_path) as asked:
        many = alike({"Env": "x" * (ALIKE_BYTES // 400)}, count=MOST_TOGETHER)
        with pytest.raises(RefusedError, match="send fewer at a time"):
            await asked.submit_alike(many, ADA, by_job=False)


async def test_a_program_of_a_row_is_a_text(tmp_path: Path) -> None:
    """As that of a submission of one job is."""
    async with submissions(tmp_path) as asked:
        table = Submit(id="1", ad={}, columns=["Cmd"], rows=[["/bin/true"], [7]])
        with pytest.raises(RefusedError, match="names no executable"):
            await asked.submit(table, ADA)


# -- what is sent ----------------------------------------------------------------------------------------------------


def one(number: int, ad: Ad, *, rows: int = 1, spool: bool = False) -> Submit:
    return Submit(id=f"{number}", ad=ad, columns=[], rows=[[]] * rows, spool=spool)


def test_what_is_the_same_is_said_once() -> None:
    """Of those of one job each with the same names, in the same order; 1, 1.0 and true are not the same."""
    values: list[object] = [1, 1.0, True, 1]
    made = [
        *(one(number, {"Cmd": "x", "A": value, "B": "y"}) for number, value in enumerate(values)),  # type: ignore[dict-item]
        one(4, {"A": 1, "Cmd": "x", "B": "y"}),
        one(5, {"Cmd": "x", "A": 1, "B": "y"}, rows=2),
        one(6, {"Cmd": "x", "A": 1, "B": "y"}, spool=True),
    ]
    alone, [group] = in_common(made)
    assert ["5", "6", "4"] == [each.id for each in alone]
    assert (["0", "1", "2", "3"], ["A"]) == (group.ids, group.columns)
    assert made[:4] == [group.one(place) for place in range(4)]
    assert [int, float, bool, int] == [type(group.one(place).ad["A"]) for place in range(4)]
    assert ["Cmd", "A", "B"] == [*group.one(3).ad]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"alike": [{"ids": ["a"], "ad": {}, "columns": ["A"], "rows": [[]]}]},
        {"alike": [{"ids": ["a", "b"], "ad": {}, "columns": [], "rows": [[]]}]},
        {
            "alike": [{"ids": ["a"] * MOST_TOGETHER, "ad": {}, "columns": [], "rows": [[]] * MOST_TOGETHER}]
            * 2
        },
    ],
    ids=["none", "no value", "no id", "too many"],
)
def test_a_command_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    """Before it is looked at."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, SubmitMany)
