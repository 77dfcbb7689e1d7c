"""
A PostgreSQL server and a standby that follows it, in step: what a site runs so that the loss of one loses nothing.

    async with PostgresPair(directory) as pair:
        await pair.fail_over()

Their address names both; a client goes to the one that takes writes.
"""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from kettle.embedded import EmbeddedPostgres
from kettle.embedded.binaries import postgres_bin
from kettle.embedded.server_account import POSTGRES_UID, server_account
from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S

_PRIMARY: Final = "127.0.0.77"
"""Where the standby finds the primary: an address of the loopback interface of its own, for the port is always the same."""
_LOOK_S: Final = 0.02
_STANDBY: Final = "standby"


class PostgresPair:
    """The primary commits when the standby has what is committed on its disk."""

    def __init__(self, directory: Path) -> None:
        self.primary = EmbeddedPostgres(
            directory / "primary", settings={"listen_addresses": _PRIMARY, "hot_standby": "on"}
        )
        self.standby = EmbeddedPostgres(directory / _STANDBY, settings={"hot_standby": "on"})
        self._stack = AsyncExitStack()

    @property
    def dsn(self) -> str:
        """The address of both."""
        hosts = ",".join(quote(str(self._socket(each)), safe="") for each in (self.primary, self.standby))
        passfile = quote(str(self.primary.directory / "passfile"), safe="")
        return f"postgresql://kettle@/kettle?host={hosts}&port=5432,5432&passfile={passfile}&target_session_attrs=read-write"

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.primary)
        await self._follow()
        await self._stack.enter_async_context(self.standby)
        connection = await self.primary.connect()
        try:
            await connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await connection.execute("SELECT pg_reload_conf()")
            deadline = Deadline(PATIENCE_S)
            asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            while not await connection.fetchval(asked):
                assert not deadline.passed, "the standby does not follow"
                await asyncio.sleep(_LOOK_S)
        finally:
            await connection.close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def fail_over(self) -> None:
        """Kill the primary, and have the standby take its place; returns when it takes writes."""
        data = self.primary.directory / "data"
        number = int((data / "postmaster.pid").read_text().split()[0])
        await asyncio.create_subprocess_exec("kill", f"-{int(SIGKILL)}", str(number))
        await self.primary.wait()
        await self.primary.stop()
        connection = await self.standby.connect()
        try:
            assert await connection.fetchval("SELECT pg_promote(true, 60)")
        finally:
            await connection.close()

    def _socket(self, server: EmbeddedPostgres) -> Path:
        link = server.directory / "socket"
        return link.readlink() if link.is_symlink() else link

    async def _follow(self) -> None:
        """Make the standby's data from the primary's."""
        account = server_account(POSTGRES_UID)
        data, passfile = self.primary.directory / "data", self.primary.directory / "passfile"
        rules = data / "pg_hba.conf"
        # The first rule that fits counts.
        rules.write_text(f"host replication all 127.0.0.0/8 scram-sha-256\n{rules.read_text()}")
        account.own(rules)
        connection = await self.primary.connect()
        try:
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()
        self.standby.directory.mkdir(mode=0o700, exist_ok=True)
        target = self.standby.directory / "data"
        process = await asyncio.create_subprocess_exec(
            str(postgres_bin() / "pg_basebackup"),
            "--pgdata", str(target), "--checkpoint=fast", "--write-recovery-conf", "--no-password",
            env={
                "PGHOST": _PRIMARY,
                "PGUSER": "kettle",
                "PGPASSWORD": passfile.read_text(encoding="utf-8").strip().rpartition(":")[2],
                "PGAPPNAME": _STANDBY,
                "PATH": "/usr/bin:/bin",
            },
        )  # fmt: skip
        assert await process.wait() == 0, "pg_basebackup"
        shutil.copyfile(passfile, self.standby.directory / "passfile")
        (self.standby.directory / "passfile").chmod(0o600)
        account.own(target)
