"""What drives sessions, over a record in memory."""

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from kettle_services.sessions import engine as driving
from kettle_services.sessions.domain.decisions import NOTHING, Heard, decided
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_services.sessions.engine import Engine
from kettle_services.sessions.record import Record
from kettle_wire.events.interactive import InteractiveChanged, InteractiveEvent
from kettle_wire.sessions import SessionTarget

from .one_session import created


class InMemory:
    """Folds what is recorded, at once."""

    def __init__(self) -> None:
        self.states: dict[str, InteractiveSession] = {}
        self.state = SimpleNamespace(sessions=self)
        self.now = 1_000.0

    def record(self, changes: list[tuple[str, InteractiveEvent]]) -> None:
        for stream, event in changes:
            id_ = stream.removeprefix("session/")
            after = evolve(self.states.get(id_), event, self.now)
            if after is None:
                del self.states[id_]
            else:
                self.states[id_] = after


async def turns() -> None:
    """Until all that was woken waits again."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often was decided about each session."""
    counts: Counter[str] = Counter()

    def counted(
        session: InteractiveSession, now: float, heard: Heard = NOTHING
    ) -> tuple[list[InteractiveEvent], InteractiveSession]:
        counts[session.id] += 1
        return decided(session, now, heard)

    monkeypatch.setattr(driving, "decided", counted)
    return counts


async def test_what_happens_to_one_session_has_nothing_decided_about_others(looked: Counter[str]) -> None:
    record = InMemory()
    engine = Engine(cast("Record", record), keep=100.0)
    for number in range(20):
        id_ = f"{number:012d}"
        engine.settle(id_, [msgspec.structs.replace(created(), session=id_)])
    running = asyncio.create_task(engine.run())
    await turns()
    assert 20 == len(looked)
    looked.clear()
    target = SessionTarget(workers=3)
    engine.settle("000000000007", [InteractiveChanged(target=target, by="ann", what="3 workers")])
    await turns()
    assert {"000000000007"} == set(looked)
    running.cancel()


async def test_sessions_that_are_over_are_forgotten_when_their_time_has_come() -> None:
    record = InMemory()
    record.states["a"] = InteractiveSession(
        id="a", owner="ann", name="a", kind="dask", plan=created().plan, target=SessionTarget(),
        created=1.0, frame=0, ended=2.0,
    )  # fmt: skip
    running = asyncio.create_task(Engine(cast("Record", record), keep=1.0).run())
    await turns()
    assert {} == record.states
    running.cancel()


async def test_of_each_person_so_many_that_are_over_are_kept() -> None:
    """Those that ended last; who makes sessions all day fills no memory."""
    record = InMemory()
    for number, (owner, ended) in enumerate(
        [("ann", 5.0), ("ann", 9.0), ("ann", 7.0), ("bob", 1.0), ("ann", 0.0)]
    ):
        record.states[f"{number}"] = InteractiveSession(
            id=f"{number}", owner=owner, name="a", kind="dask", plan=created().plan, target=SessionTarget(),
            created=1.0, frame=0, ended=ended, closing=ended,
        )  # fmt: skip
    running = asyncio.create_task(Engine(cast("Record", record), keep=1e12, most=2).run())
    await turns()
    assert {"1", "2", "3", "4"} == record.states.keys()
    running.cancel()


async def test_the_end_of_a_life_is_decided_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything that happens."""
    record = InMemory()
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(driving, "time", SimpleNamespace(time=lambda: clock.now))
    engine = Engine(cast("Record", record), keep=100.0)
    engine.settle("0123456789ab", [created(life=500.0)])
    running = asyncio.create_task(engine.run())
    await turns()
    assert not record.states["0123456789ab"].closing
    clock.now = 1_500.0
    engine.changed()  # in the place of the clock of the loop, which is not set here
    await turns()
    assert "expired" == record.states["0123456789ab"].outcome
    running.cancel()
