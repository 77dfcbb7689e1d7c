"""The commands of people and administrators, as they are typed."""

import asyncio
import os
import sys
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.client.connections.pool_file import login_name

from .conftest import Office

RUN = "from kettle_services.cli.entry import command; command()"


class Kettle:
    """The program `kettle` on a machine where the pool's bus is known."""

    def __init__(self, office: Office, home: Path) -> None:
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")},
            "KETTLE_NATS_URL": office.settings.nats_url,
            "KETTLE_NATS_CREDENTIALS": office.settings.nats_credentials,
            "KETTLE_POOL": office.settings.pool,
            "KETTLE_HOME": str(home),
        }

    async def __call__(self, *words: str, status: int = 0) -> str:
        """What it says: its results, or its complaint if it fails."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            RUN,
            *words,
            env=self._environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert status == process.returncode, (out + err).decode()
        return (err if status else out).decode()

    async def on_terminal(self, *words: str) -> str:
        """What it shows on a terminal of 60 columns."""
        ours, its = os.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", RUN, *words,
                env={**self._environ, "COLUMNS": "60"}, stdin=asyncio.subprocess.DEVNULL, stdout=its,
            )  # fmt: skip
            os.close(its)
            shown = await asyncio.to_thread(_all_of, screen)
            assert 0 == await process.wait(), shown
        return shown

    async def lines(self, *words: str) -> list[Any]:
        return [msgspec.json.decode(line) for line in (await self(*words)).splitlines()]


def _all_of(screen: FileIO) -> str:
    """What is written until nobody has the terminal open any more, which Linux tells as an error."""
    shown = b""
    try:
        while part := screen.read(65536):
            shown += part
    except OSError:
        pass
    return shown.decode()


@pytest.fixture
def kettle(office: Office, tmp_path: Path) -> Kettle:
    return Kettle(office, tmp_path / "person")


async def test_a_machine_is_let_in_and_leaves(kettle: Kettle, office: Office, tmp_path: Path) -> None:
    """
    A token is made, shown without its secret, used on the machine, and the audit has all of it as lines of
    JSON.
    """
    token = (await kettle("worker", "token", "create", "--owner", "ada", "--lifetime", "5m")).strip()
    shown = await kettle("worker", "token", "list")
    assert token.split(".")[1] in shown
    assert token.split(".")[2] not in shown
    (tmp_path / "token").write_text(token)
    machine = str(tmp_path / "machine")
    said = await kettle(
        "worker",
        "join",
        office.url,
        "--token-file",
        str(tmp_path / "token"),
        "--name",
        "n1",
        "--home",
        machine,
    )
    assert f"This machine is n1, a machine of the pool {office.settings.pool}.\n" == said
    again = await kettle(
        "worker", "join", office.url, "--token", token, "--name", "n2", "--home", f"{machine}2", status=1
    )
    assert "was used by another machine" in again
    assert "n1" in await kettle("worker", "list")
    await kettle("worker", "leave", "n1", "--now")
    audited = await kettle.lines("audit", "--since", "1h")
    assert ["jointoken.created", "jointoken.used", "worker.joined", "jointoken.misused", "worker.left"] == [
        each["what"] for each in audited
    ]
    [alarm] = await kettle.lines("audit", "--alarms")
    assert ("n2", "127.0.0.1") == (alarm["who"], alarm["address"])
    assert token.split(".")[2] not in str(audited)


async def test_people_see_what_they_may(kettle: Kettle) -> None:
    """With the rule that gives it; what is refused is a failure of the command."""
    assert "ADMINISTRATOR  [iam] administrators" in await kettle("whoami")
    assert "iam.set_ban: allowed; it takes ADMINISTRATOR: [iam] administrators" in await kettle(
        "whoami", "--may", "iam.set_ban"
    )
    assert "no command iam.set_bann; did you mean set_ban?" in await kettle(
        "whoami", "--may", "iam.set_bann", status=1
    )
    await kettle("ban", login_name(), "--reason", "test", "--for", "1h")
    assert f"user:{login_name()}" in await kettle("ban")
    assert "is banned by" in await kettle("token", "create", status=1)
    await kettle("unban", login_name())
    assert "no login name" not in await kettle("ban", "robot:x", status=2)


async def test_tokens_are_made_shown_and_ended(kettle: Kettle, office: Office) -> None:
    """An access token works at once; a refresh token is listed without its secret."""
    access = (await kettle("token", "create", "--scope", "condor:/READ", "--lifetime", "5m")).strip()
    assert 200 == (await office.get("/v1/whoami", access))[0]
    refresh = (await kettle("token", "create", "--refresh", "--note", "laptop")).strip()
    session, secret = refresh.split(".")[1:]
    shown = await kettle("token", "list")
    assert "laptop" in shown
    assert session in shown
    assert secret not in shown
    await kettle("token", "revoke", session)
    assert "laptop" not in await kettle("token", "list")
    robot = (await kettle("token", "client", "create", "robot", "--owner", "ada")).strip()
    assert robot not in await kettle("token", "client", "list")
    await kettle("token", "client", "remove", "robot")
    assert "nobody is signed in" in await kettle("logout", "--issuer", office.url, status=1)
    assert "has no sign-in by a code" in await kettle("login", "--issuer", office.url, status=1)
    assert "have an administrator make you a token" in await kettle("login", "--pool", office.url, status=1)


async def test_a_terminal_gets_whole_sentences_of_the_audit(kettle: Kettle) -> None:
    """However narrow it is: the end of a sentence is what one asked for."""
    reason = "mines coins, and has said so to several people of the group"
    await kettle("ban", "eve", "--reason", reason)
    assert reason in await kettle.on_terminal("audit", "--what", "ban")
