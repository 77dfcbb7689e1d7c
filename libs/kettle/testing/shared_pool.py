"""
One running pool that tests use in turn, because a start of a pool takes as much of a core as ten tests do.

    async with shared.lent(cpus=4, settings={"startd": {...}}) as pool:
        cluster = await pool.client.submit(...)

Each test finds it without jobs and claims, with all daemons running and seen, and with the settings that the test wants: these
are changed as an administrator does it, by `kettle.toml` and `kettle reconfig`. What is recorded stays: cluster numbers
go on, and the history has the jobs of earlier tests. A test for which that is wrong, that breaks what is not mended by
itself, or that leaves things behind on purpose, has a pool of its own (`throwaway_pool`).

A failure does not hand on what it may have left: after it, the next test gets a new pool.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from kettle.client import Client, select
from kettle.pool.personal_settings import Tables
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import SHORT, ThrowawayPool, merged, unconnected_pool

_LOOK_S: Final = 0.02
_FOR_LIFE: Final = ("kettle", "master")
"""Tables of the master and of all: another pool is started for other values of them."""
_AD_TYPES: Final = {
    "collector": "Collector", "negotiator": "Negotiator", "schedd": "Scheduler", "startd": "Machine",
}  # fmt: skip

T = TypeVar("T")


class SharedPool:
    """The pool, started when it is first wanted; `with` it, it ends."""

    def __init__(
        self, directory: Path, *, template: Path | None = None, within_s: float = PATIENCE_S
    ) -> None:
        """`within_s` is how long what a test has left may take to go away."""
        self._directory = directory
        self._template = template
        self._within_s = within_s
        # Tests have event loops of their own, which end before the pool does.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._stack = AsyncExitStack()
        self._pool: ThrowawayPool | None = None
        self._wanted: Tables = {}
        self._spoilt = False
        self.starts = 0
        """How many pools there were."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._runner.close()

    @asynccontextmanager
    async def lent(
        self, *, cpus: int = 2, memory_mib: int = 8192, settings: Tables | None = None
    ) -> AsyncGenerator[ThrowawayPool]:
        """
        The pool with these settings, for one test.

        Raises:
            TimeoutError: what the test left does not go away; that pool is stopped.
        """
        wanted = merged({"startd": {"num_cpus": cpus, "memory": memory_mib}}, settings or {})
        try:
            pool = await self._serving(wanted)
            async with Client.connect(home=pool.home, patience=PATIENCE_S) as pool.client:
                await self._configured(pool, wanted)
                await _shown(pool, PATIENCE_S)
                yield pool
                if not self._spoilt:
                    await _emptied(pool, self._within_s)
        except BaseException:
            self._spoilt = True
            raise
        finally:
            if self._spoilt:
                await self._elsewhere(self._stop())

    def spoil(self) -> None:
        """A test has failed with it: nobody knows what it is like."""
        self._spoilt = True

    def stop(self) -> None:
        """End it, if it runs, outside of any event loop; the next test gets a new one."""
        self._runner.run(self._stop())

    async def _serving(self, wanted: Tables) -> ThrowawayPool:
        if self._pool is not None and any(wanted.get(name) != self._wanted.get(name) for name in _FOR_LIFE):
            await self._elsewhere(self._stop())
        if self._pool is None:
            self._pool = await self._elsewhere(
                self._stack.enter_async_context(
                    unconnected_pool(self._directory, wanted, template=self._template)
                )
            )
            self._wanted = wanted
            self.starts += 1
        return self._pool

    async def _configured(self, pool: ThrowawayPool, wanted: Tables) -> None:
        if wanted != self._wanted:
            kept = {name: pool.settings[name] for name in _FOR_LIFE if name in pool.settings}
            await pool.reconfigure(merged(SHORT, wanted) | kept)
            self._wanted = wanted

    async def _stop(self) -> None:
        pool, self._pool, self._spoilt = self._pool, None, False
        await self._stack.aclose()
        assert pool is None or pool.left == []

    async def _elsewhere(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the pool's event loop."""
        return await asyncio.to_thread(self._runner.run, work)


async def _shown(pool: ThrowawayPool, within_s: float) -> None:
    """
    Wait until each daemon has its ad, and the master's tells of those that run: who has just started serves before it is told of.
    """
    async with asyncio.timeout(within_s):
        while True:
            pids = {daemon.name: daemon.pid for daemon in pool.state.daemons}
            wanted = {"DaemonMaster", *(kind for role, kind in _AD_TYPES.items() if role in pids)}
            said = [f"{role.upper()}_Pid" for role in _AD_TYPES]
            ads = {ad["MyType"]: ad for ad in await pool.client.ads(projection=["MyType", *said])}
            if wanted <= ads.keys() and all(
                ads["DaemonMaster"].get(f"{role.upper()}_Pid") == pids.get(role) for role in _AD_TYPES
            ):
                return
            await asyncio.sleep(_LOOK_S)


async def _emptied(pool: ThrowawayPool, within_s: float) -> None:
    """Have all jobs leave, and wait until nothing of them is left."""
    with pool.telling():
        async with asyncio.timeout(within_s):
            for daemon in pool.state.daemons:
                await pool.restarted(daemon.name)
            while clusters := await _clusters(pool.client):
                await pool.client.remove(select(*clusters), "the test is over")
                await pool.client.act("remove_x", select(*clusters))
                await pool.client.wait(select(*clusters))
            has_machine = any(daemon.name.partition(".")[0] == "startd" for daemon in pool.state.daemons)
            while pool.sandboxes or (has_machine and not await _free(pool.client)):
                await asyncio.sleep(_LOOK_S)


async def _clusters(client: Client) -> set[int]:
    queue = await client.queue(projection=["ClusterId"])
    return {int(str(ad["ClusterId"])) for ad in queue.jobs} | {each.cluster for each in queue.unmade}


async def _free(client: Client) -> bool:
    """Whether the machine has no claims, and is ready for others."""
    slots = await client.ads("Machine", projection=["State", "DynamicSlot", "Draining"])
    return bool(slots) and not any(
        slot.get("DynamicSlot") is True or slot["State"] not in {"Unclaimed", "Owner"} for slot in slots
    )
