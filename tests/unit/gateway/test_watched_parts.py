"""Which live parts of pages are made again at a change, how often, and for whom."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import cast

import pytest

from kettle.bus.ports import Bus
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.table_watch import LATE_S, MOST, TableWatch
from kettle_services.gateway.pages.watched_part import MadePart, WatchedPart, WatchedParts
from kettle_services.gateway.rest.event_hub import EventHub, Happening
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId

QUEUE = "schedd.ap"


def happening(owner: str, cluster: int, proc: int | None = 0, *, frame: int) -> Happening:
    return Happening(frame, owner, "job.held", "ap", f"job/{cluster}.{proc}", cluster, proc, frame, b"", 0.0)


class World:
    """A gateway whose pages somebody watches; the time of what is made goes on at each look at it."""

    def __init__(self, stack: ExitStack) -> None:
        ticks = count(1)
        self.now = 0.0
        """Of the one who looks at the tables."""
        self.hub = EventHub(cast("Bus", None), "events")
        self.hub.began = True
        self.watch = TableWatch(cast("JobTables", None), self.hub, lambda: self.now)
        self.made: list[str] = []
        """Who has had a part made."""
        self._parts = WatchedParts(self.watch, lambda: float(next(ticks)))
        self._stack = stack
        self._watched: dict[str, WatchedPart] = {}

    def watched(self, key: str, subject: LiveSubject, person: str = "eve") -> WatchedPart:
        """The part that is shown to all who come with a key."""
        part = self._stack.enter_context(self._parts.watched(key, subject, person))
        self._watched[key] = part
        return part

    async def told(self, come: Sequence[Happening], frame: int) -> list[str]:
        """Which parts are told when these events have come and the tables are at a frame."""
        before: Mapping[str, float] = {name: part.told_at for name, part in self._watched.items()}
        if come:
            self.watch.heard(come)
        await self.watch.look({QUEUE: frame})
        return [name for name, part in self._watched.items() if part.told_at != before[name]]

    def maker(self, who: str, *owners: str) -> Callable[[], Awaitable[MadePart]]:
        """What makes a part that shows jobs of some."""

        async def make() -> MadePart:
            self.made.append(who)
            await asyncio.sleep(0)  # others who want it come meanwhile
            return MadePart(f"{who}'s".encode(), owners)

        return make


async def test_a_change_concerns_those_who_show_it() -> None:
    """
    Who shows an owner's jobs, a cluster or a job is told when the tables have the frame of an event of these, and nobody else is.
    """
    with ExitStack() as stack:
        world = World(stack)
        world.watched("all", LiveSubject())
        world.watched("ada", LiveSubject(owners=frozenset({"ada"})))
        world.watched("bob", LiveSubject(owners=frozenset({"bob"})))
        world.watched("bob's 7", LiveSubject(owners=frozenset({"bob"}), clusters=frozenset({7})))
        world.watched("7", LiveSubject(clusters=frozenset({7})))
        world.watched("7.1", LiveSubject(job=JobId(7, 1)))
        world.watched("7.2", LiveSubject(job=JobId(7, 2)))
        world.watched("8.1", LiveSubject(job=JobId(8, 1)))
        await world.watch.look({QUEUE: 1})  # whatever was before
        assert [] == await world.told([], 1)
        assert [] == await world.told([happening("ada", 7, 1, frame=2)], 1)
        assert ["all", "ada", "7", "7.1"] == await world.told([], 2)
        assert [] == await world.told([], 2)
        of_all = happening("bob", 7, None, frame=3)
        assert ["all", "bob", "bob's 7", "7", "7.1", "7.2"] == await world.told([of_all], 3)


async def test_the_tables_are_looked_at_seldom_while_nothing_happens() -> None:
    """Events of queues are waited for until the tables have them; those of the pool are no queue's."""
    with ExitStack() as stack:
        world = World(stack)
        world.watched("all", LiveSubject())
        await world.watch.look({QUEUE: 1})
        of_pool = Happening(2, "", "cycle.ended", "", "cycle/1", None, None, 7, b"", 0.0)
        assert [] == await world.told([of_pool], 1)
        assert world.watch.is_quiet
        assert [] == await world.told([happening("ada", 7, frame=2)], 1)
        assert not world.watch.is_quiet
        assert ["all"] == await world.told([], 2)
        assert world.watch.is_quiet


async def test_what_is_shown_besides_is_looked_at_now_and_then() -> None:
    """
    A part that shows more than its jobs is told of others' changes, but seldom, and not while nothing changes.
    """
    with ExitStack() as stack:
        world = World(stack)
        world.watched("ada", LiveSubject(owners=frozenset({"ada"}), again_s=1e3))
        world.watched("bob", LiveSubject(owners=frozenset({"bob"})))
        await world.watch.look({QUEUE: 1})
        assert [] == await world.told([happening("eve", 1, frame=2)], 2)
        world.now = 1e4
        assert [] == await world.told([], 2)
        assert ["ada"] == await world.told([happening("eve", 1, frame=3)], 3)


async def test_everybody_is_told_where_events_cannot_say_whom_it_concerns() -> None:
    """
    When events are not read, when one cannot be read, when they are too many, and when they are long in coming, everybody is told once.
    """
    with ExitStack() as stack:
        world = World(stack)
        world.watched("ada", LiveSubject(owners=frozenset({"ada"})))
        await world.watch.look({QUEUE: 1})
        world.hub.trouble = "the bus is away"
        assert [] == await world.told([], 1)
        assert ["ada"] == await world.told([], 2)
        world.hub.trouble = ""
        assert [] == await world.told([], 2)
        assert [] == await world.told([], 3)  # its events may come yet
        world.now += LATE_S
        assert ["ada"] == await world.told([], 3)
        assert [] == await world.told([], 3)
        crowd = [happening("bob", each, frame=4) for each in range(MOST + 1)]
        assert [] == await world.told(crowd, 3)
        assert ["ada"] == await world.told([], 4)
        world.hub.passed_over += 1
        assert ["ada"] == await world.told([], 5)
        assert [] == await world.told([happening("bob", 1, frame=6)], 6)


@pytest.mark.parametrize("readers", [1, 50, 500])
async def test_one_rendering_of_a_change_does_for_all_who_see_the_same(readers: int) -> None:
    """However many watch, a part is made once when they come together, and once at a change."""
    with ExitStack() as stack:
        world = World(stack)
        people = [f"person{each}" for each in range(readers)]
        subject = LiveSubject(public=True)
        parts = [world.watched("jobs", subject, person) for person in people]

        async def all_newest(since: float) -> set[bytes]:
            asked = [
                part.newest(person, since, world.maker(person, "ada"))
                for part, person in zip(parts, people, strict=True)
            ]
            return {made.event for made in await asyncio.gather(*asked)}

        assert {b"person0's"} == await all_newest(parts[0].told_at)
        assert ["person0"] == world.made
        assert {b"person0's"} == await all_newest(parts[0].told_at)
        await world.watch.look({QUEUE: 1})
        await world.told([happening("ada", 1, frame=2)], 2)
        await all_newest(parts[0].told_at)
        assert 2 == len(world.made)


async def test_owners_are_shown_their_own_and_nobody_else_is() -> None:
    """Of a public part each owner has one of his own, no matter who comes first; others share one."""
    with ExitStack() as stack:
        world = World(stack)
        people = ["ada", "eve", "bob", "ada", "dan"]
        parts = [world.watched("jobs", LiveSubject(public=True), person) for person in people]
        asked = [
            part.newest(person, part.told_at, world.maker(person, "ada", "bob"))
            for part, person in zip(parts, people, strict=True)
        ]
        made = [each.event.decode() for each in await asyncio.gather(*asked)]
        assert ["ada's", "eve's", "bob's", "ada's", "eve's"] == made
        assert ["ada", "bob", "eve"] == sorted(world.made)


async def test_a_page_of_ones_own_is_made_for_each_person() -> None:
    """What is not public is made for each."""
    with ExitStack() as stack:
        world = World(stack)
        parts = {
            person: world.watched(person, LiveSubject(owners=frozenset({person})))
            for person in ("ada", "eve")
        }
        for person, part in parts.items():
            made = await part.newest(person, part.told_at, world.maker(person))
            assert f"{person}'s" == made.event.decode()


async def test_a_refusal_is_told_to_all_and_asked_again() -> None:
    """Who comes while a part is refused is refused by the same answer, and the next attempt makes it."""
    with ExitStack() as stack:
        world = World(stack)
        parts = [world.watched("jobs", LiveSubject(public=True), person) for person in ("ada", "eve")]

        async def refuse() -> MadePart:
            world.made.append("refused")
            raise RequestRefused(503, "unavailable", "the database does not answer")

        since = parts[0].told_at
        for person, part in zip(("ada", "eve"), parts, strict=True):
            with pytest.raises(RequestRefused):
                await part.newest(person, since, refuse)
        assert ["refused"] == world.made
        made = await parts[0].newest("ada", 1e9, world.maker("ada"))
        assert b"ada's" == made.event


async def test_who_leaves_while_it_is_made_leaves_the_others_theirs() -> None:
    """The part that somebody had begun is begun again by the next one."""
    with ExitStack() as stack:
        world = World(stack)
        parts = [world.watched("jobs", LiveSubject(public=True), person) for person in ("ada", "eve")]
        begun = asyncio.Event()

        async def never() -> MadePart:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError("it is never made")

        first = asyncio.create_task(parts[0].newest("ada", parts[0].told_at, never))
        await begun.wait()
        second = asyncio.create_task(parts[1].newest("eve", parts[1].told_at, world.maker("eve")))
        first.cancel()
        assert b"eve's" == (await second).event
        assert first.cancelled() or (await asyncio.wait([first]))[0]
