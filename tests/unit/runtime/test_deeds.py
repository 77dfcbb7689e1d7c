"""Deeds of administrators on their way to iam's record."""

import asyncio
import logging
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.bus.ports import NoResponderError, RefusedError, Rep, Req
from kettle.runtime.deeds import MOST, Outbox
from kettle.testing.patience import PATIENCE_S
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.deeds import ReportDeed
from kettle_wire.commands.iam import Recorded
from kettle_wire.commands.master import CONTROL, Control
from kettle_wire.commands.startd import CANCEL_DRAIN, CancelDrain
from kettle_wire.endpoint import Endpoint, Position
from kettle_wire.identity import user, worker

ADA = user("ada")


class Iam:
    """Records, or is away."""

    payload_limit = 1 << 20

    def __init__(self) -> None:
        self.recorded: list[ReportDeed] = []
        self.here = asyncio.Event()
        self.asked = 0
        self.refuses = ""

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float = 5.0
    ) -> Rep:
        self.asked += 1
        assert isinstance(request, ReportDeed)
        # What has come over the bus is checked there.
        endpoint.decode_request(msgspec.msgpack.encode(request))
        if not self.here.is_set():
            raise NoResponderError("iam is away")
        if request.sentence == self.refuses:
            raise RefusedError(RefusalCode.MALFORMED, "no")
        self.recorded.append(request)
        answer: Any = Recorded(position=Position("identity", len(self.recorded)))
        return endpoint.decode_reply(msgspec.msgpack.encode(answer))

    async def has(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.recorded) < number:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def delivering(outbox: Outbox, iam: Iam) -> AsyncGenerator[None]:
    task = asyncio.create_task(outbox.deliver(iam))
    try:
        await asyncio.sleep(0)  # until it has begun
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def kept(directory: Path) -> list[bytes]:
    return [line for path in sorted(directory.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


async def test_a_deed_is_on_disk_before_anybody_hears_of_it_and_until_it_is_recorded(tmp_path: Path) -> None:
    """
    A process that was killed leaves it to the next one of its role; a command that comes again is the same deed.
    """
    directory, iam = tmp_path / "deeds", Iam()
    killed = Outbox(directory, "master")
    request = Control(id="1", action="off", daemons=["startd"])
    for _ in range(2):
        killed.acted(CONTROL, "n1", ADA, request)
    killed.acted(CANCEL_DRAIN, "n1", ADA, CancelDrain())
    killed.acted(CANCEL_DRAIN, "n1", ADA, CancelDrain())  # has no id: said twice is done twice
    assert 4 == len(kept(directory))
    assert 0o600 == next(directory.iterdir()).stat().st_mode & 0o777
    async with delivering(killed, iam):
        pass  # and with it its hold on the file ends
    async with delivering(Outbox(directory, "master"), iam):
        async with asyncio.timeout(PATIENCE_S):
            while not iam.asked:
                await asyncio.sleep(0.01)
        assert 4 == len(kept(directory))
        iam.here.set()
        await iam.has(4)
    assert [
        ("master.control", "n1", 'action="off", daemons=["startd"]'),
        ("master.control", "n1", 'action="off", daemons=["startd"]'),
        ("startd.cancel_drain", "n1", "as usual"),
        ("startd.cancel_drain", "n1", "as usual"),
    ] == [(each.action, each.where, each.sentence) for each in iam.recorded]
    assert 3 == len({each.id for each in iam.recorded})  # by which iam knows what comes again
    assert [] == kept(directory)


async def test_two_processes_of_a_role_have_a_file_each(tmp_path: Path) -> None:
    """One that stands by does not send what is the other's, as long as that one lives."""
    first, second, iam = Outbox(tmp_path, "schedd"), Outbox(tmp_path, "schedd"), Iam()
    first.note("ada", "schedd.act", "s1", "hold")
    second.note("eva", "schedd.act", "s2", "hold")
    iam.here.set()
    async with delivering(second, iam):
        await iam.has(1)
    assert ["eva"] == [each.who for each in iam.recorded]
    assert 1 == len(kept(tmp_path))
    async with delivering(first, Iam()):
        pass  # and it is gone
    async with delivering(second, iam):
        await iam.has(2)
    assert ["eva", "ada"] == [each.who for each in iam.recorded]
    assert [] == kept(tmp_path)


async def test_who_is_refused_again_and_again_is_counted(tmp_path: Path) -> None:
    """A flood of wrong commands writes little."""
    outbox, iam = Outbox(tmp_path, "startd"), Iam()
    for _ in range(1000):
        outbox.denied(CONTROL, "n1", worker("n2 ö"), RefusedError(RefusalCode.DENIED, "no\x1b[31m\nway"))
    assert len(kept(tmp_path)) < 30
    iam.here.set()
    async with delivering(outbox, iam):
        await iam.has(20)
    assert {("worker:n2??", "denied", "no [31m way")} == {
        (each.who, each.denied, each.sentence) for each in iam.recorded
    }


async def test_what_nobody_records_does_not_fill_the_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pool that has no iam keeps the newest, and its log has the others."""
    outbox, iam = Outbox(tmp_path, "startd"), Iam()
    with caplog.at_level(logging.ERROR):
        for number in range(MOST + 1):
            outbox.note("ada", "startd.drain", "n1", str(number))
    lines = kept(tmp_path)
    assert MOST - 200 < len(lines) <= MOST
    assert MOST + 1 - len(lines) == len(caplog.records)
    iam.here.set()
    iam.refuses = str(MOST - 1)  # one that cannot be recorded does not stop the others
    async with delivering(outbox, iam):
        await iam.has(len(lines) - 1)
    assert str(MOST) == iam.recorded[-1].sentence
    assert [] == kept(tmp_path)


@pytest.mark.parametrize("lives", [True, False], ids=["alive", "killed"])
async def test_a_full_disk_costs_nothing_but_the_safety_of_the_file(tmp_path: Path, *, lives: bool) -> None:
    """What could not be written is reported from memory; a line that was cut off spoils no other one."""
    (tmp_path / "startd-0.jsonl").write_bytes(b'{"id": "1", "at": 1.0, "wh')
    outbox, iam = Outbox(tmp_path, "startd"), Iam()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    outbox.note("ada", "startd.drain", "n1", "first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
    try:
        outbox.note("ada", "startd.drain", "n1", "second")
        outbox.note("ada", "startd.drain", "n1", "third")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    outbox.note("ada", "startd.drain", "n1", "x" * 2000)
    if not lives:
        async with delivering(outbox, iam):
            pass
        outbox = Outbox(tmp_path, "startd")
    iam.here.set()
    async with delivering(outbox, iam):
        await iam.has(4 if lives else 2)
    last = f"{'x' * 997}..."
    told = ["first", "second", "third", last] if lives else ["first", last]
    assert told == [each.sentence for each in iam.recorded]


async def test_nobody_is_told_that_a_deed_is_done_for_which_there_is_no_room(tmp_path: Path) -> None:
    """
    The answer says to ask again, which is the same deed: it is recorded once, also by a service that was killed meanwhile.
    """
    iam, request = Iam(), Control(id="1", action="off", daemons=["startd"])
    killed = Outbox(tmp_path, "master")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(
            RefusedError, match=r"done, and cannot be written down .*; it is to be asked for again"
        ):
            killed.acted(CONTROL, "n1", ADA, request)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    async with delivering(killed, iam):
        pass  # and with it its memory is gone
    outbox = Outbox(tmp_path, "master")
    outbox.acted(CONTROL, "n1", ADA, request)
    iam.here.set()
    async with delivering(outbox, iam):
        await iam.has(1)
    assert ["master.control"] == [each.action for each in iam.recorded]
    assert [] == kept(tmp_path)
