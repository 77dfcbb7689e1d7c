"""Real accounts of this machine, all in one group besides their own, and a pool of root that they may use."""

import asyncio
import grp
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from kettle.client import Client, PoolUnreachableError
from kettle.pool.home import open_home
from kettle.pool.personal_settings import write_settings
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, merged

WITHIN_S = 240.0


class Person(msgspec.Struct, frozen=True):
    """Somebody with an account here, and a directory that nobody else can enter."""

    name: str
    uid: int
    gid: int
    work: Path
    more_groups: tuple[int, ...] = ()
    """The groups that the account is in besides its own."""

    def write(self, name: str, text: str, mode: int = 0o600) -> Path:
        """A file of this person's."""
        path = self.work / name
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.uid, self.gid)
        return path


@contextmanager
def people(count: int) -> Generator[list[Person]]:
    """So many real accounts, which are removed again."""
    if os.geteuid() != 0 or shutil.which("newusers") is None:
        pytest.skip("only root can make accounts")
    prefix = f"kt{secrets.token_hex(3)}"
    place = Path(tempfile.mkdtemp(prefix="kettle-people-"))
    place.chmod(0o755)
    names = [f"{prefix}{number:02d}" for number in range(count)]
    lines = [f"{name}:{secrets.token_hex(8)}::::{place / name}:/bin/sh\n" for name in names]
    try:
        subprocess.run(["newusers"], input="".join(lines), text=True, check=True, timeout=WITHIN_S)
        group = _group_of(names, prefix)
        made = [pwd.getpwnam(name) for name in names]
        for entry in made:
            Path(entry.pw_dir).chmod(0o700)
        yield [
            Person(entry.pw_name, entry.pw_uid, entry.pw_gid, Path(entry.pw_dir), (group,)) for entry in made
        ]
    finally:
        for name in names:
            subprocess.run(["userdel", name], capture_output=True, check=False, timeout=WITHIN_S)
        subprocess.run(["groupdel", prefix], capture_output=True, check=False, timeout=WITHIN_S)
        shutil.rmtree(place)


def _group_of(names: Sequence[str], name: str) -> int:
    """The number of a new group with these members."""
    for command in (["groupadd", name], ["gpasswd", "-M", ",".join(names), name]):
        subprocess.run(command, capture_output=True, check=True, timeout=WITHIN_S)
    return grp.getgrnam(name).gr_gid


@asynccontextmanager
async def admitted(pool: ThrowawayPool, persons: Sequence[Person]) -> AsyncGenerator[Path]:
    """
    The directory in which these accounts find how to reach the pool, while they may: its master reads its settings again
    for that.
    """
    if not selection.servers_are_ours():
        pytest.skip("who may connect to servers of somebody else is theirs to say")
    directory = persons[0].work.parent / "pool"
    home = open_home(pool.home)
    before = home.settings.read_bytes()
    accounts = {"accounts": [person.name for person in persons], "accounts_directory": str(directory)}
    home.settings.unlink()
    write_settings(home, merged(pool.settings, {"master": accounts}))
    try:
        await pool.client.hosts.control("reconfig", daemons=["master"])
        assert {person.name for person in persons} <= {path.name for path in directory.iterdir()}
        yield directory
    finally:
        home.settings.write_bytes(before)
        await pool.client.hosts.control("reconfig", daemons=["master"])


@asynccontextmanager
async def client_of(person: Person, directory: Path) -> AsyncGenerator[Client]:
    """A connection with the key of an account; the server may be reading its configuration still."""
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(WITHIN_S):
            client = await _connected(stack, directory / person.name)
        yield client


async def _connected(stack: AsyncExitStack, home: Path) -> Client:
    while True:
        with suppress(PoolUnreachableError):
            return await stack.enter_async_context(Client.connect(home=home))
        await asyncio.sleep(0.05)
