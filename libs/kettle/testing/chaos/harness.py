"""One run: a pool, people who use it, a nemesis that breaks it, and the verdict."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.jetstream import ORPHAN_S
from kettle.client import Client, ClientError, PoolFile
from kettle.pool import DaemonState
from kettle.pool.personal_settings import Value
from kettle.testing.chaos import bus_server, history, identity_laws, invariants, leftovers
from kettle.testing.chaos.bus_server import BusHoldings
from kettle.testing.chaos.evidence import Evidence
from kettle.testing.chaos.identity_workload import IAM, IdentityWorkload
from kettle.testing.chaos.invariants import InvariantResult, verdict
from kettle.testing.chaos.leftovers import Holdings
from kettle.testing.chaos.liveness import Pulse
from kettle.testing.chaos.nemesis import Nemesis, Outcome, targets
from kettle.testing.chaos.plan import Plan, Watcher
from kettle.testing.chaos.report import Report, markdown
from kettle.testing.chaos.run_directory import Ground, prepared
from kettle.testing.chaos.schedule import Fault, chosen, schedule, targeted
from kettle.testing.chaos.wiring import NATS, SERVERS, Wiring, wired
from kettle.testing.chaos.workload import Workload
from kettle.testing.servers.embedded import postgres_template
from kettle.testing.throwaway_pool import SHORT_LEASE, ThrowawayPool, throwaway_pool
from kettle_wire.commands.schedd import Select

PATIENCE_S: Final = 120.0
_PROBE_S: Final = 1.0
_CHECK_S: Final = 300.0
_LEAK_S: Final = ORPHAN_S + 30.0
"""A consumer whose reader was cut off goes by itself, after the first of them and a moment of the server's."""
_LOOK_S: Final = 0.5
_THERE: Final = frozenset({"running", "standby"})
SCHEDULE: Final = "schedule.jsonl"
REPORT: Final = "report.json"
SUMMARY: Final = "summary.md"
EVENTS: Final = "events.jsonl"
_SERVER_LOGS: Final = ("nats/nats.log", "postgres/postgres.log")


async def run(plan: Plan, watcher: Watcher, *, replay: str = "", keep: Path | None = None) -> Report:
    """
    Carry out a plan.

    Files of a run that shows something wrong are kept, in `keep` or in a directory of their own.
    """
    began = time.monotonic()
    async with prepared(plan.disk_mib) as ground:
        run = _Run(plan, ground, watcher, replay)
        try:
            report = await run.live()
        except BaseException as error:
            error.add_note(f"logs and schedule are kept in {run.keep(keep)}")
            raise
        report.took = round(time.monotonic() - began, 1)
        if keep is not None or not report.clean:
            report.kept = str(run.keep(keep))
            (Path(report.kept) / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report)))
            (Path(report.kept) / SUMMARY).write_text(markdown(report), encoding="utf-8")
        return report


class _Run:
    def __init__(self, plan: Plan, ground: Ground, watcher: Watcher, replay: str) -> None:
        self._plan = plan
        self._ground = ground
        self._watcher = watcher
        self._replay = replay
        self._evidence = Evidence.prepare(ground.directory / "evidence", ground.directory / "work")
        self._pulse = Pulse()
        self._workload = Workload(
            self._pulse,
            self._evidence,
            seed=plan.seed,
            depth=plan.depth,
            jobs=plan.jobs,
            nodes=plan.nodes,
            tokens=IAM in plan.daemons,
        )
        self._identity = IdentityWorkload(ground.home, seed=plan.seed)
        self._faults: list[Fault] = []
        self._outcomes: list[Outcome] = []
        self._settled = ""
        self._before: dict[str, Holdings] = {}
        self._on_bus: BusHoldings | None = None

    async def live(self) -> Report:
        """Bring the pool up, break it, and look at what is left."""
        self._watcher.phase("making a database")
        template = await postgres_template(self._ground.directory / "template")
        self._watcher.phase("starting the pool")
        plan, settings = self._plan, self._settings()
        async with throwaway_pool(
            self._ground.directory,
            home=self._ground.home,
            cpus=plan.cpus,
            settings=settings,
            template=template,
        ) as pool:
            pids = {each.name: each.pid for each in pool.state.daemons if each.name not in SERVERS}
            place = self._ground.directory / "lines"
            place.mkdir()
            clocks = targeted("clock", pids, self._plan.faults)
            async with wired(pids, place, clocks=clocks) as wiring:
                environment = msgspec.json.encode(wiring.environment).decode()
                pool.environ = {**pool.environ, "KETTLE_MASTER_ENVIRONMENT": environment}
                await pool.stop()
                await pool.start()
                try:
                    await self._break(pool, wiring)
                    verdicts, past = await self._judge(pool)
                finally:
                    self._save_server_logs()
                await pool.stop()
        ours = str(self._ground.execute)  # the disk itself stays until the end of the run
        left = [path for path in pool.left if path != ours]
        verdicts.append(verdict("nothing is left of the pool when it is down", 1, left))
        return self._report(verdicts, past)

    def _settings(self) -> dict[str, dict[str, Value]]:
        tables: dict[str, dict[str, Value]] = {"master": {"disk_interval": 2.0}, "schedd": {**SHORT_LEASE}}
        if self._plan.daemons:
            tables["master"]["daemon_list"] = list(self._plan.daemons)
        if self._ground.disks:
            tables["startd"] = {"execute": str(self._ground.execute)}
        return tables

    async def _break(self, pool: ThrowawayPool, wiring: Wiring) -> None:
        plan = self._plan
        there = targets(pool, wiring, self._ground.disks)
        self._faults = schedule(
            plan.seed,
            chosen(there, plan.faults),
            seconds=plan.seconds,
            every=plan.every,
            longest=plan.longest,
        )
        nemesis = Nemesis(
            pool,
            wiring,
            self._pulse,
            disks=self._ground.disks,
            bound_s=plan.bound,
            noted=self._watcher.fault,
        )
        self._outcomes = nemesis.outcomes
        home = self._ground.home
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(Client.connect(home=home, patience=PATIENCE_S))
                for _ in range(3)
            ]
            prober = await stack.enter_async_context(Client.connect(home=home, patience=_PROBE_S))
            loop = asyncio.get_running_loop()
            async with self._pulse.beating(clients[0], prober):
                self._watcher.watching(self._pulse, self._workload)
                identity = self._identity.running(clients[1]) if IAM in plan.daemons else nullcontext()
                async with identity, self._workload.running(clients):
                    async with asyncio.timeout(PATIENCE_S):
                        await self._pulse.works(loop.time())
                        self._before, self._on_bus = await _whole(pool)
                    self._watcher.planned(self._faults)
                    self._watcher.phase("breaking it")
                    await nemesis.run(self._faults)
                    self._watcher.phase("waiting for the last answers")
            self._watcher.phase("waiting for the last jobs")
            self._settled = await leftovers.settle(clients[0], self._pulse.probe, bound_s=plan.bound)

    async def _judge(self, pool: ThrowawayPool) -> tuple[list[InvariantResult], history.RecordedHistory]:
        plan = self._plan
        self._watcher.phase("looking whether all is idle")
        late = [
            f"{each.fault.name} (number {each.fault.number}): not within {plan.bound:g} s"
            for each in self._outcomes
            if not each.skipped and each.recovered_seconds is None
        ]
        gone = [
            f"at {each.fault.name} (number {each.fault.number})"
            for each in self._outcomes
            if each.master_ended
        ]
        if IAM in plan.daemons:
            await leftovers.reported(pool, bound_s=plan.bound)
        verdicts = [
            verdict("the pool works again after each fault", len(self._outcomes), late),
            verdict("the master does not end by itself", len(self._outcomes), gone),
            verdict("every job comes to its end", 1, [self._settled] if self._settled else []),
            await leftovers.idle(pool, bound_s=plan.bound),
            leftovers.nothing_grew(self._before, leftovers.holdings(pool)),
        ]
        if self._on_bus is not None:
            verdicts.append(await _nothing_leaked(pool, self._on_bus))
        self._watcher.phase("reading the log")
        past = await history.read(PoolFile.load(pool.home).database_url, self._ground.directory / EVENTS)
        verdicts += invariants.on_record(self._workload.ledger, past, self._evidence)
        if IAM in plan.daemons:
            recorded = await identity_laws.read(PoolFile.load(pool.home).database_url)
            verdicts += identity_laws.on_record(self._identity.promises, recorded)
            verdicts.append(identity_laws.tokens_of_jobs(self._evidence))
        verdicts.append(await self._usage(pool, past))
        self._watcher.phase("checking the log")
        audit = await pool.log_check(within_s=_CHECK_S)
        verdicts.append(verdict("the log is clean", past.events, [] if audit.clean else [audit.said]))
        return verdicts, past

    async def _usage(self, pool: ThrowawayPool, past: history.RecordedHistory) -> InvariantResult:
        """
        Ask accounting once it has seen everything: it says so in its answer about the last command of all.
        """
        last = Select(clusters=[self._pulse.probe])
        try:
            await pool.client.remove(last)
            await pool.client.history(last)
            usage = await pool.client.usage()
        except ClientError as error:
            return verdict(invariants.USAGE, past.attempts, [f"accounting does not say: {error}"])
        return invariants.usage_is_attempts(past, usage)

    def _report(self, verdicts: list[InvariantResult], past: history.RecordedHistory) -> Report:
        ledger = self._workload.ledger
        lives = list(past.jobs.values())
        made = [each for each in self._outcomes if not each.skipped]
        return Report(
            seed=self._plan.seed,
            replay=self._replay,
            seconds=self._plan.seconds,
            took=0.0,
            faults=len(made),
            skipped=len(self._outcomes) - len(made),
            submitted=ledger.acknowledged,
            completed=sum(life.completed is not None for life in lives),
            removed=sum(life.ended and life.completed is None for life in lives),
            attempts=past.attempts,
            events=past.events,
            commands=len(ledger.submissions) + len(ledger.commands),
            unanswered=ledger.unanswered,
            held_by_pool=past.held_by_pool(),
            recovered_within=max((each.recovered_seconds or 0.0 for each in made), default=0.0),
            verdicts=verdicts,
            outcomes=self._outcomes,
            unavailable=self._ground.unavailable,
        )

    def keep(self, where: Path | None) -> Path:
        """Save what tells what happened; where it is."""
        kept = where or Path(tempfile.mkdtemp(prefix="kettle-chaos-kept-"))
        kept.mkdir(parents=True, exist_ok=True)
        with (kept / SCHEDULE).open("wb") as lines:
            told = {outcome.fault.number: outcome for outcome in self._outcomes}
            for fault in self._faults:
                lines.write(msgspec.json.encode(told.get(fault.number, fault)) + b"\n")
        (kept / "ledger.json").write_bytes(msgspec.json.encode(self._workload.ledger))
        if IAM in self._plan.daemons:
            (kept / "identity.json").write_bytes(msgspec.json.encode(self._identity.promises))
        if (logs := self._ground.home / "log").is_dir():
            shutil.copytree(logs, kept / "log", dirs_exist_ok=True)
        for name in (EVENTS, *(Path(log).name for log in _SERVER_LOGS)):
            if (file := self._ground.directory / name).is_file():
                shutil.copy(file, kept)
        return kept

    def _save_server_logs(self) -> None:
        """Copy what goes with the pool."""
        for name in _SERVER_LOGS:
            if (log := self._ground.home / name).is_file():
                shutil.copy(log, self._ground.directory)


async def _whole(pool: ThrowawayPool) -> tuple[dict[str, leftovers.Holdings], BusHoldings | None]:
    """
    What is held when all services serve: on a slow machine one may lose its lease before anything was broken, or still wait
    for that of its forerunner, and what it has later would be taken for a leak.
    """
    while True:
        before = pool.state.daemons
        if _all_serve(before):
            held, on_bus = leftovers.holdings(pool), await _on_bus(pool)
            if [daemon.pid for daemon in before] == [daemon.pid for daemon in pool.state.daemons]:
                return held, on_bus
        await asyncio.sleep(_LOOK_S)


def _all_serve(daemons: Sequence[DaemonState]) -> bool:
    """Whether each daemon runs, or stands by for another of its kind that does."""
    serving = {_kind(each) for each in daemons if each.status == "running"}
    return all(each.status in _THERE and _kind(each) in serving for each in daemons)


def _kind(daemon: DaemonState) -> str:
    return daemon.name.partition("#")[0]


async def _on_bus(pool: ThrowawayPool) -> BusHoldings | None:
    """What is held on the pool's own NATS server; None if it has none of its own."""
    server = pool.state.daemon(NATS)
    return await bus_server.holdings(pool.home, pool.state.nats_url) if server else None


async def _nothing_leaked(pool: ThrowawayPool, before: BusHoldings) -> InvariantResult:
    """Look until it is so, or for some seconds: connections of those who have gone end a moment later."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _LEAK_S
    while True:
        now = await _on_bus(pool)
        assert now is not None, "it had a server of its own before"
        found = bus_server.nothing_leaked(before, now)
        if found.kept or loop.time() > until:
            return found
        await asyncio.sleep(_LOOK_S)
