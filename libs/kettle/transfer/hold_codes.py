"""
What a plugin did means for its job, in HTCondor's codes.

A plugin of the machine that cannot be run, or says nothing, is the machine's fault: the job runs again, perhaps elsewhere.
All else is about the file or the job: the job is held, with the plugin's words.
"""

import errno
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.transfer.file_lists import shown, without_secrets
from kettle.transfer.plugin import Move, Plugin
from kettle.transfer.plugin_protocol import Result
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, HoldSubcode, VacateCode

_REASON: Final = 2000
_SAID: Final = 500


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a plugin's process ended."""

    status: int = 0
    """Wait status: exit code << 8, or the signal."""
    failed: int = 0
    """errno if it could not be started."""
    late: float = 0.0
    """Seconds after which it was killed; 0: it ended by itself."""
    said: str = ""
    """The end of what it wrote to standard error."""
    answer: Sequence[Result] | None = None
    """None: there is no valid answer."""


class Direction(msgspec.Struct, frozen=True):
    """Which way files go, in words and codes."""

    upload: bool

    @property
    def code(self) -> int:
        """The HoldReasonCode."""
        return HoldCode.TransferOutputError if self.upload else HoldCode.TransferInputError

    def ending(self, why: str, subcode: int, *, hold: bool = True) -> Ending:
        """The end of the attempt, with HTCondor's beginning of the sentence."""
        what = "output" if self.upload else "input"
        reason = f"Transfer {what} files failure at the execution point: {why}"[:_REASON]
        return Ending(code=self.code if hold else VacateCode.StarterError, subcode=subcode, reason=reason)

    def file(self, move: Move) -> str:
        """A file in words."""
        if self.upload:
            return f"sending {posixpath.basename(move.path)} to {shown(move.url)}"
        return f"fetching {shown(move.url)}"


def nobody(direction: Direction, moves: Sequence[Move]) -> Ending:
    """No plugin moves these."""
    move = moves[0]
    why = f"{direction.file(move)}: this machine has no plugin for {move.method}:// URLs"
    return direction.ending(why, HoldSubcode.PluginNotFound, hold=False)


def ending_of(
    plugin: Plugin, direction: Direction, moves: Sequence[Move], ran: Ran, sizes: Mapping[str, int | None]
) -> Ending | None:
    """
    Why these files were not moved; None if they were.

    `sizes` are those of the local files, by path; None for what is no regular file.
    """
    who = "the plugin" if plugin.ours else f"the plugin {posixpath.basename(plugin.path)}"
    first = direction.file(moves[0])
    if ran.failed:
        why = f"{first}: {who} cannot be run: {os.strerror(ran.failed)}"
        return direction.ending(
            why, ran.failed if plugin.jobs else HoldSubcode.PluginExecFailed, hold=plugin.jobs
        )
    if ran.late:
        why = f"{first}: {who} was not done after {ran.late:g} seconds, and was killed"
        return direction.ending(why, errno.ETIME)
    if ran.status:
        return _failed(who, direction, moves, ran)
    if ran.answer is None:
        return _silent(f"{first}: {who} ended with success and said nothing of use", plugin, direction)
    return _compared(who, plugin, direction, moves, ran.answer, sizes)


def _failed(who: str, direction: Direction, moves: Sequence[Move], ran: Ran) -> Ending:
    failed = next((result for result in ran.answer or () if not result.success), None)
    named = {move.url: move for move in moves}
    move = named.get(failed.url, moves[0]) if failed is not None else moves[0]
    words = without_secrets((failed.error if failed is not None else "") or ran.said)
    how = (
        f"was killed by signal {ran.status & 0x7F}" if ran.status & 0x7F else f"exited with {ran.status >> 8}"
    )
    said = f": {words[:_SAID]}" if words else ""
    return direction.ending(f"{direction.file(move)}: {who} {how}{said}", ran.status)


def _silent(why: str, plugin: Plugin, direction: Direction) -> Ending:
    return direction.ending(
        why, errno.EPROTO if plugin.jobs else HoldSubcode.PluginNoResult, hold=plugin.jobs
    )


def _compared(
    who: str,
    plugin: Plugin,
    direction: Direction,
    moves: Sequence[Move],
    answer: Sequence[Result],
    sizes: Mapping[str, int | None],
) -> Ending | None:
    """A plugin that says that all went well is not believed further than can be seen."""
    by_url = {result.url: result for result in answer}
    by_path = {result.path: result for result in answer if not result.url}
    for move in moves:
        result, file = by_url.get(move.url) or by_path.get(move.path), direction.file(move)
        if result is None:
            return _silent(f"{file}: {who} ended with success and said nothing of it", plugin, direction)
        if not result.success:
            why = f"{file}: {who} ended with success and says that it failed: {without_secrets(result.error)[:_SAID]}"
            return direction.ending(why, errno.EIO)
        if direction.upload:
            continue
        size = sizes.get(move.path)
        if size is None:
            return direction.ending(
                f"{file}: {who} says that it did, and there is no such file", errno.ENOENT
            )
        if size < result.total:
            why = f"{file}: {who} says that it has {result.total} bytes, and {size} are there"
            return direction.ending(why, errno.EIO)
    return None
