"""Results that stay on the machine that made them: who finds them there, and when they go."""

import asyncio
import hashlib
import mmap
import os
from pathlib import Path
from typing import Any, cast

from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.kept_outputs import KeptOutputs, advertised
from kettle.execution.sandbox.kept_results import keep
from kettle_wire.commands.startd import Activation, ClaimKey, InputFile
from kettle_wire.jobs import JobId

DATA, OTHER = b"events of a detector", b"of another detector!"
LIMIT, LIFETIME = 64, 600.0
MAKER = JobId(12, 0)
HERE = "ap#12"


class Access:
    """In place of a shadow: what is fetched from it is counted."""

    def __init__(self, *contents: bytes) -> None:
        self._contents = {hashlib.sha256(each).hexdigest(): each for each in contents}
        self.fetched: list[str] = []
        self.bytes = self.stored_bytes = 0

    async def fetch(self, _activation: Activation, file: InputFile, fd: int) -> None:
        self.fetched.append(file.name)
        os.write(fd, self._contents[file.sha256])


class Machine:
    """One, with the sandbox of a job that has ended."""

    def __init__(self, place: Path, *, limit: int = LIMIT) -> None:
        place.mkdir(exist_ok=True)
        self.sandbox = place / "dir_1"
        self.sandbox.mkdir()
        self.access, self.now, self.said = Access(DATA, OTHER), 0.0, ""
        self.cache = InputCache(place / "cache", cast("Any", self.access), limit_bytes=1 << 20)
        self.cache.restore()
        self.kept = KeptOutputs(
            self.cache, limit_bytes=limit, lifetime=LIFETIME, changed=self._say, clock=lambda: self.now
        )

    def _say(self, said: str) -> None:
        self.said = said

    async def keep(self, **contents: bytes) -> None:
        """The job has left these."""
        for name, data in contents.items():
            (self.sandbox / name).write_bytes(data)
        await self.ended([*contents])

    async def ended(self, names: list[str]) -> None:
        """The job has ended, and its results have arrived."""
        self.kept.expect("ap", MAKER)
        assert HERE in self.said.split(",")
        await self.kept.keep("ap", MAKER, self.sandbox, names)

    async def run(self, data: bytes, *, name: str = "in", owner: str = "ada") -> bytes:
        """What a job of somebody reads whose shadow has announced a file with these contents."""
        file = InputFile(name=name, mode=0o644, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        activation = Activation(
            key=ClaimKey("c", "s"),
            job=JobId(13, 0),
            attempt=1,
            ad={"Owner": owner},
            inputs=[file],
            shadow="ap",
        )
        async with self.cache.gathered(activation) as (gathered,):
            return Path(gathered.path).read_bytes()


async def test_the_next_job_finds_what_was_kept(tmp_path: Path) -> None:
    """
    Under whatever name; the machine says so, and nothing comes from the access point. What is read is nobody's else to change.
    """
    machine = Machine(tmp_path)
    await machine.keep(out=DATA)
    assert DATA == await machine.run(DATA)
    assert [] == machine.access.fetched
    assert {"KeptOutputsOf": HERE} == advertised(machine.said)
    (place,) = (each for each in (tmp_path / "cache").iterdir())
    assert (os.geteuid(), 0o600) == (place.stat().st_uid, place.stat().st_mode & 0o777)


async def test_other_contents_and_other_machines_have_them_fetched(tmp_path: Path) -> None:
    """As if nothing were kept; a machine that keeps nothing says nothing."""
    machine, other = Machine(tmp_path), Machine(tmp_path / "other")
    await machine.keep(out=DATA)
    assert OTHER == await machine.run(OTHER)
    assert DATA == await other.run(DATA)
    assert (["in"], ["in"]) == (machine.access.fetched, other.access.fetched)
    assert {} == advertised(other.said)


async def test_nobody_gets_by_a_name_what_is_not_theirs(tmp_path: Path) -> None:
    """
    What a job gets is what its own access point announced, whatever results are there and however they are called.
    """
    machine = Machine(tmp_path)
    await machine.keep(out=DATA)
    assert OTHER == await machine.run(OTHER, name="out", owner="eve")
    assert ["out"] == machine.access.fetched


async def test_it_goes_when_its_time_is_over(tmp_path: Path) -> None:
    """The machine does not say it any longer, and its disk is free."""
    machine = Machine(tmp_path)
    await machine.keep(out=DATA)
    machine.now = LIFETIME - 1
    machine.kept.expire()
    assert HERE == machine.said
    machine.now = LIFETIME
    machine.kept.expire()
    assert ("", []) == (machine.said, [*(tmp_path / "cache").iterdir()])
    assert DATA == await machine.run(DATA)
    assert ["in"] == machine.access.fetched


async def test_the_oldest_go_for_want_of_room(tmp_path: Path) -> None:
    """And what has no room at all is not kept."""
    machine = Machine(tmp_path, limit=len(DATA) + 1)
    await machine.keep(out=DATA, second=OTHER, large=DATA * 2)
    assert OTHER == await machine.run(OTHER)
    assert [] == machine.access.fetched
    await machine.run(DATA)
    assert ["in"] == machine.access.fetched
    assert DATA * 2 == (machine.sandbox / "large").read_bytes()


async def test_what_leads_elsewhere_is_not_kept(tmp_path: Path) -> None:
    """A job may have made links of its results, also to files that are not its own."""
    machine = Machine(tmp_path)
    (tmp_path / "private").write_bytes(DATA)
    (machine.sandbox / "link").symlink_to(tmp_path / "private")
    (machine.sandbox / "same").hardlink_to(tmp_path / "private")
    (machine.sandbox / "away").symlink_to(tmp_path)
    os.mkfifo(machine.sandbox / "pipe")
    await machine.ended(["link", "same", "away/private", "pipe", "missing"])
    assert ("", []) == (machine.said, [*(tmp_path / "cache").iterdir()])
    assert DATA == (tmp_path / "private").read_bytes()


async def test_the_copy_of_a_result_is_kept(tmp_path: Path) -> None:
    """What comes back under a name that is a directory's in the sandbox is found by that name here too."""
    machine = Machine(tmp_path)
    (machine.sandbox / "out").mkdir()
    (machine.sandbox / "out/out").write_bytes(DATA)
    with (machine.sandbox / "out/out").open("rb") as file:
        keep(str(machine.sandbox), file.name, "out", file.fileno())
    await machine.ended(["out"])
    assert DATA == await machine.run(DATA)
    assert [] == machine.access.fetched


async def test_who_comes_meanwhile_waits_for_what_is_being_kept(tmp_path: Path) -> None:
    """A job that wants a file of this size does not fetch it."""
    machine = Machine(tmp_path)
    (machine.sandbox / "out").write_bytes(DATA)
    async with asyncio.TaskGroup() as tasks:
        with machine.cache.awaited(len(DATA)):
            running = tasks.create_task(machine.run(DATA))
            await asyncio.sleep(0)
            await machine.ended(["out"])
            assert not running.done()
    assert (DATA, []) == (running.result(), machine.access.fetched)


async def test_a_restart_keeps_them_as_inputs(tmp_path: Path) -> None:
    """They count as input files then, which go for want of room."""
    machine = Machine(tmp_path)
    await machine.keep(out=DATA)
    again = InputCache(tmp_path / "cache", cast("Any", machine.access), limit_bytes=1 << 20)
    again.restore()
    machine.cache = again
    assert DATA == await machine.run(DATA)
    assert [] == machine.access.fetched


async def test_what_is_kept_is_beyond_the_reach_of_who_made_it(tmp_path: Path) -> None:
    """
    A process of the job's account may have its file as memory: what it writes there leaves no trace in the file's times.
    """
    machine = Machine(tmp_path)
    (machine.sandbox / "out").write_bytes(DATA)
    with (machine.sandbox / "out").open("r+b") as file, mmap.mmap(file.fileno(), len(DATA)) as memory:
        memory[:] = memory[:]
        await machine.ended(["out"])
        memory[:] = OTHER
        assert DATA == await machine.run(DATA)
    assert [] == machine.access.fetched
