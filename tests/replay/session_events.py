"""
What a service of interactive sessions ever records, decided by its own decider about sessions to which things happen in a fixed order.

    .venv/bin/python -m tests.replay.session_events 0.1.40     its frames become tests/replay/0.1.40
"""

import sys
from typing import Final

import msgspec

from kettle_services.sessions.domain.decisions import Heard, decided
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_wire.events import encode, tag_of
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveCreated,
    InteractiveEvent,
    InteractiveForgotten,
    InteractiveMembersRefused,
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    InteractiveRestarted,
    InteractiveSchedulerSeen,
    MemberChange,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.job_tokens import NeededToken
from kettle_wire.sessions import MemberPlan, SessionAdapt, SessionPlan, SessionTarget

from .folds import expected
from .recording import HERE, write

SHARD: Final = "sessions.schedd"
_AT: Final = 1_795_651_200_000_000


class _Life:
    """Commits of one session, a minute after each other."""

    def __init__(self, first: InteractiveCreated) -> None:
        self.id = first.session
        self.session: InteractiveSession | None = None
        self.commits: list[list[InteractiveEvent]] = []
        self.heard = Heard()
        self.feed(first)

    @property
    def now(self) -> float:
        return _AT / 1e6 + 60.0 * len(self.commits)

    def feed(self, *facts: InteractiveEvent) -> None:
        """What happens, and what follows from it."""
        events: list[InteractiveEvent] = [*facts]
        for fact in facts:
            self.session = evolve(self.session, fact, self.now)
        if self.session is not None:
            more, self.session = decided(self.session, self.now, self.heard)
            events += more
        if events:
            self.commits.append(events)

    def see(self, frame: int, *changes: MemberChange) -> None:
        """What a frame of the schedd says."""
        self.feed(InteractiveMembersSeen(frame=frame, changes=[*changes]))


def _dask() -> _Life:
    """Workers come, are lost, held, retired and replaced; it is restarted and stopped."""
    plan = SessionPlan(
        profile="cms-2026",
        head=MemberPlan(command=["python3", "-m", "kettle.dask.scheduler"], services="dashboard:8787/http"),
        worker=MemberPlan(command=["python3", "-m", "kettle.dask.worker"], cpus=2, environment={"A": "1"}),
        image="/cvmfs/image",
        requirements="HasCVMFS",
        worker_life=1200.0,
        files=["proxy"],
        tokens=[NeededToken(service="kettle", scopes=["storage.read:/"])],
    )
    target = SessionTarget(workers=2, idle=86_400.0, shared_with=["bob", "group:atlas"])
    life = _Life(
        InteractiveCreated(
            session="00000000000a",
            owner="ann",
            name="fits",
            kind="dask",
            plan=plan,
            target=target,
            followed=7,
        )
    )
    life.feed(InteractiveMembersRefused(batch=1, code="limit", reason="ann has 10 jobs, and no more"))
    life.feed()
    life.feed(InteractiveMembersSubmitted(frame=8, batch=2, cluster=11))
    life.see(9, MemberChange(2, "matched", site="T2_X", machine="slot1@n1"))
    life.see(10, MemberChange(2, "running"))
    life.feed(InteractiveSchedulerSeen(contact="kettle://11.0/dask", versions={"distributed": "2026.8"}))
    life.feed(InteractiveMembersSubmitted(frame=12, batch=3, cluster=12))
    life.see(13, MemberChange(3, "running"), MemberChange(4, "held", reason="no image", code=34))
    life.feed()
    life.see(14, MemberChange(4, "idle"), MemberChange(3, "idle", reason="its machine was lost"))
    life.see(15, MemberChange(3, "running"), MemberChange(4, "running"))
    for _ in range(14):
        life.feed()
    life.feed(InteractiveMembersSubmitted(frame=20, batch=4, cluster=13))
    life.see(21, MemberChange(5, "running"))
    life.heard = Heard(retired=frozenset({"12.0", "12.1"}))
    life.feed()
    adapt = SessionAdapt(minimum=1, maximum=4)
    life.heard = Heard(target=1, retired=frozenset({"12.0", "12.1"}))
    life.feed(
        InteractiveChanged(
            target=msgspec.structs.replace(target, adapt=adapt), by="ann", what="from 1 to 4 workers"
        )
    )
    life.feed(InteractiveRestarted(by="ann", reason="stuck"))
    life.see(30, MemberChange(2, "removing", reason="via condor_rm", removed_by="ann"))
    life.see(31, MemberChange(2, "gone", reason="via condor_rm", removed_by="ann"))
    life.feed(InteractiveClosing(outcome="stopped", reason="stopped by ann", by="ann"))
    return life


def _program() -> _Life:
    """It ends by itself, and is forgotten."""
    life = _Life(
        InteractiveCreated(
            session="00000000000b",
            owner="bob",
            name="server",
            kind="process",
            plan=SessionPlan(profile="process", head=MemberPlan(command=["/bin/true"])),
            target=SessionTarget(life=3600.0),
            followed=7,
        )
    )
    life.feed(InteractiveMembersSubmitted(frame=8, batch=1, cluster=21))
    life.see(9, MemberChange(1, "running"))
    life.see(10, MemberChange(1, "gone", reason="its program has ended with code 0", exit=0))
    life.feed(InteractiveForgotten())
    return life


def frames() -> list[Frame]:
    """One commit after the other."""
    made: list[Frame] = []
    position = 1
    for life in (_dask(), _program()):
        version = 0
        for number, events in enumerate(life.commits):
            entries: list[Entry] = []
            for event in events:
                version += 1
                entries.append(Entry(f"session/{life.id}", version, tag_of(event), encode(event), b""))
            at = _AT + number * 60_000_000
            made.append(Frame(SHARD, 1, len(made) + 1, position, at, entries))
            position += len(entries)
    return made


if __name__ == "__main__":
    shards = {SHARD: frames()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
