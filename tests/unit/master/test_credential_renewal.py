"""The credential of a person's own machine is renewed while it can be, whatever its clocks do."""

import asyncio
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.bus.credentials import Credential
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.testing.patience import PATIENCE_S
from kettle_services.master.credential_renewal import keep_renewed
from kettle_wire.commands.own_machines import RENEW_WORKER, RenewWorker, WorkerRenewal
from kettle_wire.endpoint import Position
from kettle_wire.identity import Identity, daemon, worker
from kettle_wire.subjects import Subjects

_DAY_S = 86_400.0
_ISSUED = 1_000_000_000.0


def statement(issued: float, expires: float) -> str:
    body: dict[str, Any] = {"iat": int(issued), "exp": int(expires), "name": "laptop", "nats": {}}
    return f"h.{urlsafe_b64encode(msgspec.json.encode(body)).rstrip(b'=').decode()}.s"


class Laptop:
    """A machine that sleeps: its clock goes on, and what it has been told to wait for does not."""

    def __init__(self, path: Path, life: float) -> None:
        self.path, self.life, self.now = path, life, _ISSUED
        self.asked: list[float] = []
        """When it has asked for the next one."""
        self.refusals = 0
        """So many times it is told no."""
        self.slower = 1.0
        """Seconds that have passed for each that it slept."""
        self._server = MemoryServer()
        path.write_text(Credential("SU", statement(self.now, self.now + life)).text())

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float, wake: asyncio.Event | None = None) -> bool:
        del wake
        self.now += self.slower * seconds
        await asyncio.sleep(0)
        return True

    async def _renew(self, _request: RenewWorker, _caller: Identity) -> WorkerRenewal:
        self.asked.append(self.now)
        if len(self.asked) <= self.refusals:
            raise RefusedError("not-now", "ask later")
        expires = self.now + self.life
        return WorkerRenewal(
            jwt=statement(self.now, expires), expires=expires, position=Position("identity", 1)
        )

    async def ask(self) -> None:
        """Let it be, until it has got one."""
        first = self.path.read_text()
        iam = MemoryBus(self._server, subjects=Subjects("p"), identity=daemon("iam"))
        await iam.serve("iam", "iam", [Served(RENEW_WORKER, self._renew)], version="1.0.0")
        bus = MemoryBus(self._server, subjects=Subjects("p"), identity=worker("laptop"))
        renewing = asyncio.create_task(keep_renewed(bus, self.path, clock=self.clock, sleep=self.sleep))
        async with asyncio.timeout(PATIENCE_S):
            while self.path.read_text() == first and not renewing.done():
                await asyncio.sleep(0)
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


@pytest.mark.parametrize("slower", [1.0, 24 / 14, 24.0])
async def test_a_machine_that_sleeps_renews_in_time(tmp_path: Path, slower: float) -> None:
    """Its time is up by the clock, of which it sees a part; also one that is awake an hour a day."""
    laptop = Laptop(tmp_path / "worker.creds", 7 * _DAY_S)
    laptop.slower = slower
    await laptop.ask()
    assert _ISSUED + 4 * _DAY_S < laptop.asked[0] < _ISSUED + 7 * _DAY_S


@pytest.mark.parametrize(("life", "slower"), [(7 * _DAY_S, 24.0), (1800.0, 1.0)])
async def test_a_refusal_is_asked_about_again_in_time(tmp_path: Path, life: float, slower: float) -> None:
    """What is refused once may be had before the credential ends, also if that is less than an hour."""
    laptop = Laptop(tmp_path / "worker.creds", life)
    laptop.slower, laptop.refusals = slower, 1
    await laptop.ask()
    assert 2 == len(laptop.asked)
    assert laptop.asked[-1] < _ISSUED + life
