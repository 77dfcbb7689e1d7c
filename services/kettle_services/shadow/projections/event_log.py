"""
The access point's event log, kept up to date with the record of its schedd.

The cursor is a file: the projector's state, and whose log it is.  It is saved after what it knows is on the disk, so a
crash at any moment makes lines come again and none be missing; the log counts those that it has.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import msgspec

from kettle.faults import fault_point
from kettle.userlog import Checkpoint, LogLine, UserLogProjector, format_of
from kettle.userlog.rotating_log import RotatingLog
from kettle.userlog.routes import OneLog, Route, names_in
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.addresses import daemon_address


class _Kept(msgspec.Struct):
    identity: str
    """Of the log: the files of another one are not taken for this one's."""
    state: bytes


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Kept)


class EventLog(Checkpoint):
    """
    Projector, file and cursor of one access point; a checkpoint and a sink for `follow`.

    Opens the file: raises UserLogError.
    """

    def __init__(self, settings: ShadowSettings, *, head: int, told_until: int = 0) -> None:
        """
        `head` is the newest frame: a log that begins now says nothing of it and of those before.

        `told_until`, microseconds since the epoch: what was saved counts no more, and what was recorded later is told.
        """
        super().__init__(settings.state_path / f"eventlog.{settings.schedd}")
        path = settings.home_path / settings.event_log
        written = format_of(settings.event_log_format_options)
        information = names_in(settings.event_log_job_ad_information_attrs)
        self._kept = self._begun(told_until=told_until) if told_until else self._begun(since=head)
        self.projector = UserLogProjector(
            daemon_address(settings.nats_url, settings.schedd).strip("<>"),
            schedd=settings.schedd,
            routes=OneLog(Route(PurePosixPath(path), written, information)),
            snapshot=self._kept.state,
        )
        self._log = RotatingLog(
            path,
            written,
            identity=self._kept.identity,
            known=self.projector.lines,
            max_size=settings.event_log_max_size,
            rotations=settings.event_log_max_rotations,
            creator=settings.schedd,
        )

    def write(self, added: Mapping[int, Sequence[LogLine]]) -> None:
        """Append what frames add. Raises UserLogError."""
        self._log.write([line for lines in added.values() for line in lines])

    def save(self, state: bytes) -> None:
        """Move the cursor. Raises OSError."""
        self._log.sync()
        super().save(_encoder.encode(_Kept(self._kept.identity, state)))
        fault_point("event_log.saved")

    def close(self) -> None:
        """Hold the file no longer."""
        self._log.close()

    def _begun(self, *, since: int = 0, told_until: int = 0) -> _Kept:
        """The cursor; a new one is on the disk before the first line is."""
        if not told_until and (saved := self.load()):
            return _decoder.decode(saved)
        new = _Kept(
            f"{time.time_ns()}.{os.getpid()}",
            UserLogProjector("", since=since, told_until=told_until).snapshot(),
        )
        super().save(_encoder.encode(new))
        return new
