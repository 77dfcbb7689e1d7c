"""
Connections to other pools, each with the pass for it, and calls that go to the pool of the called service.

Another pool may be unreachable, hang, or not admit this schedd any more. None of that is an error of the visiting
service: the connection reports the reason and is retried, and calls meanwhile fail at once.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, BusError, NoResponderError, Rep, Req
from kettle.flocking.passes import PassError, Passes
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.commands.startd import Activate, Alive, RequestClaims
from kettle_wire.endpoint import Endpoint
from kettle_wire.flocking import guest, name_there, pool_of
from kettle_wire.identity import visitor
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)
_CONNECT_S: Final = 5.0
_FIRST_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 10.0

Joined = Callable[["PoolConnection", NatsBus], Coroutine[Any, Any, None]]
"""Does what is to be done in a pool while we are connected; it may go on until it is cancelled."""


class PoolConnection:
    """One other pool; `run` must be running for it to be reached."""

    def __init__(self, name: str, passes: Passes, joined: Joined) -> None:
        self.name: Final = name
        self.visitor = ""
        """Under which name we are known there, once the pass was read."""
        self.pool = ""
        """And what that pool calls itself."""
        self._passes = passes
        self._joined = joined
        self._bus: NatsBus | None = None
        self._trouble = "it is being connected to"

    @property
    def bus(self) -> NatsBus | None:
        """The connection; None while there is none."""
        return self._bus if self._bus is not None and self._bus.connected else None

    @property
    def trouble(self) -> str:
        """Why the pool is not reached; empty: it is."""
        if self._bus is not None:
            return "" if self._bus.connected else "the connection to its bus is lost; it is being retried"
        return self._trouble

    async def keep_connected(self) -> None:
        """Keep the connection whenever it is possible; never returns."""
        waits, said = Waits(Backoff(first=_FIRST_RETRY_S, longest=_LONGEST_RETRY_S)), ""
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._visit()
            except PassError as error:
                self._trouble = str(error)
            except (BusError, OSError, TimeoutError) as error:
                self._trouble = f"its bus cannot be joined: {error}"
            except Exception as error:  # noqa: BLE001 - whatever the client of a foreign bus raises is not our end
                self._trouble = f"its bus cannot be joined: {type(error).__name__}: {error}"
            finally:
                self._bus = None
            if self._trouble != said:
                said = self._trouble
                _log.warning("the pool %s is not reached: %s", self.name, said)
            if asyncio.get_running_loop().time() - began > _LONGEST_RETRY_S:
                waits.reset()
            await waits.wait()

    async def _visit(self) -> None:
        own = await asyncio.to_thread(self._passes.load, self.name)
        async with NatsBus.connect(
            own.nats_url,
            subjects=Subjects(own.pool),
            identity=visitor(own.visitor),
            credentials=str(self._passes.key(self.name)),
            ca=str(self._passes.authority(self.name)) if own.ca else "",
            patience=_CONNECT_S,
        ) as bus:
            self.visitor, self.pool, self._bus = own.visitor, own.pool, bus
            _log.info("the pool %s is reached as %s", self.name, own.visitor)
            work = asyncio.ensure_future(self._joined(self, bus))
            failure = asyncio.ensure_future(bus.failure())
            try:
                done, _ = await asyncio.wait({work, failure}, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
                await failure
            finally:
                for each in (work, failure):
                    each.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await each


class PoolConnections:
    """All pools that are visited; one begins when it is first asked for, and lasts as long as `tasks`."""

    def __init__(self, passes: Passes, tasks: asyncio.TaskGroup, joined: Joined) -> None:
        self._passes = passes
        self._tasks = tasks
        self._joined = joined
        self._visits: dict[str, PoolConnection] = {}
        self._running: list[asyncio.Task[None]] = []

    def __getitem__(self, name: str) -> PoolConnection:
        known = self._visits.get(name)
        if known is None:
            known = self._visits[name] = PoolConnection(name, self._passes, self._joined)
            self._running.append(self._tasks.create_task(known.keep_connected(), name=f"pool {name}"))
        return known

    def reached(self) -> Iterator[NatsBus]:
        """The connections that there are."""
        return (bus for visit in self._visits.values() if (bus := visit.bus) is not None)

    def close(self) -> None:
        """End all visits."""
        for task in self._running:
            task.cancel()


class StartdRouter:
    """Reaches startds of the own pool by its bus, and those of others by the visits to them."""

    def __init__(self, home: Bus, visits: PoolConnections) -> None:
        self._home = home
        self._visits = visits

    @property
    def payload_limit(self) -> int:
        """The most bytes of a message, whichever pool it goes to."""
        return min((self._home.payload_limit, *(bus.payload_limit for bus in self._visits.reached())))

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float = 5.0
    ) -> Rep:
        """Like `Bus.call`; a startd has the name that its own pool's schedd gives it."""
        if endpoint.role != "startd" or not (pool := pool_of(name)):
            return await self._home.call(endpoint, name, request, deadline=deadline)
        bus, us = self._reached(pool), self._visits[pool].visitor
        return await bus.call(endpoint, name_there(name), _as_visitor(request, us), deadline=deadline)

    def _reached(self, pool: str) -> NatsBus:
        visit = self._visits[pool]
        if (bus := visit.bus) is None:
            raise NoResponderError(f"the pool {pool} is not reached: {visit.trouble}")
        return bus


def _as_visitor(request: Req, us: str) -> Req:
    """What is sent in another pool is sent under our name there."""
    match request:
        case RequestClaims():
            return msgspec.structs.replace(request, schedd=us, submitter=guest(request.submitter, us))
        case Alive():
            return msgspec.structs.replace(request, schedd=us)
        case Activate():
            activations = [msgspec.structs.replace(each, shadow=us) for each in request.activations]
            return msgspec.structs.replace(request, activations=activations)
        case _:
            return request
