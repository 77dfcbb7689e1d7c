"""
The startd's journal: every change of its claims and attempts, before it has an effect.

It outlives the process, not the machine: after a boot nothing of what it says still exists, and it starts empty.
"""

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from kettle.execution.attempts import stored_reports
from kettle_services.startd.domain.state.changes import Change

_LENGTH: Final = struct.Struct("!I")
_COMPACT_BYTES: Final = 4 << 20
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Change).decode
_ORDERS: Final = frozenset({"stop", "then"})
"""Fields of changes, claims and attempts that hold such an order."""
_ENDING: Final = ("code", "reason", "subcode")


class Journal:
    """An append-only file.  One `write` per batch: a torn one at the end is what nobody has acted on."""

    def __init__(self, path: Path, boot: str) -> None:
        self._path = path
        self._boot = boot.encode()
        self._fd = -1
        self._size = 0

    def load(self) -> list[Change]:
        """What was recorded since the machine booted; empty if it has booted since."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        records = _records(data)
        if next(records, b"") != self._boot:
            return []
        return [_change(record) for record in records]

    def restart(self, changes: Iterable[Change]) -> None:
        """
        Start a new journal with these changes, which replace all earlier ones.

        Raises:
            OSError: there is no room; the journal is unchanged.
        """
        draft = self._path.with_suffix(".draft")
        data = _packed([self._boot, *(_encode(change) for change in changes)])
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            draft.replace(self._path)
        except OSError:
            os.close(fd)
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
        self.close()
        self._fd, self._size = fd, len(data)

    def append(self, changes: Sequence[Change]) -> bool:
        """
        Record changes; returns whether the file has become so long that a new one should be started.

        Raises:
            OSError: there is no room; nothing was recorded.
        """
        data = _packed(_encode(change) for change in changes)
        try:
            write_all(self._fd, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)  # what comes later must not stand behind a torn record
            raise
        self._size += len(data)
        return self._size > _COMPACT_BYTES

    def close(self) -> None:
        """Write no more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _change(record: bytes) -> Change:
    try:
        change = _decode(record)
    except msgspec.ValidationError:
        change = msgspec.convert(_lifted(msgspec.msgpack.decode(record)), Change)
    return cast("Change", change)


def _lifted(told: object) -> object:
    """What earlier versions wrote: codes and reason were fields of an order to end an attempt."""
    if not isinstance(told, dict):
        return told
    fields = cast("dict[str, object]", told)
    return {name: _order(value) if name in _ORDERS else _lifted(value) for name, value in fields.items()}


def _order(told: object) -> object:
    if not isinstance(told, dict):
        return told
    fields = cast("dict[str, object]", told)
    if "code" not in fields:
        return fields
    return {**fields, "ending": {name: fields[name] for name in _ENDING if name in fields}}


def _packed(records: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(record)) + record for record in records)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, in as many pieces as the file takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return
        yield data[at : at + length]
        at += length


def lock_state(state: Path) -> int:
    """
    Make the state directory ours alone; returns the open lock.

    Raises:
        BlockingIOError: another startd has it.
    """
    stored_reports.make_places(state)
    fd = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    stored_reports.clear_drafts(state)
    return fd
