"""What a scheduler's program and its session say to each other; the service needs nothing of Dask for it."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from kettle_wire.commands.sessions import AgentReport, AgentWorker


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of a worker, as the service is told of it."""

    name: str
    state: str
    idle_s: float
    memory: int
    """Bytes of results and of everything else that it holds."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler says of itself."""

    workers: list[WorkerReport]
    target: int
    """How many workers its load asks for."""
    idle_s: float
    """For how long there was nothing to do; 0: there is."""
    contact: str
    versions: Mapping[str, str]
    wait: float
    """How long the answer may take if there is nothing to do, in seconds."""

    def sent(self) -> AgentReport:
        """As it travels."""
        workers = [
            AgentWorker(name=each.name, state=each.state, idle_s=each.idle_s, memory=each.memory)
            for each in self.workers
        ]
        return AgentReport(
            workers=workers,
            target=self.target,
            idle_s=self.idle_s,
            contact=self.contact,
            versions=dict(self.versions),
            wait=self.wait,
        )


class Dismissed(msgspec.Struct, frozen=True):
    """Orders for a scheduler with which its session has nothing more to do."""

    retire: list[str] = []
    closing: bool = True


class Orders(Protocol):
    """What the service answers."""

    @property
    def retire(self) -> list[str]:
        """Names of the workers that are to go; it does not end their jobs before they are retired."""
        ...

    @property
    def closing(self) -> bool:
        """The session ends."""
        ...


class Superior(Protocol):
    """The session."""

    async def report(self, report: Report) -> Orders:
        """Tell it, and wait for something to do.  Raises ClientError."""
        ...
