"""What a job, or its machine, says to the shadow: how much of it is believed, and what fails for it alone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.testing.patience import PATIENCE_S
from kettle_services.shadow.chirp.remote_files import FileWish, RemoteFiles
from kettle_services.shadow.chirp.requests import Chirping, Terms
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_wire.ads import Ad
from kettle_wire.commands.attempt_reports import Told
from kettle_wire.commands.chirp import Chirped, GetAttribute, Note, OnPath, SetAttribute, Trouble

pytestmark = pytest.mark.asyncio
TERMS = Terms(at_once=5, hourly=0)


class Record:
    """What is recorded; at once, unless it is `slow`."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.slow: asyncio.Future[None] | None = None

    def __call__(self, told: Told) -> asyncio.Future[None]:
        self.told.append(told)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return self.slow if self.slow is not None else done

    @property
    def ads(self) -> list[Ad]:
        return [each.attributes for each in self.told]


def access_below(directory: Path) -> Callable[[], Awaitable[FileAccess]]:
    """To everything but the pool's own directory, which lies there."""

    async def access() -> FileAccess:
        return FileAccess(directory / "home")

    return access


@pytest.fixture
def record() -> Record:
    return Record()


@pytest_asyncio.fixture
async def chirping(tmp_path: Path, record: Record) -> AsyncIterator[Chirping]:
    work = FileWork(2)
    ad: Ad = {"WantIOProxy": True, "Iwd": str(tmp_path), "ChirpStage": 1}
    chirping = Chirping(ad, access_below(tmp_path), TERMS, work, record)
    yield chirping
    chirping.close()
    work.close()


@pytest.mark.parametrize("by", ["site", "job", "both"])
async def test_files_are_used_below_some_directories_only(tmp_path: Path, record: Record, by: str) -> None:
    """The administrator and the submitter name them: by no path and no link elsewhere."""
    work = FileWork(2)
    for name in ("open", "too", "closed"):
        (tmp_path / name).mkdir()
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    ad: Ad = {"WantIOProxy": True, "Iwd": str(tmp_path)}
    if by != "site":
        ad["LimitDirectoryAccess"] = f"open, {tmp_path}/too"
    directories = () if by == "job" else ("open",) if by == "both" else ("open", str(tmp_path / "too"))
    terms = Terms(at_once=5, hourly=0, directories=directories)
    chirping = Chirping(ad, access_below(tmp_path), terms, work, record)
    try:
        for path, result in (
            ("open/new", 0), ("too/new", Trouble.NOT_AUTHORIZED if by == "both" else 0), ("new", Trouble.NOT_AUTHORIZED),
            ("open/link/new", Trouble.NOT_AUTHORIZED), ("open/../closed/new", Trouble.NOT_AUTHORIZED),
            (f"{tmp_path}/openly", Trouble.NOT_AUTHORIZED),
        ):  # fmt: skip
            assert Chirped(result) == await chirping.grant(OnPath("mkdir", [path], [0o700])), path
    finally:
        chirping.close()
        work.close()
    assert ["link", "new"] == sorted(path.name for path in (tmp_path / "open").iterdir())


async def test_a_machine_sets_only_what_may_be_set_without_hurry(chirping: Chirping, record: Record) -> None:
    """Whatever it reports: the names are the shadow's, not the machine's."""
    chirping.collect(
        {"WantIOProxy": "true", "TransferInput": '"/etc/passwd"', "Stage": "1", "ChirpDone": "0.5"}
    )
    await chirping.settled()

    assert [{"ChirpDone": 0.5}] == record.ads


async def test_what_is_set_without_hurry_has_an_allowance(chirping: Chirping, record: Record) -> None:
    """Beyond it only the newest value is kept, and recorded at the end of the run."""
    for stage in range(2, 50):
        chirping.collect({"ChirpStage": str(stage)})
        await chirping.settled()
    assert [{"ChirpStage": stage} for stage in (2, 3, 4, 5, 6)] == record.ads

    chirping.collect({}, last=True)
    await chirping.settled()
    assert {"ChirpStage": 49} == record.ads[-1]
    assert 6 == len(record.told)


async def test_what_waits_does_not_replace_what_was_said_later(tmp_path: Path, record: Record) -> None:
    """A value set at once is newer than one that waits for room."""
    work = FileWork(1)
    terms = Terms(at_once=2, hourly=0)
    ad: Ad = {"WantIOProxy": True, "Iwd": str(tmp_path)}
    chirping = Chirping(ad, access_below(tmp_path), terms, work, record)
    chirping.collect({"ChirpText": f'"{"x" * 1500}"'})
    assert [] == record.told

    await chirping.grant(SetAttribute("chirptext", "1"))
    chirping.collect({}, last=True)
    await chirping.settled()

    assert [{"ChirpText": 1}] == record.ads
    work.close()


async def test_one_job_has_few_wishes_in_hand(chirping: Chirping, record: Record) -> None:
    """A job that sends requests without waiting for answers is told to try again, until there is one."""
    record.slow = asyncio.get_running_loop().create_future()
    told = [asyncio.ensure_future(chirping.grant(Note("x"))) for _ in range(20)]
    await asyncio.sleep(0)
    try:
        assert Chirped(Trouble.TRY_AGAIN) == await chirping.grant(GetAttribute("ChirpStage"))
    finally:
        record.slow.set_result(None)
        await asyncio.gather(*told)
    assert Chirped(1, b"1") == await chirping.grant(GetAttribute("ChirpStage"))


async def test_a_wish_that_fails_fails_alone(chirping: Chirping, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody thought of is one answer, and the next wish is granted."""

    def fail(_files: RemoteFiles, _wish: FileWish) -> Chirped:
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFiles, "carry_out", fail)
        assert Chirped(Trouble.UNKNOWN) == await chirping.grant(OnPath("rmall", ["x"]))
    assert Chirped() == await chirping.grant(OnPath("mkdir", ["x"], [0o700]))


async def test_files_have_threads_of_their_own() -> None:
    """As many threads as can hang, hang, and other work still gets a thread."""
    work, gate = FileWork(1), threading.Event()
    hanging = [asyncio.ensure_future(work.do(gate.wait)) for _ in range(64)]
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert "done" == await asyncio.to_thread(lambda: "done")
        assert not any(each.done() for each in hanging)
    finally:
        gate.set()
        await asyncio.gather(*hanging)
        work.close()
