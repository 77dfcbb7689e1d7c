"""
A session with a queue of its own in memory: what is decided is carried out there, and what happens there comes back as facts.
"""

from kettle_services.sessions.domain.decisions import Heard, decided
from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_wire.codes import HoldCode
from kettle_wire.events import decode, encode
from kettle_wire.events.interactive import (
    InteractiveCreated,
    InteractiveEvent,
    InteractiveMembersRefused,
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    MemberChange,
)
from kettle_wire.sessions import (
    MemberPlan,
    MemberStatus,
    SessionAdapt,
    SessionKind,
    SessionPlan,
    SessionTarget,
)

NOBODY = Heard()


def created(
    kind: SessionKind = "dask",
    *,
    workers: int = 0,
    adapt: SessionAdapt | None = None,
    life: float = 0.0,
    idle: float = 0.0,
    worker_life: float = 0.0,
    spread: bool = False,
) -> InteractiveCreated:
    """The first event of a session of ann."""
    has_workers = kind == "dask"
    return InteractiveCreated(
        session="0123456789ab",
        owner="ann",
        name="mine",
        kind=kind,
        plan=SessionPlan(
            profile=kind,
            head=MemberPlan(command=["head"]),
            worker=MemberPlan(command=["worker"]) if has_workers else None,
            worker_life=worker_life,
            spread=spread,
        ),
        target=SessionTarget(workers=workers, adapt=adapt, life=life, idle=idle),
        followed=0,
    )


class OneSession:
    """The session, its log, and the queue."""

    def __init__(self, first: InteractiveCreated) -> None:
        self.now = 1_000.0
        self.frame = 0
        self.log: list[tuple[float, bytes]] = []
        self.heard = NOBODY
        self.clusters: dict[int, int] = {}
        """Of each batch: a repeat gets the same."""
        self.submissions: list[int] = []
        """The batches that came to the queue, repeats too."""
        self.jobs: dict[str, MemberStatus] = {}
        self.removed_while_running: list[Member] = []
        self.refuse = ""
        self._session: InteractiveSession | None = None
        self.settle([first])

    @property
    def session(self) -> InteractiveSession:
        """As it is."""
        assert self._session is not None
        return self._session

    @property
    def workers(self) -> dict[int, Member]:
        """Those that are not going."""
        return {number: each for number, each in self.session.workers.items() if each.stays}

    def settle(self, facts: list[InteractiveEvent] | None = None) -> list[InteractiveEvent]:
        """Record facts, and what follows; all of it."""
        for fact in facts or []:
            self._apply(fact)
        events, _ = decided(self.session, self.now, self.heard)
        for event in events:
            self._apply(event)
        return [*(facts or []), *events]

    def _apply(self, event: InteractiveEvent) -> None:
        self.log.append((self.now, encode(event)))
        self._session = evolve(self._session, event, self.now)

    def restart_service(self) -> None:
        """What is known is read from the log, and what schedulers said is forgotten."""
        session: InteractiveSession | None = None
        for at, data in self.log:
            event = decode(data)
            assert isinstance(event, InteractiveEvent)
            session = evolve(session, event, at)
        assert session == self._session
        self.heard = NOBODY

    def carry_out(self, *, lose_answers: bool = False) -> None:
        """Do what is to be done, until nothing is; `lose_answers`: everything arrives twice."""
        for _ in range(100):
            before = len(self.log)
            for _ in range(2 if lose_answers else 1):
                self._submit()
                self._remove()
                self._release()
            if len(self.log) == before:
                return
        raise AssertionError("there is no end of it")

    def _submit(self) -> None:
        for batch in sorted({each.batch for each in self.session.members.values() if not each.job}):
            if self.refuse:
                self.settle([InteractiveMembersRefused(batch=batch, code="limit", reason=self.refuse)])
                continue
            self.submissions.append(batch)
            new = batch not in self.clusters
            cluster = self.clusters.setdefault(batch, len(self.clusters) + 1)
            members = [each for each in self.session.members.values() if each.batch == batch]
            for each in members if new else []:
                self.jobs[f"{cluster}.{each.place}"] = "idle"
            self.frame += 1
            submitted = InteractiveMembersSubmitted(frame=self.frame, batch=batch, cluster=cluster)
            self.settle([submitted])

    def _remove(self) -> None:
        for number, each in list(self.session.members.items()):
            if each.ending and each.job in self.jobs:
                if each.status == "running" and each.role == "worker":
                    self.removed_while_running.append(each)
                self.happens(number, "gone", reason="removed", removed_by="ann")

    def _release(self) -> None:
        for number, each in list(self.session.members.items()):
            if each.status == "held" and each.releases and not each.ending:
                self.happens(number, "idle")

    def happens(
        self,
        number: int,
        status: MemberStatus,
        *,
        reason: str = "",
        exit_code: int | None = None,
        removed_by: str = "",
        code: int = HoldCode.InvalidDockerImage,
        site: str = "",
    ) -> None:
        """The queue says something of a member."""
        job = self.session.members[number].job
        assert job in self.jobs, f"member {number} is not in the queue"
        if status == "gone":
            del self.jobs[job]
        else:
            self.jobs[job] = status
        self.frame += 1
        change = MemberChange(
            number,
            status,
            reason=reason,
            site=site,
            exit=exit_code,
            code=code if status == "held" else 0,
            removed_by=removed_by,
        )
        self.settle([InteractiveMembersSeen(frame=self.frame, changes=[change])])

    def starts(self, number: int, *, site: str = "") -> None:
        """A member that waits gets a slot and runs."""
        self.happens(number, "matched", site=site)
        self.happens(number, "running")

    def start_all(self, *, site: str = "") -> None:
        """All that wait run, until none does."""
        self.carry_out()
        while waiting := [n for n, each in self.session.members.items() if each.status == "idle"]:
            for number in waiting:
                self.starts(number, site=site)
            self.carry_out()

    def passes(self, seconds: float) -> None:
        """Time passes, and is looked at."""
        self.now += seconds
        self.settle()
