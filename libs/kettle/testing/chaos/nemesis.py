"""Carries out a schedule of faults on a running pool, and writes down what became of each."""

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.pool import PoolError
from kettle.testing.chaos import disk
from kettle.testing.chaos.liveness import Pulse
from kettle.testing.chaos.process_signals import Handle, service_zygotes, starters, with_children
from kettle.testing.chaos.proxy import BLACKHOLE, CLEAR, CUT, DEAF, MUTE, LineState
from kettle.testing.chaos.schedule import ALONE, PARTITIONS, Fault, Kind
from kettle.testing.chaos.wiring import NATS, POSTGRES, SERVERS, Wiring
from kettle.testing.throwaway_pool import ThrowawayPool

_LOOK_S: Final = 0.05
_WRITTEN_S: Final = 2.5
"""In which a master that had no room for its state file has written it."""
STARTER: Final = "starter"
ZYGOTE: Final = "zygote"
POOL: Final = "pool"

_SIGNALS: Final[Mapping[Kind, signal.Signals]] = {
    "kill": signal.SIGKILL,
    "restart": signal.SIGTERM,
    "wipe": signal.SIGKILL,
    "immediate": signal.SIGQUIT,
    "fast": signal.SIGINT,
}
_LINES: Final[Mapping[Kind, LineState]] = {"cut": CUT, "blackhole": BLACKHOLE, "mute": MUTE, "deaf": DEAF}


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of a fault.  Times are Unix times, beside `seconds`, which are seconds."""

    fault: Fault
    began: float
    ended: float = 0.0
    """When nothing was broken by it any more."""
    done: str = ""
    """What was really done; empty if there was nothing to break, which `skipped` explains."""
    skipped: str = ""
    master_ended: bool = False
    """The master had ended although nobody had killed it."""
    recovered_seconds: float | None = None
    """
    From the end of the fault to the moment at which the pool was seen to work; None: not within the bound.
    """


class Nemesis:
    """Breaks one pool."""

    def __init__(
        self,
        pool: ThrowawayPool,
        wiring: Wiring,
        pulse: Pulse,
        *,
        disks: Mapping[str, Path],
        bound_s: float,
        noted: Callable[[Outcome], None],
    ) -> None:
        """
        `disks`: the small file systems by name.  `bound_s`: the longest that the pool may take to work again.
        `noted` is called with each outcome.
        """
        self.outcomes: list[Outcome] = []
        self._pool = pool
        self._wiring = wiring
        self._pulse = pulse
        self._disks = disks
        self._bound_s = bound_s
        self._noted = noted
        self._bringing_up = asyncio.Lock()

    async def run(self, faults: Sequence[Fault]) -> None:
        """
        Break what the schedule says, when it says so; its clock stands while something is broken that must be alone.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()
        running: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                await asyncio.sleep(max(0.0, start + fault.at - loop.time()))
                stood = loop.time()
                if fault.kind in ALONE and running:
                    await asyncio.wait(running)
                task = group.create_task(self._one(fault))
                running.add(task)
                task.add_done_callback(running.discard)
                if fault.kind in ALONE:
                    await task
                    start += loop.time() - stood

    async def _one(self, fault: Fault) -> None:
        loop = asyncio.get_running_loop()
        outcome = Outcome(fault=fault, began=time.time())
        self.outcomes.append(outcome)
        await self._alive(outcome)
        begun = loop.time()
        await self._break(fault, outcome)
        outcome.ended = time.time()
        if not outcome.skipped:
            # Coming up again is what is measured; of a fault that lasts, its length is not.
            healed = loop.time() if fault.seconds else begun
            outcome.recovered_seconds = await self._recovered(fault, outcome, healed)
        self._noted(outcome)

    async def _break(self, fault: Fault, outcome: Outcome) -> None:
        kind = fault.kind
        if kind in PARTITIONS:
            await self._partition(fault, outcome)
        elif kind == "pause":
            await self._stand_still(fault, outcome)
        elif kind == "clock":
            await self._turn(fault, outcome)
        elif kind == "disk_full":
            await self._fill(fault, outcome)
        elif kind in {"crash", "cycle"}:
            await self._whole(fault, outcome)
        else:
            self._end(fault, outcome)

    def _end(self, fault: Fault, outcome: Outcome) -> None:
        number = _SIGNALS[fault.kind]
        handles = self._handles(fault)
        if fault.kind == "wipe" and handles and handles[0].send(signal.SIGSTOP):
            # Stopped, it cannot write again what is being deleted, and nobody has started another one yet.
            shutil.rmtree(self._pool.home / "nats" / "data" / "jetstream", ignore_errors=True)
            outcome.done = "JetStream's files deleted, "
        if not handles or not handles[0].send(number):
            outcome.skipped = "it did not run at that moment"
            return
        outcome.done += f"{number.name} to {handles[0].pid}"

    async def _stand_still(self, fault: Fault, outcome: Outcome) -> None:
        stopped = [handle for handle in self._handles(fault) if handle.send(signal.SIGSTOP)]
        if not stopped:
            outcome.skipped = "it did not run at that moment"
            return
        outcome.done = f"SIGSTOP to {', '.join(str(handle.pid) for handle in stopped)}"
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            for handle in stopped:
                handle.send(signal.SIGCONT)

    async def _partition(self, fault: Fault, outcome: Outcome) -> None:
        proxy = self._wiring.lines[fault.target]
        line = _LINES.get(fault.kind) or LineState(delay=fault.delay, rate=fault.rate)
        outcome.done = f"{proxy.connections} connections"
        await proxy.set(line)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            await proxy.set(CLEAR)

    async def _turn(self, fault: Fault, outcome: Outcome) -> None:
        clock = self._wiring.clocks[fault.target]
        outcome.done = f"{fault.offset:+.0f} s"
        clock.turn(fault.offset)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            clock.turn(0.0)

    async def _fill(self, fault: Fault, outcome: Outcome) -> None:
        async with disk.full(self._disks[fault.target]) as filler:
            outcome.done = f"{filler.stat().st_size >> 20} MiB"
            await asyncio.sleep(fault.seconds)
        if await self._stops():
            outcome.done += "; the master stopped the pool, and it was brought up again"
            await self._up()

    async def _stops(self) -> bool:
        """
        Whether the master has decided to stop the pool, which it may not have been able to write down; then, its end.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _WRITTEN_S
        while self._pool.lives and not self._stopping() and loop.time() < until:
            await asyncio.sleep(_LOOK_S)
        while self._pool.lives and self._stopping():
            await asyncio.sleep(_LOOK_S)
        return not self._pool.lives

    def _stopping(self) -> bool:
        return any(daemon.status in {"stopping", "off"} for daemon in self._pool.state.daemons)

    async def _whole(self, fault: Fault, outcome: Outcome) -> None:
        if fault.kind == "cycle":
            await self._pool.stop()
            outcome.done = "stopped"
            await self._up()
            return
        home, pool_id = self._pool.home, self._pool.state.pool_id
        before = {handle.pid for handle in starters(pool_id, home / "execute")}
        killed = self._pool.kill_master()
        await self._up()
        after = {handle.pid for handle in starters(pool_id, home / "execute")}
        outcome.done = (
            f"SIGKILL to the master {killed}; {len(before & after)} of {len(before)} starters were taken over"
        )

    async def _up(self) -> None:
        """Bring the pool up, as a person would who tries again."""
        try:
            await self._pool.start()
        except PoolError:
            await self._pool.start()

    def _handles(self, fault: Fault) -> list[Handle]:
        """The processes that a fault is about, the one that it is named for first."""
        if fault.target in {STARTER, ZYGOTE}:
            look = starters if fault.target == STARTER else service_zygotes
            found = look(self._pool.state.pool_id, self._pool.home / "execute")
            return [found[int(fault.pick * len(found))]] if found else []
        pid = self._pool.pid(fault.target)
        if not pid:
            return []
        return with_children(pid) if fault.target == POSTGRES and fault.kind == "pause" else [Handle.of(pid)]

    async def _recovered(self, fault: Fault, outcome: Outcome, healed: float) -> float | None:
        """Seconds until the pool works and what was broken serves; None after the bound."""
        loop = asyncio.get_running_loop()
        service = fault.target.partition(">")[0]
        try:
            async with asyncio.timeout(self._bound_s):
                working = asyncio.ensure_future(self._works(service, healed))
                try:
                    while not (await asyncio.wait({working}, timeout=_LOOK_S))[0]:
                        await self._alive(outcome)
                finally:
                    working.cancel()
        except TimeoutError:
            return None
        return round(loop.time() - healed, 3)

    async def _works(self, name: str, since: float) -> None:
        """
        Wait until a service runs, or stands by, if the name is one; and until the pool has done something.
        """
        while any(
            daemon.name == name and daemon.status not in {"running", "standby"}
            for daemon in (self._pool.state.daemons if self._pool.lives else ())
        ):
            await asyncio.sleep(_LOOK_S)
        await self._pulse.works(since)

    async def _alive(self, outcome: Outcome) -> None:
        """Bring the pool up if it has ended by itself, and note that: it must not."""
        async with self._bringing_up:
            if not self._pool.lives:
                outcome.master_ended = True
                await self._up()


def targets(pool: ThrowawayPool, wiring: Wiring, disks: Mapping[str, Path]) -> dict[Kind, list[str]]:
    """What can be broken in a pool that runs, and how."""
    names = [each.name for each in pool.state.daemons]
    services = [name for name in names if name not in SERVERS]
    found: dict[Kind, list[str]] = {
        "kill": [*names, STARTER, ZYGOTE],
        "pause": [*names, STARTER, ZYGOTE],
        "restart": [*services, *([NATS] if NATS in names else [])],
        "crash": [POOL],
        "cycle": [POOL],
        "disk_full": list(disks),
        "clock": list(wiring.clocks),
        **{kind: list(wiring.lines) for kind in PARTITIONS},
    }
    if NATS in names:
        found["wipe"] = [NATS]
    if POSTGRES in names:
        found["immediate"] = found["fast"] = [POSTGRES]
    return {kind: sorted(of_kind) for kind, of_kind in found.items() if of_kind}
