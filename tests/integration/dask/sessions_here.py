"""
A service of sessions in this process, whose jobs are tasks: what KettleCluster and the programs see of the real one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count

import msgspec
from distributed.comm.registry import backends

from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle.dask.addresses import SCHEME, JobAddress
from kettle.dask.comm import KettleBackend
from kettle.dask.credentials import Credentials, OpenStream
from kettle.dask.placement import Placement, machine_network
from kettle.dask.reports import Report, Superior
from kettle.dask.scheduler.program import run_scheduler
from kettle.dask.session_service import Limits, Situation, Wish
from kettle.dask.worker.program import WorkerProgram
from kettle.pki.certificates import make_request
from kettle.pki.session_authority import SessionAuthority

SECRET = b"a secret of the service, 32 bytes"


def issued(session: str) -> Credentials:
    now = datetime.now(UTC)
    authority = SessionAuthority(SECRET, session, now=now)
    key, request = make_request("member")
    return Credentials(
        authority.certificate.decode(), authority.sign(request, now=now).decode(), key.decode()
    )


class Ordered(msgspec.Struct):
    retire: list[str]
    closing: bool


class Member:
    """What one of its programs is told."""

    def __init__(self, service: "SessionsHere", *, leads: bool) -> None:
        self._service = service
        self.credentials = issued("s1")
        self.open_stream: OpenStream | None = None
        self.superior: Superior | None = service if leads else None

    async def publish(self, service: str, port: int, kind: str) -> None:
        self._service.published.append((service, kind))

    async def scheduler(self, after: str = "") -> tuple[str, dict[str, str]]:
        await self._service.until(lambda now: now.contact not in {"", after})
        return self._service.situation.contact, {}

    async def announce(self, contact: str) -> None:
        pass


class SessionsHere:
    """Of one session, `s1`."""

    def __init__(self) -> None:
        self.situation = Situation(id="s1", name="dask-1", state="requested")
        self.wish = Wish()
        self.published: list[tuple[str, str]] = []
        self.reports: list[Report] = []
        self.unreachable = False
        self.jobs: dict[str, tuple[asyncio.Task[object], asyncio.Event]] = {}
        self._numbers = count()
        self._retiring: set[str] = set()
        self._changed = asyncio.Condition()

    # What people ask

    async def open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise OSError("there is no gateway")

    async def create(self, wish: Wish) -> Situation:
        self._answers()
        self.wish = wish
        await self.change(name=wish.name or "dask-1", wanted=wish.workers or 0, adapt=wish.adapt)
        if not wish.local:
            await self.start_scheduler()
        return self.situation

    async def show(self, session: str) -> Situation:
        self._answers()
        if session not in {"s1", self.situation.name}:
            raise CommandRefusedError("not_found", f"there is no session {session}")
        return self.situation

    async def scheduled_at(self, address: JobAddress) -> Situation | None:
        self._answers()
        return self.situation if address.is_of(self.situation.contact) else None

    async def follow(self, session: str, after: int, wait_s: float) -> Situation:
        self._answers()
        try:
            async with asyncio.timeout(min(wait_s, 0.2)):
                await self.until(lambda now: now.events > after)
        except TimeoutError:
            pass
        return self.situation

    async def scale(self, session: str, workers: int) -> Situation:
        self._answers()
        await self.change(wanted=workers, adapt=None)
        self.start_workers()
        return self.situation

    async def adapt(self, session: str, limits: Limits) -> Situation:
        self._answers()
        await self.change(adapt=limits)
        return self.situation

    async def stop(self, session: str) -> Situation:
        self._answers()
        await self.end()
        return self.situation

    async def report_scheduler(self, session: str, report: Report) -> Ordered:
        assert self.wish.local
        return await self.report(report)

    async def credentials(self, session: str) -> Credentials:
        return issued(session)

    async def story(self, session: str) -> list[str]:
        return ["the session was requested"]

    async def link(self, job: str, service: str) -> str:
        return f"https://pool.example/jobs/{job}/{service}/status"

    # What its scheduler says

    async def report(self, report: Report) -> Ordered:
        self.reports.append(report)
        if self.situation.over:
            return Ordered([], closing=True)
        present = {each.name for each in report.workers if each.state != "retired"}
        self._retiring &= present
        limits = self.situation.adapt
        wanted = self.situation.wanted
        if limits is not None:
            wanted = min(max(report.target, limits.minimum), limits.maximum)
        excess = len(present) - wanted
        idle = sorted(
            (each for each in report.workers if each.name in present), key=lambda each: -each.idle_s
        )
        self._retiring |= {each.name for each in idle[: max(0, excess - len(self._retiring))]}
        state = "ready" if len(present) >= wanted else "starting"
        said = (report.contact, len(present), wanted, state)
        now = self.situation
        if said != (now.contact, now.running, now.wanted, now.state):
            await self.change(contact=report.contact, running=len(present), wanted=wanted, state=state,
                              versions=report.versions)  # fmt: skip
            self.start_workers()
        else:
            await asyncio.sleep(0.02)
        return Ordered(sorted(self._retiring), closing=False)

    # What it does

    async def change(self, **new: object) -> None:
        async with self._changed:
            self.situation = msgspec.structs.replace(self.situation, events=self.situation.events + 1, **new)
            self._changed.notify_all()

    async def until(self, wanted: Callable[[Situation], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: wanted(self.situation))

    def place(self) -> Placement:
        network = machine_network()
        return Placement(job=f"1.{next(self._numbers)}", networks=frozenset({network}), network=network)

    async def start_scheduler(self) -> None:
        place, end = self.place(), asyncio.Event()
        run = run_scheduler(Member(self, leads=True), place, end)
        self.jobs[place.job] = asyncio.create_task(run), end
        await self.change(scheduler_job=place.job)

    def start_workers(self) -> None:
        alive = [job for job, (task, _) in self.jobs.items() if not task.done()]
        for _ in range(self.situation.wanted - (len(alive) - (not self.wish.local))):
            place, end = self.place(), asyncio.Event()
            program = WorkerProgram(Member(self, leads=False), place, death_timeout_s=20)
            self.jobs[place.job] = asyncio.create_task(program.run(end)), end

    async def end(self) -> None:
        await self.change(state="ended", reason="it was stopped", contact="", wanted=0)
        for _, end in self.jobs.values():
            end.set()
        if self.jobs:
            await asyncio.wait([task for task, _ in self.jobs.values()])
        for task, _ in self.jobs.values():
            task.result()

    def _answers(self) -> None:
        if self.unreachable:
            raise PoolUnreachableError("nobody answers")


@asynccontextmanager
async def sessions_here() -> AsyncGenerator[SessionsHere]:
    service = SessionsHere()
    try:
        yield service
    finally:
        if service.situation.state != "ended" or not all(task.done() for task, _ in service.jobs.values()):
            await service.end()
        backends[SCHEME] = KettleBackend()
