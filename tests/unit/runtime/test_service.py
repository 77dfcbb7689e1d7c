import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from kettle.runtime import Notifier, Runtime, Settings, SettingsError, leaves
from kettle.testing.patience import PATIENCE_S

SETTINGS = Settings()


@asynccontextmanager
async def noted(name: str, journal: list[str]) -> AsyncGenerator[str]:
    journal.append(f"open {name}")
    try:
        yield name
    finally:
        journal.append(f"close {name}")


async def test_resources_close_in_reverse_after_the_loops() -> None:
    """A loop can use every resource until it has ended; then they close, the last one first."""
    journal: list[str] = []

    async def loop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            journal.append("loop ended")

    async def serve(rt: Runtime, _settings: Settings) -> None:
        await rt.enter(noted("a", journal))
        await rt.enter(noted("b", journal))
        rt.loop(loop(), name="loop")
        await asyncio.sleep(0)
        rt.stop()
        await rt.stopping.wait()

    await Runtime("schedd").host(SETTINGS, serve)
    assert journal == ["open a", "open b", "loop ended", "close b", "close a"]


async def test_failing_loop_stops_the_service() -> None:
    """A failure in a loop ends serve and reaches the caller."""
    journal: list[str] = []

    async def fail() -> None:
        raise RuntimeError("boom")

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.loop(fail(), name="fail")
        try:
            await asyncio.Event().wait()
        finally:
            journal.append("serve ended")

    with pytest.raises(BaseExceptionGroup) as failure:
        await Runtime("schedd").host(SETTINGS, serve)
    assert ["boom"] == [str(leaf) for leaf in leaves(failure.value)]
    assert journal == ["serve ended"]


async def test_service_lives_as_long_as_its_loops() -> None:
    """When serve returns after setting up, the loops go on until they end or the service is stopped."""
    journal: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.01)
        journal.append("worked")

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.loop(work(), name="work")

    await Runtime("schedd").host(SETTINGS, serve)
    assert journal == ["worked"]


async def test_draining_lets_serve_finish_what_it_began() -> None:
    """After the first stop, serve still has time, and its loops still turn."""
    journal: list[str] = []
    queue: asyncio.Queue[str] = asyncio.Queue(1)

    async def write() -> None:
        while True:
            journal.append(await queue.get())
            queue.task_done()

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.loop(write(), name="write")
        rt.stop()
        await rt.stopping.wait()
        await queue.put("last words")
        await queue.join()

    await Runtime("schedd").host(SETTINGS, serve)
    assert journal == ["last words"]


async def test_drain_has_a_deadline() -> None:
    """A serve that does not return in time is cancelled."""

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.stop()
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        await Runtime("schedd", drain=0.01).host(SETTINGS, serve)


async def test_second_stop_does_not_wait() -> None:
    """Asked twice, the service ends at once."""

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.stop()
        rt.stop()
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        await Runtime("schedd", drain=3600).host(SETTINGS, serve)


async def test_cancelled_host_closes_everything() -> None:
    """Cancellation from outside is passed on, not swallowed, and leaves nothing open."""
    journal: list[str] = []
    opened = asyncio.Event()

    async def serve(rt: Runtime, _settings: Settings) -> None:
        await rt.enter(noted("a", journal))
        opened.set()
        await asyncio.Event().wait()

    hosting = asyncio.create_task(Runtime("schedd").host(SETTINGS, serve))
    await opened.wait()
    hosting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hosting
    assert journal == ["open a", "close a"]


def test_leaves_of_nested_groups() -> None:
    """Every failure is found once, in order."""
    a, b, c = ValueError("a"), KeyError("b"), OSError("c")
    assert [a, b, c] == leaves(ExceptionGroup("", [a, ExceptionGroup("", [b, c])]))


async def test_a_peaceful_stop_has_no_deadline_until_it_is_hurried() -> None:
    """A service that stops peacefully waits as long as it wants; the next stop gives it the drain time."""
    rt = Runtime("startd", drain=0.01)
    journal: list[str] = []

    async def serve(rt: Runtime, _settings: Settings) -> None:
        rt.stop("peaceful")
        await rt.stopping.wait()
        await asyncio.sleep(0.05)
        journal.append(rt.how)
        rt.stop("graceful")
        await rt.hurried.wait()
        journal.append(rt.how)
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        await rt.host(SETTINGS, serve)
    assert ["peaceful", "graceful"] == journal


async def test_a_third_stop_ends_a_peaceful_one_at_once() -> None:
    """Peaceful, then graceful, then at once."""
    rt = Runtime("startd", drain=1000.0)

    async def serve(rt: Runtime, _settings: Settings) -> None:
        for how in ("peaceful", "graceful", "fast"):
            rt.stop(how)
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        await rt.host(SETTINGS, serve)


class Supervisor:
    """Hears what a service says of itself."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.notifier = Notifier(str(path))

    def said(self) -> str:
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self.notifier.close()
        self._socket.close()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with closing(Supervisor(tmp_path / "notify")) as supervisor:
        yield supervisor


async def test_changed_settings_end_a_supervised_service_without_draining(supervisor: Supervisor) -> None:
    """It ends as in a crash, so what it does goes on elsewhere, and says that it is to be started again."""
    rt = Runtime("startd", notifier=supervisor.notifier)
    journal: list[str] = []

    async def serve(rt: Runtime, settings: Settings) -> None:
        rt.reconfigure(lambda: Settings(pool="another"), settings)
        await rt.stopping.wait()
        journal.append("drains")

    async with asyncio.timeout(PATIENCE_S):
        await rt.host(SETTINGS, serve)
    assert rt.renewed
    assert [] == journal
    assert supervisor.said() == "X_KETTLE_SETTINGS=changed"


async def test_the_same_settings_change_nothing(supervisor: Supervisor) -> None:
    """A service whose settings are as they were goes on."""
    rt = Runtime("startd", notifier=supervisor.notifier)
    rt.reconfigure(Settings, SETTINGS)
    assert not rt.renewed
    assert supervisor.said() == "X_KETTLE_SETTINGS=unchanged"


async def test_settings_that_cannot_be_used_change_nothing(supervisor: Supervisor) -> None:
    """The service goes on with those that it has, and says why."""

    def load() -> Settings:
        raise SettingsError("kettle.toml: [startd] nmu_cpus: unknown setting")

    rt = Runtime("startd", notifier=supervisor.notifier)
    rt.reconfigure(load, SETTINGS)
    assert not rt.renewed
    assert supervisor.said() == ("X_KETTLE_SETTINGS=refused: kettle.toml: [startd] nmu_cpus: unknown setting")


async def test_files_that_settings_name_are_read_again(supervisor: Supervisor) -> None:
    """Also if the settings are as they were; what cannot be used in them is said like a setting."""
    rt = Runtime("gateway", notifier=supervisor.notifier)
    read: list[str] = []
    rt.on_reread(lambda: read.append("read"))
    rt.reconfigure(Settings, SETTINGS)
    assert ["read"] == read
    assert supervisor.said() == "X_KETTLE_SETTINGS=unchanged"

    def fails() -> None:
        raise SettingsError("the certificate stays as it was")

    rt.on_reread(fails)
    rt.reconfigure(Settings, SETTINGS)
    assert supervisor.said() == "X_KETTLE_SETTINGS=refused: the certificate stays as it was"


async def test_nobody_ends_where_nobody_would_start_it_again() -> None:
    """A service without a supervisor goes on with the settings that it has."""
    rt = Runtime("startd")
    rt.reconfigure(lambda: Settings(pool="another"), SETTINGS)
    assert not rt.renewed
