"""
A PostgreSQL data directory and what belongs to it: how it is made, where its socket and its password are.

    directory/            private to the account that starts the server
        lock              held by the supervisor
        data/             the server's; appears complete or not at all
        socket            a directory of the server's, or a link to one with a shorter path
        passfile          in libpq's format, private
        passfiles/        of roles that may do less, one each
        postgres.log
"""

import asyncio
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from signal import Signals
from typing import Final

from kettle.auth.private_files import private_directory, write_private
from kettle.embedded.errors import StartError
from kettle.embedded.server_account import Account, named_account, nameless, seen_by
from kettle.embedded.server_process import ServerProcess, Stop, log_tail

SUPERUSER: Final = "kettle"
_SOCKET_NAME: Final = ".s.PGSQL.5432"
_SOCKET_PATH_LIMIT: Final = 100  # the kernel's is 107; some clients are stricter
_INITDB_S: Final = 120.0

ENVIRON: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""What PostgreSQL's programs find in their environment; nothing of ours is their business."""

_INITDB_STOP: Final = Stop(((Signals.SIGTERM, 5.0),))


class Cluster:
    """One data directory with its surroundings."""

    def __init__(self, directory: Path, account: Account) -> None:
        self.directory = private_directory(directory)
        self.data = directory / "data"
        self.passfile = directory / "passfile"
        self.log = directory / "postgres.log"
        self._account = account
        self._link = directory / "socket"

    def password_of(self, role: str) -> str:
        """The password of a role that the server is to have; a new one is made for a role that has none."""
        passfile = self.passfile_of(role)
        if not passfile.is_file():
            private_directory(passfile.parent)
            write_private(passfile, f"*:*:*:{role}:{secrets.token_hex(32)}\n")
        return passfile.read_text(encoding="utf-8").strip().rpartition(":")[2]

    def passfile_of(self, role: str) -> Path:
        """The file with the password of a role besides the superuser's."""
        return self.directory / "passfiles" / role

    @property
    def exists(self) -> bool:
        """Whether there is a complete data directory."""
        return (self.data / "PG_VERSION").is_file() and self.passfile.is_file()

    def socket_directory(self) -> Path:
        """The directory of the socket: made if need be, the same one after a crash, its path short enough."""
        if len(str(self._link / _SOCKET_NAME)) <= _SOCKET_PATH_LIMIT:
            path = private_directory(self._link)
        elif self._link.is_symlink() and _private_to(self._account, self._link.readlink()):
            return self._link.readlink()
        else:
            self._link.unlink(missing_ok=True)
            # Recorded as a link right here, so that the next start after a crash finds and removes it.
            path = Path(tempfile.mkdtemp(prefix="kettle-pg-", dir=_runtime_directory()))
            self._link.symlink_to(path)
        self._account.own(path)
        return path

    def remove_socket_directory(self) -> None:
        """Leave no directory behind outside of our own."""
        if self._link.is_symlink():
            shutil.rmtree(self._link.readlink(), ignore_errors=True)
            self._link.unlink()

    async def initialise(self, binaries: Path, *, sync: bool) -> None:
        """
        Make the data directory.  With `sync` it is on the disk when this returns; for throw-away data it need not be.

        Raises:
            StartError: `initdb` did not succeed.
        """
        stage, log = self.directory / "data.new", self.directory / "initdb.log"
        shutil.rmtree(stage, ignore_errors=True)
        password = secrets.token_hex(32)
        maker = named_account(self._account)
        sockets = self.socket_directory()
        told = write_private(sockets / "password", password)
        private_directory(stage)
        maker.own(stage, told, sockets)
        try:
            with seen_by(self._account, stage, sockets) as (paths, fds):
                argv = _initdb(binaries, data=paths[0], password=paths[1] / told.name, sync=sync)
                status = await self._run(argv, maker, fds, log)
        finally:
            told.unlink(missing_ok=True)
            self._account.own(sockets)
        if status:
            raise StartError("initdb", f"ended with status {status}", log, log_tail(log))
        log.unlink()
        write_private(self.passfile, f"*:*:*:{SUPERUSER}:{password}\n")
        self._account.own(stage)
        stage.replace(self.data)

    async def _run(self, argv: Sequence[str], account: Account, fds: Sequence[int], log: Path) -> int:
        process = await ServerProcess.spawn(
            argv, account=account, stop=_INITDB_STOP, environ=ENVIRON, cwd=self.directory, log=log, fds=fds
        )
        try:
            async with asyncio.timeout(_INITDB_S):
                return await process.wait()
        finally:
            if process.running:
                await process.stop()

    async def copy(self, template: "Cluster") -> None:
        """Take over a stopped server's data directory, sharing its blocks where the file system can."""
        stage = self.directory / "data.new"
        shutil.rmtree(stage, ignore_errors=True)
        copier = await asyncio.create_subprocess_exec(
            "cp", "-a", "--reflink=auto", "--", str(template.data), str(stage)
        )
        if status := await copier.wait():
            raise StartError("cp", f"ended with status {status}", template.data, "")
        write_private(self.passfile, template.passfile.read_text(encoding="utf-8"))
        self._account.own(stage)
        stage.replace(self.data)


def _initdb(binaries: Path, *, data: Path, password: Path, sync: bool) -> list[str]:
    # initdb looks up the name of its user; where our number has none, it is given another one to see.
    prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"] if nameless() else []
    return [
        *prefix,
        str(binaries / "initdb"),
        f"--pgdata={data}",
        f"--username={SUPERUSER}",
        f"--pwfile={password}",
        "--auth-local=scram-sha-256",
        "--auth-host=reject",
        "--encoding=UTF8",
        "--locale=C",
        "--no-instructions",
        # The password is 256 random bits: stretching it would only make every connection slower.
        "--set=scram_iterations=1",
        *([] if sync else ["--no-sync", "--wal-segsize=4"]),  # a segment is written, and copied, as a whole
    ]


def _private_to(account: Account, path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid and not found.st_mode & 0o077


def _runtime_directory() -> Path:
    named = Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent"))
    usable = os.access(named, os.W_OK) and len(str(named)) < _SOCKET_PATH_LIMIT - 40
    return named if usable else Path("/tmp")  # noqa: S108 - a private directory with a random name is made in it
