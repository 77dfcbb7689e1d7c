"""
A NATS server of our own with JetStream, on the loopback interface, which believes what its operator says (`Trust`).

    directory/            private to the account that starts the server
        lock              held by the supervisor
        port              kept, so that clients find the server again after a crash
        nats.log
        data/             the server's: nats.conf, nats.pid, jetstream/
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import Final, Self

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.auth.trust.keys import TrustError
from kettle.auth.trust.server import PROBE_INBOX, Permissions, SingleAccount, Statements, Trust
from kettle.embedded.binaries import nats_server
from kettle.embedded.errors import EmbeddedError, StartError
from kettle.embedded.former_store import take_over
from kettle.embedded.nats_config import Limits, Member, render
from kettle.embedded.nats_listener import LOOPBACK, NatsListener, in_url, probing_client
from kettle.embedded.nats_statements import accounts_to_tell, tell
from kettle.embedded.ports import hold, kept_port, listens
from kettle.embedded.server_account import NATS_UID, seen_by, server_account
from kettle.embedded.server_process import DirectoryLock, ServerProcess, Stop, end_orphan, log_tail

_log: Final = logging.getLogger(__name__)
_ITS_OWN: Final = "jetstream"
"""The directory that the server makes in its store."""
START_S: Final = 30.0
_STEP_S: Final = 0.005
_LOG_BYTES: Final = 1 << 20
_STORE_FAILED: Final = re.compile(rb"JetStream failed to store a msg on stream .*: write .*")
_ANSWER_S: Final = 0.5
"""For an answer of JetStream in a cluster: one that has no leader yet leaves the question unanswered."""
_STOP: Final = Stop(((Signals.SIGTERM, 10.0),))
_INFO: Final = "$JS.API.INFO"


class _Info(msgspec.Struct):
    """What JetStream says of itself; an error, for example, as long as a cluster has no leader."""

    error: dict[str, str | int] | None = None


class EmbeddedNats:
    """
    The server of one directory.  At any time at most one process supervises it, and it dies with that process.

    After it has been killed, `start` again brings it back at the same port; `wait` says when that is due.
    """

    def __init__(
        self,
        directory: Path,
        *,
        trust: Trust | None = None,
        credentials: Path | None = None,
        permissions: Mapping[str, Permissions] | None = None,
        name: str = "kettle",
        port: int = 0,
        limits: Limits | None = None,
        member: Member | None = None,
        listener: NatsListener | None = None,
    ) -> None:
        """
        `trust`: whom it trusts; left out, those whom `permissions` names, with files in the directory `credentials`.
        `port` 0 is one that is free, and remembered.
        `member` makes it one of a cluster: then JetStream answers, and `start` returns, once most of them are there.
        `listener` encrypts all connections, and may let other machines in; else it is for this machine alone.
        """
        self.directory = private_directory(directory.absolute())
        self._trust = trust or SingleAccount((credentials or directory).absolute(), permissions or {})
        self._told: Statements | None = None
        """What its configuration says of whom to trust."""
        self._untold: set[str] = set()
        """The public keys of accounts of which it says something that the server that runs has not been told yet."""
        self._telling: asyncio.Task[None] | None = None
        self._name = name
        self._fixed_port = port
        self._port = 0
        self._limits = limits or Limits()
        self._member = member
        self._listener = listener
        self._account = server_account(NATS_UID)
        self._data = self.directory / "data"
        self._log = self.directory / "nats.log"
        self._heard = 0
        self._lock: DirectoryLock | None = None
        self._process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        if not self._port:
            raise EmbeddedError(f"NATS in {self.directory} has not been started.")
        return (
            f"tls://{in_url(self._listener.name)}:{self._port}"
            if self._listener
            else f"nats://{LOOPBACK}:{self._port}"
        )

    @property
    def store(self) -> Path:
        """JetStream's directory.  It may be deleted at any time: what was in it is rebuilt from the log."""
        return self._data / "jetstream"

    def credentials(self, role: str) -> Path:
        """The file that somebody shows to the server, by his name here."""
        return self._trust.credentials(role)

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the server has been started and has not ended."""
        return self._process is not None and self._process.running

    async def start(self) -> None:
        """
        Bring the server up; returns when JetStream answers.

        Raises:
            EmbeddedError: the program is missing, another process supervises the directory, or it does not come up.
        """
        if self.running:
            return
        if self._lock is None:
            self._lock = DirectoryLock(self.directory)
        try:
            await end_orphan(self._data / "nats.pid", self._data, _STOP)
            self._port = self._choose_port()
            self._write_config()
            if self._member is None:
                self._take_over_streams()
            self._heard = self._log.stat().st_size if self._log.exists() else 0
            with hold(self._port):  # others choose ports, too, while the server starts
                async with asyncio.timeout(START_S):
                    await self._come_up(self._trust.probe())
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise self._failed(f"did not answer within {START_S:g} s") from error
            raise

    def restart_reason(self) -> str:
        """
        What the server has logged since the last call about a store that accepts nothing any more; empty: nothing.

        After one failed write, for example because the disk was full for a moment, all later ones fail: until it is
        restarted, the server does not answer clients that store into that stream.
        """
        with suppress(FileNotFoundError), self._log.open("rb") as file:
            file.seek(min(self._heard, file.seek(0, os.SEEK_END)))
            said = file.read(_LOG_BYTES)
            self._heard = file.tell()
            if found := _STORE_FAILED.search(said):
                return found[0].decode(errors="replace")
        return ""

    def trust_again(self) -> None:
        """
        Believe from now on what the operator says now, and show what the files of a certificate hold by now.  Who is not
        trusted any more is disconnected, and nobody else; if nothing has changed the server is left alone.

        With other files of a certificate, or other accounts than there were, the server reads its whole configuration again, and ends
        the connections of those of whom it has asked who they are.
        """
        if not self.running:
            return
        shown, before = self._listener is None or self._listener.is_shown(self._data), self._told
        assert before is not None, "it runs, so it was told something"
        if shown and self._trust.statements() == before:
            return
        self._write_config()
        assert self._told is not None, "the configuration was written"
        new = accounts_to_tell(before, self._told) if shown else None
        if new is None:
            self._read_again()
        else:
            self._untold |= new.keys()
            if self._telling is None or self._telling.done():
                self._telling = asyncio.create_task(self._tell(), name="tell NATS of its accounts")

    def _read_again(self) -> None:
        """Have it read its configuration again, which says all that it may not have been told."""
        self._untold.clear()
        self._running().signal(Signals.SIGHUP)

    async def _tell(self) -> None:
        while self._untold and self._told is not None:
            accounts = {key: self._told.accounts[key] for key in self._untold}
            self._untold.clear()
            try:
                await tell(self.url, self._listener, self._trust.teller(), accounts)
            except EmbeddedError as error:
                if self.running:
                    _log.warning("%s; it reads its whole configuration again", error)
                    self._read_again()

    async def wait(self) -> int:
        """
        Wait for the end of the server; its exit status, or minus the number of the signal that killed it.
        """
        return await self._running().wait()

    async def stop(self) -> None:
        """Stop the server, by force if necessary, and release the directory."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})
            self._telling = None
        if self._process is not None:
            await self._process.stop()
            self._process = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _write_config(self) -> None:
        try:
            trust = self._trust.statements()
        except TrustError as error:
            raise EmbeddedError(str(error)) from error
        self._told = trust
        private_directory(self.store)
        # Relative: the server works in `data`, whose parents it may not be able to enter.
        text = render(
            name=self._name,
            port=self._port,
            store="jetstream",
            pid_file="nats.pid",
            trust=trust,
            limits=self._limits,
            member=self._member,
            listener=self._listener,
        )
        try:
            config = write_private(self._data / "nats.conf", text)
        except OSError as error:
            raise EmbeddedError(f"{self._data / 'nats.conf'} cannot be written: {error.strerror}") from error
        shown = self._listener.copy_to(self._data) if self._listener else []
        self._account.own(self._data, config, self.store, *shown, below=False)

    def _take_over_streams(self) -> None:
        assert self._told is not None, "the configuration was written"
        try:
            done = take_over(self.store / _ITS_OWN, self._told.streams)
        except OSError as error:
            raise EmbeddedError(
                f"{error.filename or self.store} cannot be moved or removed: {error.strerror}"
            ) from error
        if done:
            _log.warning("NATS: %s", done)

    async def _come_up(self, probe: str) -> None:
        with seen_by(self._account, nats_server()) as ((program,), fds):
            self._process = await ServerProcess.spawn(
                [str(program), "--config", "nats.conf"],
                account=self._account,
                stop=_STOP,
                environ={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
                cwd=self._data,
                log=self._log,
                fds=fds,
            )
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while not ended.done():
                if await self._answers(probe):
                    return
                await asyncio.wait({ended}, timeout=_STEP_S)
        finally:
            ended.cancel()
        raise self._failed("ended while it was being started")

    async def _answers(self, probe: str) -> bool:
        """Whether JetStream answers; that the port is open says little."""
        from kettle.bus.nats_driver import errors  # only who starts a server needs it

        if not listens(self._port, self._listener.name if self._listener else LOOPBACK):
            return False  # cheaper to find out than by a client
        client = probing_client(self._listener)
        try:
            await client.connect(
                self.url,
                user_credentials=probe,
                inbox_prefix=PROBE_INBOX,
                allow_reconnect=False,
                connect_timeout=int(START_S),
                error_cb=_quiet,
            )
            answer = await client.request(_INFO, timeout=_ANSWER_S if self._member else START_S)
            return not msgspec.json.decode(answer.data, type=_Info).error
        except (OSError, errors.Error):
            return False
        finally:
            await client.close()

    def _choose_port(self) -> int:
        if self._fixed_port or self._port:
            return self._fixed_port or self._port
        return kept_port(self.directory / "port")

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise EmbeddedError(f"NATS in {self.directory} has not been started.")
        return self._process

    def _failed(self, why: str) -> StartError:
        return StartError("NATS", why, self._log, log_tail(self._log))


async def _quiet(_error: Exception) -> None:
    """What goes wrong while a server comes up is no news."""
