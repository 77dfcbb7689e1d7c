import asyncio
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.js import JetStreamContext

from kettle.embedded import AlreadySupervisedError, EmbeddedError, EmbeddedNats, Permissions
from kettle.testing.patience import PATIENCE_S

PERMISSIONS = {
    "schedd": Permissions(publish=("evt.>", "$JS.API.>", "cmd.>"), subscribe=("evt.>", "_INBOX.schedd.>")),
    "startd": Permissions(publish=("work.>", "_INBOX.>"), subscribe=("cmd.startd.>",)),
    "mute": Permissions(),
}


Errors = asyncio.Queue[str]


def server(directory: Path) -> EmbeddedNats:
    return EmbeddedNats(directory / "nats", credentials=directory / "credentials", permissions=PERMISSIONS)


@asynccontextmanager
async def client(server: EmbeddedNats, role: str, **options: Any) -> AsyncGenerator[tuple[Client, Errors]]:
    errors: Errors = asyncio.Queue()

    async def note(error: Exception) -> None:
        errors.put_nowait(str(error))

    connected = Client()
    try:
        await connected.connect(
            server.url,
            user_credentials=str(server.credentials(role)),
            inbox_prefix=f"_INBOX.{role}".encode(),
            error_cb=note,
            connect_timeout=int(PATIENCE_S),
            max_reconnect_attempts=-1,
            **options,
        )
        yield connected, errors
    finally:
        await connected.close()


def uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def tcp_listeners() -> list[str]:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A"]


async def heard(errors: Errors, number: int) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        return [await errors.get() for _ in range(number)]


async def refused(url: str, **options: Any) -> bool:
    async def quiet(_error: Exception) -> None:
        pass

    stranger = Client()
    try:
        await stranger.connect(
            url, connect_timeout=int(PATIENCE_S), allow_reconnect=False, error_cb=quiet, **options
        )
    except Error as error:
        return "Authorization Violation" in str(error)
    finally:
        await stranger.close()
    return False


async def test_role_can_do_what_it_may_and_nothing_else(directory: Path) -> None:
    """A role publishes and subscribes only where it is permitted."""
    async with server(directory) as running, client(running, "startd") as (startd, errors):
        await startd.publish("work.x", b"")
        await startd.flush()
        assert errors.empty()
        await startd.publish("evt.x", b"")
        await cast("Any", startd).subscribe("evt.>")
        await startd.flush()
        assert ["permissions violation for publish", "permissions violation for subscription"] == [
            error.removeprefix("nats: ").rpartition(" to ")[0] for error in await heard(errors, 2)
        ]


async def test_empty_permissions_permit_nothing(directory: Path) -> None:
    """A role with no subjects has none, although the server takes an empty list for all of them."""
    async with server(directory) as running, client(running, "mute") as (mute, errors):
        await mute.publish("any", b"")
        await cast("Any", mute).subscribe("any")
        await mute.flush()
        assert len(await heard(errors, 2)) == 2


async def test_request_is_answered_within_permissions(directory: Path) -> None:
    """A role that may publish where answers are awaited answers on the asker's private inbox."""

    async def answer(message: Msg) -> None:
        await message.respond(b"claimed")

    async with (
        server(directory) as running,
        client(running, "startd") as (startd, _),
        client(running, "schedd") as (schedd, _),
    ):
        await cast("Any", startd).subscribe("cmd.startd.>", cb=answer)
        for _ in range(2):  # the client's flush overtakes what still waits to be written when it is called
            await startd.flush()
        assert b"claimed" == (await schedd.request("cmd.startd.claim", b"", timeout=PATIENCE_S)).data
        with pytest.raises(NoRespondersError):
            await schedd.request("cmd.other", b"", timeout=PATIENCE_S)


async def test_stranger_is_refused(directory: Path) -> None:
    """Without a key that the server knows there is no connection."""
    async with server(directory) as running:
        assert await refused(running.url)
        other = EmbeddedNats(directory / "other", credentials=directory / "c2", permissions=PERMISSIONS)
        async with other:
            assert running.url != other.url
            assert await refused(running.url, user_credentials=str(other.credentials("schedd")))


async def test_killed_server_comes_back_to_its_clients(directory: Path) -> None:
    """
    After SIGKILL a start has the same port, clients reconnect by themselves, and acknowledged messages are there.
    """
    back = asyncio.Event()

    async def reconnected() -> None:
        back.set()

    async with (
        server(directory) as running,
        client(running, "schedd", reconnected_cb=reconnected, reconnect_time_wait=0.01) as (schedd, _),
    ):
        stream = JetStreamContext(schedd, timeout=PATIENCE_S)
        await cast("Any", stream).add_stream(name="evt", subjects=["evt.>"])
        await stream.publish("evt.a", b"1")
        os.kill(running.pid, signal.SIGKILL)
        assert -signal.SIGKILL == await running.wait()
        await running.start()
        async with asyncio.timeout(PATIENCE_S):
            await back.wait()
        assert (await stream.stream_info("evt")).state.messages == 1


async def test_store_may_vanish(directory: Path) -> None:
    """When JetStream's directory is deleted while it runs, a restart comes up empty and works."""
    async with server(directory) as running:
        async with client(running, "schedd") as (schedd, _):
            await cast("Any", JetStreamContext(schedd, timeout=PATIENCE_S)).add_stream(
                name="evt", subjects=["evt.>"]
            )
        shutil.rmtree(running.store)
        os.kill(running.pid, signal.SIGKILL)
        await running.wait()
        await running.start()
        async with client(running, "schedd") as (schedd, _):
            stream = JetStreamContext(schedd, timeout=PATIENCE_S)
            assert (await stream.account_info()).streams == 0
            await cast("Any", stream).add_stream(name="evt", subjects=["evt.>"])
            assert (await stream.publish("evt.a", b"1")).seq == 1


async def test_port_and_keys_are_kept(directory: Path) -> None:
    """A later run of the same directory has the same address and the same keys."""
    async with server(directory) as running:
        before = (running.url, running.credentials("schedd").read_text())
    async with server(directory) as running:
        assert before == (running.url, running.credentials("schedd").read_text())


async def test_nobody_else_can_reach_it(directory: Path) -> None:
    """It listens on the loopback interface only, its files are private, and it is not root."""
    async with server(directory) as running:
        assert 0 != uid(running.pid)
        port = int(running.url.rpartition(":")[2])
        listening = tcp_listeners()
        assert [f"0100007F:{port:04X}"] == [each for each in listening if each.endswith(f":{port:04X}")]
        secrets = (path for path in (directory / "credentials").rglob("*") if path.is_file())
        assert {0o600} == {path.stat().st_mode & 0o777 for path in secrets}
        assert {0o700} == {
            path.stat().st_mode & 0o777
            for path in (directory / "credentials", directory / "nats", running.store)
        }
        assert (directory / "nats/data/nats.conf").stat().st_mode & 0o777 == 0o600


async def test_second_supervisor_is_refused_and_an_orphan_ended(directory: Path) -> None:
    """There is one supervisor, and never two servers."""
    async with server(directory) as running:
        with pytest.raises(AlreadySupervisedError):
            await server(directory).start()
        cast("Any", running)._lock.release()  # as if its supervisor had died and the server had not
        async with server(directory) as heir:
            assert not running.running or await running.wait() >= 0
            assert heir.url == running.url


async def test_bad_seed_is_named(directory: Path) -> None:
    """A credentials file that holds no seed is refused by name."""
    seeds = directory / "credentials" / "trust"
    seeds.mkdir(mode=0o700, parents=True)
    (seeds / "user-schedd.nk").write_text("nonsense\n")
    with pytest.raises(EmbeddedError, match=r"user-schedd\.nk: this is no NKey seed"):
        await server(directory).start()
