"""
What people have a service do as its administrators, and what they are refused, on its way to iam's record.

It is in a file before the answer leaves, and stays there until iam has recorded it: so nothing is lost when the service is
killed, when iam is away, or when a pool has none yet.  A file has one process at a time, and the next one of its role goes on
with what the last one left.
"""

import asyncio
import errno
import fcntl
import logging
import os
import re
import secrets
import time
from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.auth.private_files import private_directory
from kettle.bus.ports import Asks, BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits, slept
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity

IAM: Final = "iam"
"""The name of the service that records."""
MOST: Final = 2000
"""So many wait; then the oldest are forgotten, and the log has them."""
_FORGOTTEN: Final = 200
"""At once, so that the file is written again once for many."""
_ABANDONED_S: Final = 60.0
"""Between two looks for files that other processes have left."""
_BURST: Final = 20.0
_PER_SECOND: Final = 0.5
"""Of denials, after the burst; the others are counted."""
_AWAY: Final = Backoff(first=0.5, longest=30.0)
_SENTENCE: Final = 1000
_NAME: Final = 256
_UNPRINTABLE: Final = re.compile(r"[^!-~]")
"""What does not stand in the name of somebody, as the record has it."""
_DEADLINE_S: Final = 20.0

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.json.Encoder().encode


class Outbox:
    """Keeps deeds in a file until they are recorded; an `Auditor` of the bus."""

    def __init__(self, directory: Path, role: str) -> None:
        self._directory = directory
        self._role = role
        self._descriptor = -1
        self._torn = False
        """Whether the last line of the file is a part of one."""
        self._waiting: deque[bytes] = deque()
        """Each as a line of JSON, the oldest first."""
        self._wake = asyncio.Event()
        self._allowance = _BURST
        self._counted = time.monotonic()
        self._more = 0

    def acted(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, request: msgspec.Struct
    ) -> None:
        """
        See `Auditor`; a command that comes again, because its answer was lost, is the same deed.

        What cannot be written is reported from memory, which a service that is killed now has not any more.  So nobody is told
        that it is done: RefusedError `unavailable`, upon which the command comes again.
        """
        action = f"{endpoint.role}.{endpoint.verb}"
        command: str = getattr(request, "id", "")
        id_ = sha256(f"{caller.token} {action} {name} {command}".encode()).hexdigest()[:32] if command else ""
        if why := self._put(id_, caller.name, action, name, _described(request)):
            raise RefusedError(
                RefusalCode.UNAVAILABLE,
                f"{action} is done, and cannot be written down for iam's record: {why}; it is to be asked for again",
            )

    def denied(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, refusal: RefusedError
    ) -> None:
        """See `Auditor`; who goes on and on is counted, and not written down each time."""
        now = time.monotonic()
        self._allowance = min(self._allowance + (now - self._counted) * _PER_SECOND, _BURST)
        self._counted = now
        if self._allowance < 1:
            self._more += 1
            return
        self._allowance -= 1
        who = caller.name if caller.kind == "user" else f"{caller.kind}:{caller.name}"
        more, self._more = self._more, 0
        action = f"{endpoint.role}.{endpoint.verb}"
        self._put("", who, action, name, str(refusal), denied=refusal.code, more=more)

    def note(self, who: str, action: str, where: str, sentence: str) -> None:
        """See `Auditor`."""
        self._put("", who, action, where, sentence)

    def _put(
        self, id_: str, who: str, action: str, where: str, sentence: str, *, denied: str = "", more: int = 0
    ) -> str:
        """Have something recorded: it is in the file when this returns; why not, or nothing."""
        deed = {
            "id": id_ or secrets.token_hex(12),
            "at": time.time(),
            "who": _UNPRINTABLE.sub("?", who)[:_NAME],
            "action": action,
            "where": where,
            "sentence": _plain(sentence),
            "denied": denied,
            "more": more,
        }
        line, why = _encode(deed) + b"\n", ""
        try:
            self._open()
            self._write(line)
        except OSError as error:
            why = error.strerror or str(error)
            _log.error("a deed is kept in memory only: %s: %s", error, line.decode().strip())
        self._waiting.append(line)
        if len(self._waiting) > MOST:
            self._forget()
        self._wake.set()
        return why

    async def deliver(self, bus: Asks) -> None:
        """
        Have iam record what there is, each deed once; never returns.  Cancelled, it lets go of the file, for the
        next one.
        """
        try:
            await self._deliver(bus)
        finally:
            self._close()

    async def _deliver(self, bus: Asks) -> None:
        waits = Waits(_AWAY)
        while True:
            self._adopt()
            if not self._waiting:
                self._wake.clear()
                await slept(_ABANDONED_S, self._wake)
                continue
            try:
                await self._report(bus, self._waiting[0])
            except BusError as error:
                _log.debug("deeds of administrators wait for iam: %s", error)
                await waits.wait()
            else:
                waits.reset()

    async def _report(self, bus: Asks, line: bytes) -> None:
        from kettle_wire.commands.deeds import REPORT_DEED  # few processes ever report one

        try:
            deed = msgspec.json.decode(line, type=REPORT_DEED.request)
            await bus.call(REPORT_DEED, IAM, deed, deadline=_DEADLINE_S)
        except RefusedError as refusal:
            if refusal.code != RefusalCode.MALFORMED:
                raise
            _log.error("iam does not record a deed: %s: %s", refusal, line.decode().strip())
        except msgspec.MsgspecError as error:
            _log.error("%s has a line that is no deed: %s", self._directory, error)
        if self._waiting and self._waiting[0] is line:
            self._waiting.popleft()
        if not self._waiting:
            self._rewrite()

    def _write(self, data: bytes) -> None:
        """After what a full disk has cut off a new line begins."""
        whole = b"\n" + data if self._torn else data
        self._torn = True
        if os.write(self._descriptor, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False

    def _rewrite(self) -> None:
        """Have no more in the file than waits."""
        if self._descriptor < 0:
            return
        try:
            os.ftruncate(self._descriptor, 0)
            self._torn = False
            if self._waiting:
                self._write(b"".join(self._waiting))
        except OSError as error:
            _log.error("deeds of administrators are kept in memory only: %s", error)

    def _forget(self) -> None:
        lost = [self._waiting.popleft() for _ in range(_FORGOTTEN)]
        for line in lost:
            _log.error("iam has recorded nothing for long, forgets a deed: %s", line.decode().strip())
        self._rewrite()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._waiting.clear()

    def _open(self) -> None:
        """
        Have the file of this process: the first of its role that no other process has, with what is in it.
        """
        if self._descriptor >= 0:
            return
        private_directory(self._directory)
        number = 0
        while (descriptor := _taken(path := self._directory / f"{self._role}-{number}.jsonl")) is None:
            number += 1
        self._descriptor = descriptor
        self._waiting.extend(_lines(path))
        self._torn = bool(path.stat().st_size)  # for all we know

    def _adopt(self) -> None:
        """Go on with what processes of this role have left."""
        try:
            for path in sorted(self._directory.glob(f"{self._role}-*.jsonl")):
                if not path.stat().st_size:
                    continue
                self._open()
                if (descriptor := _taken(path)) is None:  # ours, or that of another process that lives
                    continue
                try:
                    left = _lines(path)
                    self._write(b"".join(left))
                    self._waiting.extend(left)
                    os.ftruncate(descriptor, 0)
                finally:
                    os.close(descriptor)
        except OSError as error:
            _log.error("what was left of deeds of administrators is not reported: %s", error)


def _taken(path: Path) -> int | None:
    """A file that no other process has, and none comes to have while it is open; None: one has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _lines(path: Path) -> list[bytes]:
    """The last line may be a part of one, if its process was killed while it wrote."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [line for line in lines if line.endswith(b"\n") and line.strip()]


def _described(request: msgspec.Struct) -> str:
    """What somebody asked for: all that differs from what is usual."""
    said = {
        name: value
        for name, value, usual in zip(
            request.__struct_fields__,
            msgspec.structs.astuple(request),
            _defaults(type(request)),
            strict=True,
        )
        if name != "id" and value != usual
    }
    return ", ".join(f"{name}={_encode(value).decode()}" for name, value in said.items()) or "as usual"


def _defaults(kind: type[msgspec.Struct]) -> list[object]:
    return [field.default for field in msgspec.structs.fields(kind)]


def _plain(sentence: str) -> str:
    """Printable, and not longer than it may be: what is cut off ends with dots."""
    text = "".join(each if each.isprintable() else " " for each in sentence)
    return text if len(text) <= _SENTENCE else f"{text[: _SENTENCE - 3]}..."
