import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.runtime import Notification, Notifier, NotifyListener, Runtime, Settings
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import temporary


@pytest.fixture
def directory() -> Generator[Path]:
    with temporary() as path:
        yield path


async def first(listener: NotifyListener, number: int) -> list[Notification]:
    found: list[Notification] = []
    async with asyncio.timeout(PATIENCE_S):
        async for each in listener:
            found.append(each)
            if len(found) == number:
                return found
    raise AssertionError


async def test_listener_learns_who_spoke(directory: Path) -> None:
    """The supervisor is told the process id by the kernel, not by the message."""
    with NotifyListener(directory / "notify") as listener:
        notifier = Notifier.from_environ(listener.environ())
        notifier.send("READY=1", "MAINPID=1", "nonsense")
        notifier.close()
        assert [Notification(os.getpid(), os.getuid(), {"READY": "1", "MAINPID": "1"})] == await first(
            listener, 1
        )


async def test_service_reports_its_life(directory: Path) -> None:
    """A service says that it is ready, that it lives, and that it drains."""
    with NotifyListener(directory / "notify") as listener:
        notifier = Notifier.from_environ(listener.environ(watchdog_s=0.03))

        lives = asyncio.Event()

        async def serve(rt: Runtime, _settings: Settings) -> None:
            rt.ready()
            await lives.wait()
            rt.stop()

        said: list[str] = []

        async def hear() -> None:
            while "LAST" not in said:
                said.extend(name for each in await first(listener, 1) for name in each.state)
                if said.count("WATCHDOG") == 3:
                    lives.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hear())
            await Runtime("schedd", notifier=notifier).host(Settings(), serve)
            notifier.send("LAST=1")
            notifier.close()
    assert [name for name in said if name != "WATCHDOG"] == ["READY", "STATUS", "STOPPING", "LAST"]


async def test_nobody_listens() -> None:
    """A service without a supervisor, or with one that has gone, does not care."""
    assert Notifier().send("READY=1") is False
    gone = Notifier("/nonexistent/notify")
    assert gone.send("READY=1") is False
    gone.close()


def test_watchdog_is_for_the_process_that_is_meant() -> None:
    """A period that was set for another process is not ours."""
    assert Notifier.from_environ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).watchdog_s == 0
    assert (
        Notifier.from_environ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 3
    )


async def test_socket_is_removed(directory: Path) -> None:
    """The listener leaves nothing behind, and replaces what a killed one left."""
    path = directory / "notify"
    path.touch()
    with NotifyListener(path):
        assert path.is_socket()
    assert not path.exists()
