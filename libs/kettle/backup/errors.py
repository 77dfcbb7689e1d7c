"""
What backups raise.

    BackupError
        BusAheadOfBackupError   the bus has frames that are not in the backup
"""

from collections.abc import Sequence

import msgspec


class StreamAhead(msgspec.Struct, frozen=True):
    """A stream that has more frames than a log."""

    stream: str
    shard: str
    last: int
    """The number of the last frame that the bus has."""
    frame: int
    """The number of the last frame of the log."""


class BackupError(Exception):
    """
    A backup cannot be made, believed or restored; the text is a sentence that says what, where and what to do.
    """


class BusAheadOfBackupError(BackupError):
    """Frames were recorded after the backup, and the bus still has them."""

    def __init__(self, ahead: Sequence[StreamAhead]) -> None:
        self.ahead = ahead
        streams = "; ".join(
            f"the stream {each.stream} has frame {each.last}, and the log of {each.shard} ends with frame {each.frame}"
            for each in ahead
        )
        super().__init__(
            f"the bus is ahead of this backup: {streams}. Either restore a newer backup, or the archive of the write-ahead log "
            f"up to a later moment, or accept that what was recorded after the backup is lost: --accept-loss"
        )
